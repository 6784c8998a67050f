package clickhouse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// ErrorKind classifies errors by what a caller can do about them.
type ErrorKind int

// The kinds of errors.
const (
	Internal    ErrorKind = iota // a bug or a broken server; the text is only for the log
	UserError                    // the query is wrong, and Message may be shown
	Timeout                      // the query exceeded its time limit
	Memory                       // the query, or the server, ran out of memory
	TooSlow                      // the server estimates that the query would run too long
	Busy                         // too many concurrent queries
	Unavailable                  // no server, or it rejects the credentials
	TooLarge                     // the query or its result exceeds a size limit
	Unrunnable                   // ClickHouse cannot run the query; its text is only useful to an operator
)

var kindNames = [...]string{"internal", "user error", "timeout", "memory", "too slow", "busy", "unavailable", "too large", "unrunnable"}

// String returns the name of the kind for logs and metrics.
func (k ErrorKind) String() string { return kindNames[k] }

// Error is the error of a failed query. Message never contains hosts, paths or SQL.
type Error struct {
	Kind    ErrorKind
	Code    int    // ClickHouse's code; 0 if the error is not from the server
	Name    string // ClickHouse's name in lower case, such as unknown_function
	Message string // may be shown to the query's author if Kind is UserError

	cause error
}

func (e *Error) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Message + " (" + e.Name + ")"
}

// ByQuery reports whether the query is the cause, so that its author has to change it.
func (e *Error) ByQuery() bool { return e.Kind == UserError || e.Kind == Unrunnable }

// Reason returns ClickHouse's message for the operator's log, without the query and without quoted values.
func (e *Error) Reason() string {
	x, ok := errors.AsType[*driver.Exception](e.cause)
	if !ok {
		return ""
	}
	text := x.Message
	if i := scopeStart.FindStringIndex(text); i != nil {
		text = text[:i[0]]
	}
	text = quotedText.ReplaceAllString(text, "'…'")
	return strings.TrimSpace(shorten.Text(text, 500))
}

// Unwrap returns the driver's error, whose text may contain anything.
func (e *Error) Unwrap() error { return e.cause }

// lookUp returns the kind and name of a code. The name is empty if codes does not list it.
func lookUp(code int32) (kind ErrorKind, name string) {
	for kind, names := range codes {
		if name, ok := names[code]; ok {
			return kind, name
		}
	}
	return unlistedKind, ""
}

// invalidJoinOn is the code for a join that ClickHouse has no algorithm for.
const invalidJoinOn = 403

// A syntax error is a bug in the generated SQL, unless it is in a type that the query has as a string: JSONExtract(x, 'Array(').
const (
	syntaxError = 62
	ofDataType  = "Syntax error (data type)"
)

