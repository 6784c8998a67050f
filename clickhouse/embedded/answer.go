//go:build linux || darwin

package embedded

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
)

// answer sends a result. It buffers the first part, so that a query that fails early gets an error status and
// a message, and a small result has its summary and length in the headers.
type answer struct {
	server *server
	w      http.ResponseWriter
	begun  time.Time
	held   []byte
	// The query's progress; complete when the answer is finished.
	progress progress
	// Returns the progress when the headers are sent; nil if progress is up to date.
	ask     func() progress
	sent    bool   // the headers have been sent
	tag     string // marks an error in the middle of the result
	gzip    *gzip.Writer
	packer  *compress.Writer // ClickHouse's own compression, in frames
	encoded io.Writer        // receives the result once the headers have been sent
}

// hold is the number of bytes of a result that are buffered.
const hold = 1 << 20

func newAnswer(s *server, w http.ResponseWriter) *answer {
	return &answer{server: s, w: w, begun: time.Now(), encoded: w}
}

// compression sets up the compression that the client asks for.
func (a *answer) compression(r *http.Request, values url.Values, settings map[string]string) error {
	if isOn(values.Get("compress")) {
		method := compress.LZ4
		switch name := strings.ToUpper(settings["network_compression_method"]); name {
		case "", "LZ4", "LZ4HC":
		case "ZSTD":
			method = compress.ZSTD
		case "NONE":
			method = compress.None
		default:
			return exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "Compression method %s is not supported", name)
		}
		a.packer = compress.NewWriter(compress.LevelZero, method)
		a.encoded = frames{a}
		return nil
	}
	if isOn(settings["enable_http_compression"]) && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		a.gzip = gzip.NewWriter(a.w)
		a.encoded = a.gzip
	}
	return nil
}

// frames writes each piece as one compressed frame.
type frames struct{ *answer }

func (f frames) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), hold)
		if err := f.packer.Compress(rest[:n]); err != nil {
			return 0, err
		}
		if _, err := f.w.Write(f.packer.Data); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// format sets the headers that name the result's format.
func (a *answer) format(name string) {
	a.w.Header().Set("X-ClickHouse-Format", name)
	a.w.Header().Set("Content-Type", contentType(name))
}

// Write writes a piece of the result. It does not retain p.
func (a *answer) Write(p []byte) (int, error) {
	if !a.sent {
		if len(a.held)+len(p) <= hold {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		if err := a.send(); err != nil {
			return 0, err
		}
	}
	if err := a.deadline(time.Now().Add(sendTimeout)); err != nil {
		return 0, err
	}
	if _, err := a.encoded.Write(p); err != nil {
		return 0, fmt.Errorf("sending the result: %w", err)
	}
	return len(p), nil
}

// sendTimeout is how long the client may take to read a piece of the result. After that the query loses its
// slot.
const sendTimeout = 2 * time.Minute

func (a *answer) deadline(at time.Time) error {
	if err := http.NewResponseController(a.w).SetWriteDeadline(at); err != nil {
		return fmt.Errorf("sending the result: %w", err)
	}
	return nil
}

// send sends the headers and the buffered part.
func (a *answer) send() error {
	header := a.w.Header()
	a.tag = rand.Text()[:16]
	if a.ask != nil {
		a.progress = a.ask()
	}
	header.Set("X-ClickHouse-Exception-Tag", a.tag)
	header.Set("X-ClickHouse-Summary", a.summary())
	if a.gzip != nil {
		header.Set("Content-Encoding", "gzip")
	}
	a.sent = true
	a.w.WriteHeader(http.StatusOK)
	held := a.held
	a.held = nil
	if _, err := a.encoded.Write(held); err != nil {
		return fmt.Errorf("sending the result: %w", err)
	}
	return nil
}

// finish ends a complete result.
func (a *answer) finish() {
	if !a.sent {
		if a.gzip == nil && a.packer == nil {
			a.w.Header().Set("Content-Length", strconv.Itoa(len(a.held)))
		}
		if err := a.send(); err != nil {
			a.abort()
		}
	}
	if a.gzip != nil {
		if err := a.gzip.Close(); err != nil {
			a.abort()
		}
	}
	if err := a.deadline(time.Time{}); err != nil { // the connection may be reused
		a.abort()
	}
}

// fail ends the answer with an error: a status and the engine's text. If part of the result has been sent, it
// writes the frame of ClickHouse's HTTP interface for such errors and breaks the connection.
func (a *answer) fail(err error) {
	e, ok := errors.AsType[*exceptionError](err)
	if !ok {
		// The client disconnected, or its request could not be read.
		e = exceptionf(codeUnknown, "UNKNOWN_EXCEPTION", "%s", err)
	}
	text := e.text
	if !strings.Contains(text, "(version ") {
		text += " (version " + a.server.version + " (official build))"
	}
	if !a.sent {
		header := a.w.Header()
		header.Set("Content-Type", "text/plain; charset=UTF-8")
		header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
		header.Set("X-ClickHouse-Summary", a.summary())
		header.Del("X-ClickHouse-Format")
		a.w.WriteHeader(httpStatus(e.code))
		_, _ = io.WriteString(a.w, text+"\n") // the client may have disconnected
		return
	}
	text += "\n"
	frame := fmt.Sprintf("\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n", a.tag, text, len(text), a.tag)
	if _, err := io.WriteString(a.encoded, frame); err == nil {
		if a.gzip != nil {
			_ = a.gzip.Flush() // the connection is closed in any case
		}
		_ = http.NewResponseController(a.w).Flush()
	}
	a.abort()
}

// abort breaks the connection, so that the client does not mistake the answer for complete.
func (a *answer) abort() { panic(http.ErrAbortHandler) }

// summary returns the value of X-ClickHouse-Summary.
func (a *answer) summary() string {
	p := a.progress
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	text, err := json.Marshal(map[string]string{
		"read_rows":          number(p.readRows),
		"read_bytes":         number(p.readBytes),
		"written_rows":       number(p.wroteRows),
		"written_bytes":      number(p.wroteBytes),
		"total_rows_to_read": "0",
		"result_rows":        number(p.resultRows),
		"result_bytes":       number(p.resultBytes),
		"elapsed_ns":         strconv.FormatInt(time.Since(a.begun).Nanoseconds(), 10),
	})
	if err != nil {
		panic("BUG: marshalling strings: " + err.Error())
	}
	return string(text)
}

// httpStatus returns the status that a ClickHouse server sends with an error.
func httpStatus(code int) int {
	switch code {
	case 194: // REQUIRED_PASSWORD
		return http.StatusUnauthorized
	case 192, 193, 497, codeAuthentication: // UNKNOWN_USER, WRONG_PASSWORD, ACCESS_DENIED
		return http.StatusForbidden
	case 6, 7, 25, 26, 27, 38, 41, 42, 43, 53, 62, 72, 117, 130, 131, 190, 215, 427, 457, codeBadArguments:
		// parse errors, wrong types, wrong numbers of arguments
		return http.StatusBadRequest
	case 46, 47, 50, 56, 60, 73, 81, 115, 155, 336: // UNKNOWN_FUNCTION, UNKNOWN_TABLE and so on
		return http.StatusNotFound
	case 159: // TIMEOUT_EXCEEDED
		return http.StatusRequestTimeout
	case codeTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeNotImplemented:
		return http.StatusNotImplemented
	case 209, 439: // SOCKET_TIMEOUT, CANNOT_SCHEDULE_TASK
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
