package clickhouse

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// ErrorKind says what a caller can do about an error (api.md, section 7).
type ErrorKind int

// The kinds of errors.
const (
	Internal    ErrorKind = iota // a bug or a server in trouble: its text is for the log
	UserError                    // the query is at fault, and Message may be shown
	Timeout                      // the query ran longer than it may
	Memory                       // the query, or the server, ran out of memory
	TooSlow                      // the server estimates that the query would run too long
	Busy                         // too many queries at once
	Unavailable                  // no server, or none that takes our credentials
	TooLarge                     // the query or its result is bigger than allowed
)

var kindNames = [...]string{"internal", "user error", "timeout", "memory", "too slow", "busy", "unavailable", "too large"}

// String names the kind for logs and metrics.
func (k ErrorKind) String() string { return kindNames[k] }

// Error is a query that failed. Message never holds hosts, paths, or SQL.
type Error struct {
	Kind    ErrorKind
	Code    int    // ClickHouse's number, 0 when the error is not the server's
	Name    string // ClickHouse's name in lower case, such as unknown_function
	Message string // for people; fit to be shown to the query's author when Kind is UserError

	cause error
}

func (e *Error) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Message + " (" + e.Name + ")"
}

// Unwrap gives the driver's error, whose text may hold anything.
func (e *Error) Unwrap() error { return e.cause }

// code is what is known about one of ClickHouse's error codes.
type code struct {
	kind ErrorKind
	name string
}

// codes lists the errors that are not Internal. The user errors are those of the contract (api.md, section 7)
// and others that only the text or the data of the query can cause.
var codes = map[int32]code{
	6:   {UserError, "cannot_parse_text"},
	12:  {UserError, "parameter_out_of_bound"},
	20:  {UserError, "number_of_columns_doesnt_match"},
	25:  {UserError, "cannot_parse_escape_sequence"},
	26:  {UserError, "cannot_parse_quoted_string"},
	27:  {UserError, "cannot_parse_input_assertion_failed"},
	32:  {UserError, "attempt_to_read_after_eof"},
	33:  {UserError, "cannot_read_all_data"},
	36:  {UserError, "bad_arguments"},
	38:  {UserError, "cannot_parse_date"},
	41:  {UserError, "cannot_parse_datetime"},
	42:  {UserError, "number_of_arguments_doesnt_match"},
	43:  {UserError, "illegal_type_of_argument"},
	44:  {UserError, "illegal_column"},
	46:  {UserError, "unknown_function"},
	47:  {UserError, "unknown_identifier"},
	48:  {UserError, "not_implemented"},
	50:  {UserError, "unknown_type"}, // a column that Parquet cannot hold
	53:  {UserError, "type_mismatch"},
	59:  {UserError, "illegal_type_of_column_for_filter"},
	60:  {UserError, "unknown_table"},
	69:  {UserError, "argument_out_of_bound"},
	70:  {UserError, "cannot_convert_type"},
	72:  {UserError, "cannot_parse_number"},
	81:  {Unavailable, "unknown_database"}, // no query names one
	117: {UserError, "incorrect_data"},
	124: {UserError, "incorrect_element_of_set"},
	125: {UserError, "incorrect_result_of_scalar_subquery"},
	128: {UserError, "too_large_array_size"},
	130: {UserError, "cannot_read_array_from_text"},
	131: {UserError, "too_large_string_size"},
	135: {UserError, "zero_array_or_tuple_index"},
	153: {UserError, "illegal_division"},
	158: {TooLarge, "too_many_rows"},
	159: {Timeout, "timeout_exceeded"},
	160: {TooSlow, "too_slow"},
	162: {UserError, "too_deep_subqueries"},
	167: {UserError, "too_deep_ast"},
	168: {UserError, "too_big_ast"},
	169: {UserError, "bad_type_of_field"},
	170: {UserError, "bad_get"},
	173: {Memory, "cannot_allocate_memory"},
	184: {UserError, "illegal_aggregation"},
	190: {UserError, "sizes_of_arrays_dont_match"},
	192: {Unavailable, "unknown_user"},
	193: {Unavailable, "wrong_password"},
	194: {Unavailable, "required_password"},
	202: {Busy, "too_many_simultaneous_queries"},
	207: {UserError, "ambiguous_identifier"},
	209: {Unavailable, "socket_timeout"},
	210: {Unavailable, "network_error"},
	215: {UserError, "not_an_aggregate"},
	241: {Memory, "memory_limit_exceeded"},
	279: {Unavailable, "all_connection_tries_failed"},
	306: {UserError, "too_deep_recursion"},
	307: {UserError, "too_many_bytes"},
	291: {Unavailable, "database_access_denied"},
	321: {UserError, "value_is_out_of_range_of_data_type"},
	349: {UserError, "cannot_insert_null_in_ordinary_column"},
	360: {UserError, "cannot_create_charset_converter"},
	376: {UserError, "cannot_parse_uuid"},
	386: {UserError, "no_common_type"},
	396: {TooLarge, "too_many_rows_or_bytes"},
	403: {UserError, "invalid_join_on_expression"},
	407: {UserError, "decimal_overflow"},
	427: {UserError, "cannot_compile_regexp"},
	440: {UserError, "invalid_limit_expression"},
	467: {UserError, "cannot_parse_bool"},
	469: {Internal, "violated_constraint"},
	475: {UserError, "invalid_with_fill_expression"},
	476: {UserError, "with_ties_without_order_by"},
	497: {Unavailable, "access_denied"}, // the user of the DSN lacks a privilege; queries name our tables alone
	499: {Unavailable, "s3_error"},
	516: {Unavailable, "authentication_failed"},
	691: {UserError, "unknown_element_of_enum"},
	734: {Unavailable, "server_overloaded"},
	745: {Busy, "server_overloaded"},
}