// classify turns an error of the driver into an *Error.
func classify(err error) *Error {
	if exception, ok := errors.AsType[*driver.Exception](err); ok && !greetingFailed(err) {
		return fromException(exception, err)
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	switch {
	case errors.Is(err, driver.ErrAcquireConnTimeout) && !greetingFailed(err): // the wait for a greeting ends with the same error
		return &Error{Kind: Busy, Message: "no connection to ClickHouse is free", cause: err}
	case unreachable(err), closedIdle(err), misdirected(err):
		return &Error{Kind: Unavailable, Message: unavailable, cause: err}
	}
	return &Error{Kind: Internal, Message: internalMessage, cause: err}
}

func unreachable(err error) bool {
	var network *net.OpError
	var dns *net.DNSError
	return errors.As(err, &network) || errors.As(err, &dns) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, driver.ErrAcquireConnNoAddress) || errors.Is(err, driver.ErrConnectionClosed) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// closedIdle reports whether the server closed an idle connection just when a request was sent on it, so that it has not read the request. net/http
// tells only by the error's text.
func closedIdle(err error) bool {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return err != nil && err.Error() == "http: server closed idle connection"
}

func fromException(x *driver.Exception, cause error) *Error {
	kind, name := lookUp(x.Code)
	switch {
	case x.Code == syntaxError && strings.Contains(x.Message, ofDataType):
		kind, name = UserError, "illegal_syntax_for_data_type"
	case name == "":
		name = strings.ToLower(x.CodeName)
	}
	e := &Error{Kind: kind, Code: int(x.Code), Name: name, cause: cause}
	e.Message = messageOf(e, x.Message)
	return e
}

func messageOf(e *Error, text string) string {
	switch e.Kind {
	case UserError:
		if m := cleanMessage(text); m != "" {
			return m
		}
		if e.Code == invalidJoinOn { // its text has the tables' internal names
			return "LEFT, RIGHT and FULL JOIN need an equality between the two tables in ON; other conditions can only be added to it."
		}
		return "The query failed: " + strings.ReplaceAll(e.Name, "_", " ") + "."
	case Timeout:
		return "the query exceeded its time limit"
	case Memory:
		return "the query ran out of memory"
	case TooSlow:
		if seconds := estimatedSeconds.FindStringSubmatch(text); seconds != nil {
			return "Estimated query execution time (" + seconds[1] + " seconds) is too long."
		}
		return "Estimated query execution time is too long."
	case Busy:
		return "too many queries run at once"
	case Unavailable:
		return unavailable
	case TooLarge:
		return "the result exceeds its size limit"
	case Unrunnable:
		return "ClickHouse cannot run this query"
	case Internal:
	}
	return internalMessage
}

const internalMessage = "ClickHouse failed to run the query"

var (
	// scopeStart matches where the engine begins to quote the query.
	scopeStart = regexp.MustCompile(`(?i)(?::|\.|,)?\s*(?:\bin (?:query|scope)\b|\bwhile (?:processing|executing)\b|\bstack trace:|\(version )`)
	quotedText = regexp.MustCompile(`(?s)'(?:[^'\\]|\\.)*(?:'|$)`)

	estimatedSeconds = regexp.MustCompile(`\((\d+(?:\.\d+)?) seconds\)`)
	// messageEnd matches the end of a message, where the engine begins to quote the whole query, its own state or
	// its version.
	messageEnd = regexp.MustCompile(`(?is)(:|\.|,)?\s*(?:\bin (?:query|scope)\b|\bwhile (?:processing|executing|reading|converting)\b|` +
		`\bstack trace:|\(version |\(official build\)|: ?\(?at row \d|\(in (?:part|file|query)|\bfrom server\b|` +
		`\breceived from\b|maybe you meant: \['?system).*$`)
	// settingAdvice matches a sentence about a server setting, which the author of a query cannot change.
	settingAdvice = regexp.MustCompile(`(?is)\.\s+[^.]*\bsettings?\b.*$`)
	// ungrouped matches a column that is qualified with its physical database and table, or with its table in the query.
	ungrouped  = regexp.MustCompile(`'(?:\w+\.){2}(\w+|\x60(?:[^\x60\\]|\\.)+\x60)' is not under|'(?:\w+\.)?((?:person_)?properties__\w+)' is not under`)
	codePrefix = regexp.MustCompile(`^(?:Code: \d+\.\s*)?(?:e\.displayText\(\) = )?(?:DB::\w*Exception:\s*)*`)
	nameSuffix = regexp.MustCompile(`\s*\([A-Z][A-Z0-9_]{3,}\)\s*$`)
	// secrets matches what no message may show: paths, addresses, SQL, C++ types.
	secrets = regexp.MustCompile(`(?i)(?:^|[\s'"(\x60=])/(?:[\w.+-]+/)+[\w.+-]*|\b[a-z0-9.-]+:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|` +
		`\b(?:select|insert|with|alter|create)\s.+\bfrom\b|__table\d|\bteam_id\b|::\d{1,4}/|` +
		`\b(?:DB|std|Poco|boost)::`)
)

// queriedName returns the name by which a query calls a column: properties.a for the typed path properties.a.:`String` and for properties__a.
func queriedName(column string) string {
	name, _, _ := strings.Cut(strings.Trim(column, "`"), ".:") // the type of a path's values
	name = strings.ReplaceAll(name, "\\`", "`")
	for _, document := range []string{"properties", "person_properties"} {
		if key, ok := strings.CutPrefix(name, document+"__"); ok {
			name = document + "." + strings.ReplaceAll(key, "__", ".")
		}
	}
	if key, ok := strings.CutPrefix(name, "person_properties."); ok {
		return "person.properties." + key
	}
	return name
}

// cleanMessage returns the part of an exception that the query's author may read: from "DB::Exception:" to the first
// text that is not about the query. It is empty if nothing safe is left.
func cleanMessage(text string) string {
	if i := strings.LastIndex(text, "DB::Exception: "); i >= 0 {
		text = text[i:]
	}
	text = codePrefix.ReplaceAllString(text, "")
	if i := messageEnd.FindStringIndex(text); i != nil {
		text = text[:i[0]]
	}
	text = nameSuffix.ReplaceAllString(text, "")
	text = settingAdvice.ReplaceAllString(text, "")
	text = ungrouped.ReplaceAllStringFunc(text, func(column string) string {
		names := ungrouped.FindStringSubmatch(column)
		return "'" + queriedName(names[1]+names[2]) + "' is not under"
	})
	text = strings.TrimRight(strings.TrimSpace(text), ".:, ")
	if text == "" || len(text) > 1000 || secrets.MatchString(text) {
		return ""
	}
	return text + "."
}
