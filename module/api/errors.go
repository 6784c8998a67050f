package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Error is an error response: contract api.md, section 7. Only this file maps causes to HTTP statuses.
type Error struct {
	Status int    `json:"-"`
	Type   string `json:"type"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Attr   any    `json:"attr"` // nil or the field's name
	Extra  any    `json:"extra,omitempty"`

	RetryAfter time.Duration     `json:"-"`
	Header     map[string]string `json:"-"`
	// Run is set for errors of runs, which have their own form (contract api.md section 5.7).
	Run *runMistake `json:"-"`
	// Cause is for the log only.
	Cause error `json:"-"`
}

// Error returns the status and the detail.
func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail) }

// Unwrap returns the cause that the client is not shown.
func (e *Error) Unwrap() error { return e.Cause }

// Invalid refuses the value of a field. With an empty attr, the error names no field.
func Invalid(attr, code, format string, args ...any) *Error {
	e := &Error{Status: http.StatusBadRequest, Type: "validation_error", Code: code, Detail: fmt.Sprintf(format, args...)}
	if attr != "" {
		e.Attr = attr
	}
	return e
}

// ParseError refuses a body that cannot be read.
func ParseError(detail string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request", Code: "parse_error", Detail: detail}
}

// NotFound says that there is nothing at this address.
func NotFound(detail string) *Error {
	return &Error{Status: http.StatusNotFound, Type: "invalid_request", Code: "not_found", Detail: detail}
}

// Gone refuses the use of something that the client had and can get again.
func Gone(attr, code, detail string) *Error {
	return &Error{Status: http.StatusGone, Type: "invalid_request", Code: code, Detail: detail, Attr: attr}
}

// MethodNotAllowed refuses a method at an address that serves others.
func MethodNotAllowed(method, allow string) *Error {
	return &Error{
		Status: http.StatusMethodNotAllowed, Type: "invalid_request", Code: "method_not_allowed",
		Detail: fmt.Sprintf("Method %q not allowed.", method), Header: map[string]string{"Allow": allow},
	}
}

// Unauthenticated refuses credentials.
func Unauthenticated(detail string) *Error { return unauthenticated("authentication_failed", detail) }

func unauthenticated(code, detail string) *Error {
	return &Error{
		Status: http.StatusUnauthorized, Type: "authentication_error", Code: code, Detail: detail,
		Header: map[string]string{"WWW-Authenticate": "Bearer"},
	}
}

// Forbidden refuses what the caller may not do.
func Forbidden(format string, args ...any) *Error {
	return &Error{
		Status: http.StatusForbidden, Type: "authentication_error", Code: "permission_denied", Detail: fmt.Sprintf(format, args...),
	}
}

// Throttled refuses a caller that sends too many requests.
func Throttled(detail string, wait time.Duration) *Error {
	return &Error{Status: http.StatusTooManyRequests, Type: "throttled_error", Code: "throttled", Detail: detail, RetryAfter: wait}
}

func serverError(status int, code, detail string, cause error) *Error {
	return &Error{Status: status, Type: "server_error", Code: code, Detail: detail, Cause: cause}
}

// NewRunError returns a failure of an endpoint run in the form of contract api.md, section 5.7: {"error": …} next to the standard fields, so that clients of
// either form understand it.
func NewRunError(status int, typ, code, message string) *Error {
	return &Error{Status: status, Type: typ, Code: code, Detail: message, Run: &runMistake{Error: message}}
}

// runMistake holds the fields that a run error has before the standard ones.
type runMistake struct {
	Error          string `json:"error"`
	CurrentVersion int    `json:"current_version,omitempty"`
}

// BodyTooLarge refuses a body of more than most bytes.
func BodyTooLarge(most int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request", Code: "request_too_large",
		Detail: fmt.Sprintf("The request body is larger than %d bytes.", most),
	}
}

// UnsupportedEncoding refuses a body in a compression that the route does not take.
func UnsupportedEncoding(coding, taken string) *Error {
	e := unsupportedMedia(fmt.Sprintf("Unsupported content encoding %q in request: it can be %s.", coding, taken))
	e.Extra, e.Header = nil, map[string]string{"Accept-Encoding": taken}
	return e
}

// FullQueue refuses work while too much of the project's earlier work is waiting.
func FullQueue(detail string) *Error { return Throttled(detail, time.Minute) }

// DiskFull refuses a body for which the server has no room.
func DiskFull(cause error) *Error {
	return serverError(http.StatusInsufficientStorage, "disk_full", "The disk of the server is full.", cause)
}

func unsupportedMedia(detail string) *Error {
	return &Error{
		Status: http.StatusUnsupportedMediaType, Type: "invalid_request", Code: "unsupported_media_type", Detail: detail,
		Extra: advice{"Send JSON, with the header Content-Type: application/json."},
	}
}

// Statuses without a name in HTTP.
const (
	StatusClientGone  = 499 // for the access log: the caller left before the response
	statusTooSlow     = 512 // 512 and 513: contract api.md, section 7
	statusOutOfMemory = 513
)

// Exposable reports whether the caller may see the error later: it is the caller's mistake, or a limit that its query hit.
func (e *Error) Exposable() bool {
	switch e.Status {
	case http.StatusGatewayTimeout, statusTooSlow, statusOutOfMemory:
		return true
	}
	return e.Status < http.StatusInternalServerError
}

// ErrorOf returns the API's error for an error of the layers below. The text of an error that is not the caller's mistake goes to the log only.
func ErrorOf(err error) *Error {
	var text string // of the query
	var (
		api      *Error
		mistakes diag.Errors
		first    *diag.Error
		engine   *clickhouse.Error
		invalid  *registry.FieldError
		scopes   *registry.ScopeError
		denied   *registry.DeniedError
		refused  *execution.LimitError
		payload  *capture.RefusalError
	)
	if in, ok := errors.AsType[*execution.QueryError](err); ok {
		text = in.Text
	}
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &refused):
		return Throttled(refused.Detail, refused.Wait)
	case errors.As(err, &payload):
		return captureError(payload)
	case errors.Is(err, execution.ErrSetQuery):
		return Invalid("limit", "invalid_input", "Pagination is not supported for UNION queries. "+
			"Wrap the UNION in a subquery: SELECT * FROM (SELECT ... UNION ALL SELECT ...)")
	case errors.Is(err, execution.ErrCancelled):
		return Invalid("", "query_was_cancelled", "The query was cancelled.")
	case errors.Is(err, execution.ErrStopped), errors.Is(err, cache.ErrClosed):
		return serverError(http.StatusServiceUnavailable, "error", "The server is stopping. Please try again later.", execution.ErrStopped)
	case errors.As(err, &mistakes) && len(mistakes) > 0:
		return mistakeError(mistakes, text)
	case errors.As(err, &first):
		return mistakeError(diag.Errors{first}, text)
	case errors.As(err, &engine):
		return EngineError(engine)
	case errors.As(err, &invalid):
		return Invalid(invalid.Field, string(invalid.Code), "%s", invalid.Message)
	case errors.As(err, &scopes):
		return Forbidden("%s", scopes.Error())
	case errors.As(err, &denied):
		return Forbidden("%s", denied.Message)
	case errors.Is(err, registry.ErrNotFound), errors.Is(err, registry.ErrRevoked):
		return NotFound("Not found.")
	case errors.Is(err, registry.ErrInDoubt):
		return serverError(http.StatusServiceUnavailable, "error", // no Retry-After: clients would repeat a write that may have been applied
			"The connection to the registry was lost during this write, which may or may not have been applied. Check before you send it again.", err)
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, registry.ErrDiskFull):
		return Unavailable("error", "The registry is not available right now. Please try again later.", time.Second, err)
	}
	return serverError(http.StatusInternalServerError, "error", "A server error occurred.", err)
}

// Position is the place of a mistake in the text of a query: lines and columns from 1, bytes from 0.
type Position struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Hint   string `json:"hint,omitempty"`
}

// MistakeExtra is the field extra of the error for a query that does not compile: the position of its first mistake, and all mistakes in the form of
// HogQLMetadata.
type MistakeExtra struct {
	*Position
	Metadata *compiler.Refusal `json:"hogql_metadata,omitempty"`
}

// mistakeError reports the first mistake; extra lists all mistakes of a HogQL text.
func mistakeError(mistakes diag.Errors, text string) *Error {
	m := mistakes[0]
	if m.Code == diag.ParseError {
		return ParseError(m.Detail)
	}
	e := Invalid(m.Attr, string(m.Code), "%s", m.Detail)
	var extra MistakeExtra
	if hint := cmp.Or(m.Hint, m.Advice); !m.Span.IsZero() || hint != "" {
		at := diag.Locate(text, m.Span.Start)
		extra.Position = &Position{Line: at.Line, Column: at.Column, Start: m.Span.Start, End: m.Span.End, Hint: hint}
	}
	if text != "" {
		extra.Metadata = compiler.DescribeMistakes(text, mistakes)
	}
	if extra != (MistakeExtra{}) {
		e.Extra = extra
	}
	return e
}

// advice is an error's extra if there is a hint but no position.
type advice struct {
	Hint string `json:"hint"`
}

// engineAdvice holds hints for errors of ClickHouse whose messages give none.
var engineAdvice = map[string]advice{
	"not_an_aggregate":      {"Add the column to GROUP BY, or put it into an aggregate function such as any() or max()."},
	"cannot_parse_datetime": {"Write a time as '2024-01-31' or '2024-01-31 12:00:00', or read it with toDateTime(), which gives NULL for what is not a time."},
	"cannot_parse_date":     {"Write a date as '2024-01-31', or read it with toDate(), which gives NULL for what is not a date."},
	"illegal_aggregation":   {"An aggregate function cannot stand inside another one or in WHERE: compute it in a subquery, or use HAVING."},
}

// EngineError returns the API's error for one of ClickHouse.
func EngineError(err *clickhouse.Error) *Error {
	switch err.Kind {
	case clickhouse.UserError:
		e := Invalid("", err.Name, "%s", err.Message)
		if hint, ok := engineAdvice[err.Name]; ok {
			e.Extra = hint
		}
		return e
	case clickhouse.Timeout:
		return serverError(http.StatusGatewayTimeout, "error",
			"Query has hit the max execution time before completing. Try reducing its scope by changing the time range.", err)
	case clickhouse.Memory:
		return serverError(statusOutOfMemory, "clickhouse_memory_limit_exceeded",
			"This query ran out of memory before it could finish, try reducing its scope by changing the time range.", err)
	case clickhouse.TooSlow:
		return serverError(statusTooSlow, "error",
			"Estimated query execution time is too long. Try reducing its scope by changing the time range.", err)
	case clickhouse.TooLarge:
		return Invalid("", "query_too_large", "The result is too large: it may take %s and have %d rows, and one row may take %s. "+
			"Ask for fewer rows or columns.", humanize.IBytes(execution.MaxResultBytes), execution.MaxResultRows, humanize.IBytes(clickhouse.MaxRowBytes))
	case clickhouse.Busy:
		return Unavailable("error", "Queries are a little too busy right now. We're working to free up resources. Please try again later.", time.Second, err)
	case clickhouse.Unavailable:
		return Unavailable("error", "The analytics database is not available right now. Please try again later.", time.Second, err)
	case clickhouse.Unrunnable:
		e := Invalid("", cmp.Or(err.Name, "query_failed"), "ClickHouse cannot run this query. Simplify it, or write it in another way.")
		e.Cause = err
		return e
	case clickhouse.Internal:
	}
	return serverError(http.StatusInternalServerError, "error", "ClickHouse error while executing query.", err)
}

// RunFailure turns an error of ClickHouse into that of a run (contract api.md section 5.7), and returns other errors unchanged.
func RunFailure(err error) error {
	var engine *clickhouse.Error
	if !errors.As(err, &engine) {
		return err
	}
	e := EngineError(engine)
	code, ok := runCodes[engine.Kind]
	if !ok {
		return e
	}
	e.Type, e.Code = "server_error", code
	if engine.Kind != clickhouse.Busy {
		e.Status = http.StatusBadRequest
	}
	return e
}

// runCodes are the error codes of limits that the query of a run hits.
var runCodes = map[clickhouse.ErrorKind]string{
	clickhouse.Timeout: "query_timeout", clickhouse.Memory: "query_memory_limit", clickhouse.TooLarge: "query_too_large",
	clickhouse.TooSlow: "query_estimated_too_slow", clickhouse.Busy: "query_capacity",
}

// captureError says why a capture request is refused as a whole: contract capture.md, section 4.
func captureError(refused *capture.RefusalError) *Error {
	e := Invalid(refused.Attr, string(refused.Code), "%s", refused.Detail)
	switch refused.Code {
	case capture.EmptyPayload, capture.ParseError:
		e.Type = "invalid_request"
	case capture.MissingKey, capture.InconsistentKeys, capture.InvalidKey:
		e.Status, e.Type = http.StatusUnauthorized, "authentication_error"
	case capture.TooLarge:
		e.Status, e.Type = http.StatusRequestEntityTooLarge, "invalid_request"
	case capture.UnsupportedType:
		e.Status, e.Type = http.StatusUnsupportedMediaType, "invalid_request"
	default: // a mistake in an event or a batch
	}
	if refused.Index >= 0 {
		e.Extra = place{refused.Index}
	}
	return e
}

// place is the index of the list item that an error is about, from 0.
type place struct {
	Index int `json:"index"`
}

// Unavailable refuses a request for now, and says how long to wait before the next attempt.
func Unavailable(code, detail string, wait time.Duration, cause error) *Error {
	e := serverError(http.StatusServiceUnavailable, code, detail, cause)
	e.RetryAfter = wait
	return e
}

// MemoryError returns what answers an error of a [memory.Loan]; nil for none.
func MemoryError(err error) error {
	if errors.Is(err, memory.ErrNone) {
		return noMemory(err)
	}
	return err // nil, or that of the request's context
}

func noMemory(cause error) *Error {
	return Unavailable("server_busy", "The server is busy with other large requests and responses. Please try again later.", 2*time.Second, cause)
}

// ErrRunUnknown answers a request for a run that no server knows while one of them does not respond.
var ErrRunUnknown = Unavailable("error", "A server that may know this query is not responding. Please try again later.", time.Second,
	errors.New("a server that may know a query is not responding"))

// Conflict refuses something that the current state does not allow.
func Conflict(code, detail string, cause error) *Error {
	return &Error{Status: http.StatusConflict, Type: "invalid_request", Code: code, Detail: detail, Cause: cause}
}

// BodyError explains why a request's body could not be read.
func BodyError(err error) *Error {
	if limit, ok := errors.AsType[*http.MaxBytesError](err); ok { // the site's own request_body limit
		return BodyTooLarge(limit.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errStalled()
	}
	if errors.Is(err, memory.ErrNone) {
		return noMemory(err)
	}
	return ParseError("The request body could not be read.")
}

// response returns the error as a response. No cache between server and client keeps errors.
func (e *Error) response() *Response {
	h := make(http.Header, len(e.Header)+1)
	for name, value := range e.Header {
		h.Set(name, value)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	var res *Response
	if e.Run != nil {
		res = JSON(e.Status, struct {
			*runMistake
			*Error
		}{e.Run, e})
	} else {
		res = JSON(e.Status, e)
	}
	res.Header = h
	return res
}

// Log logs errors that are not the caller's mistake.
func (e *Error) Log(logger *zap.Logger, r *http.Request, requestID string) {
	var engine *clickhouse.Error
	if e.Status < 500 && errors.As(e.Cause, &engine) && engine.Kind == clickhouse.Unrunnable {
		logger.Warn("ClickHouse cannot run a query",
			zap.Int("clickhouse_code", engine.Code), zap.String("reason", engine.Reason()), zap.String("request_id", requestID),
			zap.String("method", r.Method), zap.String("path", r.URL.Path))
	}
	if e.Status < 500 || e.Cause == nil { // without a cause, nothing has failed: strangers could fill the log with such answers
		return
	}
	fields := []zap.Field{
		zap.Int("status", e.Status), zap.String("code", e.Code), zap.String("request_id", requestID),
		zap.String("method", r.Method), zap.String("path", r.URL.Path), Logged(e.Cause),
	}
	if crash, ok := errors.AsType[*panics.Error](e.Cause); ok {
		fields = append(fields, zap.ByteString("stack", crash.Stack))
	}
	logger.Error("request failed", fields...)
}

// errStalled is the answer to a body that stops arriving.
func errStalled() *Error {
	return &Error{
		Status: http.StatusRequestTimeout, Type: "invalid_request", Code: "request_timeout",
		Detail: "The request body did not arrive in time.", Header: map[string]string{"Connection": "close"},
	}
}
