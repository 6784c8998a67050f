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
	Unrunnable                   // ClickHouse cannot run the query, and its text tells only an operator why
)

var kindNames = [...]string{"internal", "user error", "timeout", "memory", "too slow", "busy", "unavailable", "too large", "unrunnable"}

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

// ByQuery reports whether another query would not fail like this: its author has to change it.
func (e *Error) ByQuery() bool { return e.Kind == UserError || e.Kind == Unrunnable }

// Reason returns what ClickHouse says, for the log of an operator: without the query, and without the values that it quotes.
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
	const most = 500
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.TrimSpace(text)
}

// Unwrap gives the driver's error, whose text may hold anything.
func (e *Error) Unwrap() error { return e.cause }

// lookUp returns what codes says of a code. The name is empty for a code that codes does not list.
func lookUp(code int32) (kind ErrorKind, name string) {
	for kind, names := range codes {
		if name, ok := names[code]; ok {
			return kind, name
		}
	}
	return unlistedKind, ""
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
	case errors.Is(err, driver.ErrAcquireConnTimeout) && !greetingFailed(err): // the wait for a greeting ends with the same error
		return &Error{Kind: Busy, Message: "no connection to ClickHouse is free", cause: err}
	case unreachable(err), misdirected(err):
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
	case Unrunnable:
		return "ClickHouse cannot run this query"
	case Internal:
	}
	return internalMessage
}

const internalMessage = "ClickHouse failed to run the query"

var (
	// scopeStart is where the engine begins to quote the query.
	scopeStart = regexp.MustCompile(`(?i)(?::|\.|,)?\s*(?:\bin (?:query|scope)\b|\bwhile (?:processing|executing)\b|\bstack trace:|\(version )`)
	quotedText = regexp.MustCompile(`(?s)'(?:[^'\\]|\\.)*(?:'|$)`)

	estimatedSeconds = regexp.MustCompile(`\((\d+(?:\.\d+)?) seconds\)`)
	// messageEnd is where the engine stops speaking of the mistake and starts to quote the whole query, its
	// own state or its version.
	messageEnd = regexp.MustCompile(`(?is)(:|\.|,)?\s*(?:\bin (?:query|scope)\b|\bwhile (?:processing|executing|reading|converting)\b|` +
		`\bstack trace:|\(version |\(official build\)|: ?\(?at row \d|\(in (?:part|file|query)|\bfrom server\b|` +
		`\breceived from\b|maybe you meant: \['?system).*$`)
	// settingAdvice is a sentence about a setting of the server, which a query's author cannot change.
	settingAdvice = regexp.MustCompile(`(?is)\.\s+[^.]*\bsettings?\b.*$`)
	// ungrouped finds a column with the names of its database and table, which are ours.
	ungrouped  = regexp.MustCompile(`'(?:\w+\.){2}(\w+)' is not under`)
	codePrefix = regexp.MustCompile(`^(?:Code: \d+\.\s*)?(?:e\.displayText\(\) = )?(?:DB::\w*Exception:\s*)*`)
	nameSuffix = regexp.MustCompile(`\s*\([A-Z][A-Z0-9_]{3,}\)\s*$`)
	// secrets finds what must not be shown even inside a message about the query: paths, addresses, SQL, types of C++.
	secrets = regexp.MustCompile(`(?i)(?:^|[\s'"(\x60=])/(?:[\w.+-]+/)+[\w.+-]*|\b[a-z0-9.-]+:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|` +
		`\b(?:select|insert|with|alter|create)\s.+\bfrom\b|__table\d|\bteam_id\b|::\d{1,4}/|` +
		`\b(?:DB|std|Poco|boost)::`)
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
	text = settingAdvice.ReplaceAllString(text, "")
	text = ungrouped.ReplaceAllString(text, "'$1' is not under")
	text = strings.TrimRight(strings.TrimSpace(text), ".:, ")
	if text == "" || len(text) > 1000 || secrets.MatchString(text) {
		return ""
	}
	return text + "."
}