// A syntax error is a bug of whoever wrote the SQL, unless it is in a type that the query names in a text: JSONExtract(x, 'Array(').
const (
	syntaxError = 62
	ofDataType  = "Syntax error (data type)"
)

// classify makes an *Error of what the driver returned.
func classify(err error) *Error {
	if exception, ok := errors.AsType[*driver.Exception](err); ok && !greetingFailed(err) {
		return fromException(exception, err)
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	switch {
	case errors.Is(err, driver.ErrAcquireConnTimeout):
		return &Error{Kind: Busy, Message: "no connection to ClickHouse is free", cause: err}
	case unreachable(err), misdirected(err):
		return &Error{Kind: Unavailable, Message: unavailable, cause: err}
	}
	return &Error{Kind: Internal, Message: "ClickHouse failed to run the query", cause: err}
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

func fromException(x *driver.Exception, cause error) *Error {
	known, ok := codes[x.Code]
	switch {
	case x.Code == syntaxError && strings.Contains(x.Message, ofDataType):
		known = code{UserError, "illegal_syntax_for_data_type"}
	case !ok:
		known = code{Internal, strings.ToLower(x.CodeName)}
	}
	e := &Error{Kind: known.kind, Code: int(x.Code), Name: known.name, cause: cause}
	e.Message = messageOf(e, x.Message)
	return e
}

func messageOf(e *Error, text string) string {
	switch e.Kind {
	case UserError:
		if m := cleanMessage(text); m != "" {
			return m
		}
		return "The query failed: " + strings.ReplaceAll(e.Name, "_", " ") + "."
	case Timeout:
		return "the query ran longer than it may"
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
		return "the result is larger than it may be"
	case Internal:
	}
	return "ClickHouse failed to run the query"
}

var (
	estimatedSeconds = regexp.MustCompile(`\((\d+(?:\.\d+)?) seconds\)`)
	// messageEnd is where the engine stops speaking of the mistake and starts to quote the whole query, its
	// own state or its version.
	messageEnd = regexp.MustCompile(`(?is)(:|\.|,)?\s*(?:\bin (?:query|scope)\b|\bwhile (?:processing|executing|reading|converting)\b|` +
		`\bstack trace:|\(version |\(official build\)|: ?\(?at row \d|\(in (?:part|file|query)|\bfrom server\b|` +
		`\breceived from\b|maybe you meant: \['?system).*$`)
	codePrefix = regexp.MustCompile(`^(?:Code: \d+\.\s*)?(?:e\.displayText\(\) = )?(?:DB::\w*Exception:\s*)*`)
	nameSuffix = regexp.MustCompile(`\s*\([A-Z][A-Z0-9_]{3,}\)\s*$`)
	// secrets finds what must not be shown even inside a message about the query: paths, addresses, SQL.
	secrets = regexp.MustCompile(`(?i)(?:^|[\s'"(\x60=])/(?:[\w.+-]+/)+[\w.+-]*|\b[a-z0-9.-]+:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|` +
		`\b(?:select|insert|with|alter|create)\s.+\bfrom\b|__table\d|\bteam_id\b|::\d{1,4}/`)
)

// cleanMessage is what a query's author may read of an exception: the text between "DB::Exception:" and the
// first thing that is not about his query. It is empty when nothing harmless is left.
func cleanMessage(text string) string {
	if i := strings.LastIndex(text, "DB::Exception: "); i >= 0 {
		text = text[i:]
	}
	text = codePrefix.ReplaceAllString(text, "")
	if i := messageEnd.FindStringIndex(text); i != nil {
		text = text[:i[0]]
	}
	text = nameSuffix.ReplaceAllString(text, "")
	text = strings.TrimRight(strings.TrimSpace(text), ".:, ")
	if text == "" || len(text) > 1000 || secrets.MatchString(text) {
		return ""
	}
	return text + "."
}
