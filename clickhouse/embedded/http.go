//go:build linux || darwin

package embedded

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/google/uuid"
)

const (
	// maxURI limits the request line and headers, where clickhouse-go puts parameters.
	maxURI = 32 << 20
	// maxText limits the text of a query, including the rows of an INSERT.
	maxText = 256 << 20
)

const (
	codeAuthentication = 516
	codeTooLarge       = 307 // TOO_MANY_BYTES
	codeNoSuchPath     = 60
)

// ServeHTTP implements the HTTP interface of a ClickHouse server.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-ClickHouse-Server-Display-Name", s.display)
	switch {
	case r.URL.Path == "/ping":
		header.Set("Content-Type", "text/html; charset=UTF-8")
		_, _ = io.WriteString(w, "Ok.\n") // the client may have disconnected
		return
	case r.URL.Path == watchPath:
		s.answerWatch(w, r)
		return
	case r.URL.Path != "/":
		http.Error(w, "There is no handle "+r.URL.Path, http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		header.Set("Allow", "GET, POST")
		http.Error(w, "Only GET and POST are supported", http.StatusMethodNotAllowed)
		return
	}
	values := r.URL.Query()
	out := newAnswer(s, w)
	if err := s.authenticate(r, values); err != nil {
		out.fail(err)
		return
	}
	q, err := s.readQuery(r, values, out)
	if err != nil {
		out.fail(err)
		return
	}
	header.Set("X-ClickHouse-Query-Id", q.id)
	header.Set("X-ClickHouse-Timezone", s.zone)
	if q.text == greeting && q.format == "Native" && values.Get("client_protocol_version") != "" {
		out.format("Native")
		_, _ = out.Write(s.greet()) // kept in the answer's buffer
		out.finish()
		return
	}
	if id, wait, ok := readKill(q); ok {
		if err := s.answerKill(r, q, id, wait); err != nil {
			out.fail(err)
			return
		}
		q.free = true
	}
	if err := s.run(r.Context(), q, out); err != nil {
		out.fail(err)
		return
	}
	out.finish()
}

// authenticate checks the user and the password in all places where ClickHouse clients put them.
func (s *server) authenticate(r *http.Request, values url.Values) error {
	user, password, ok := r.BasicAuth()
	if !ok {
		user, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
		if user == "" && password == "" {
			user, password = values.Get("user"), values.Get("password")
		}
	}
	u, k := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
	if subtle.ConstantTimeCompare(u[:], s.user[:])&subtle.ConstantTimeCompare(k[:], s.key[:]) != 1 {
		return exceptionf(codeAuthentication, "AUTHENTICATION_FAILED",
			"%s: Authentication failed: password is incorrect, or there is no user with such name", user)
	}
	return nil
}

// Names in the URL that are not settings. The value is true if the server supports them.
var reserved = map[string]bool{
	"query": true, "query_id": true, "database": true, "default_format": true, "compress": true, "decompress": true,
	"user": true, "password": true, "quota_key": true, "client_protocol_version": true, "wait_end_of_query": true,
	"buffer_size": true, "stacktrace": true, "close_session": true,
	"session_id": false, "session_timeout": false, "session_check": false, "role": false,
}

// readQuery reads a query from a request. It reads the body to its end, unless it has rows for an INSERT.
func (s *server) readQuery(r *http.Request, values url.Values, out *answer) (*query, error) {
	q := &query{
		id:       values.Get("query_id"),
		database: firstOf(values.Get("database"), r.Header.Get("X-ClickHouse-Database"), Database),
		format:   firstOf(values.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated"),
		settings: make(map[string]string),
		text:     values.Get("query"),
		whole:    isOn(values.Get("wait_end_of_query")),
	}
	if q.id == "" {
		q.id = uuid.NewString()
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values.Get(name)
		if taken, ok := reserved[name]; ok {
			if !taken {
				return nil, exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "%s is not supported by the embedded engine", name)
			}
			continue
		}
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			q.addParam(param, value)
			continue
		}
		q.settings[name] = value
	}
	if r.Method == http.MethodGet && q.settings["readonly"] == "" {
		q.settings["readonly"] = "2" // a GET must not change data
	}
	body, err := requestBody(r, values)
	if err != nil {
		return nil, err
	}
	if err := out.compression(r, values, q.settings); err != nil {
		return nil, err
	}
	if boundary, ok := formBoundary(r); ok {
		return q, q.readForm(body, boundary)
	}
	if q.text != "" {
		first := make([]byte, 1)
		if n, err := io.ReadFull(body, first); n == 1 {
			q.data = io.MultiReader(bytes.NewReader(first), body)
		} else if !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		return q, nil
	}
	text, err := io.ReadAll(io.LimitReader(body, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if len(text) > maxText {
		return nil, exceptionf(codeTooLarge, "TOO_MANY_BYTES", "The query is larger than %d bytes", maxText)
	}
	q.text = string(text)
	return q, nil
}

func (q *query) addParam(name, value string) { q.params = append(q.params, param{name, value}) }

// requestBody decodes the encodings that ClickHouse clients use for the body.
func requestBody(r *http.Request, values url.Values) (io.Reader, error) {
	body := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip", "deflate":
		decode := map[string]func(io.Reader) (io.ReadCloser, error){
			"gzip":    func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) },
			"deflate": zlib.NewReader,
		}[encoding]
		decoded, err := decode(body)
		if err != nil {
			return nil, exceptionf(codeBadArguments, "BAD_ARGUMENTS", "The body is not in %s: %s", encoding, err)
		}
		body = decoded
	default:
		return nil, exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "Content-Encoding %s is not supported", encoding)
	}
	if isOn(values.Get("decompress")) {
		body = framed{compress.NewReader(body)}
	}
	return body, nil
}

// framed reads ClickHouse's compressed frames, and returns a plain io.EOF after the last one.
type framed struct{ frames *compress.Reader }

func (f framed) Read(p []byte) (int, error) {
	n, err := f.frames.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.EOF // the reader wraps it; within a frame it would be io.ErrUnexpectedEOF
	}
	return n, err
}

// readKill reports whether the query is a KILL QUERY for a client's query id.
func readKill(q *query) (id string, wait, ok bool) {
	if q.data != nil || len(q.text) > 4096 {
		return "", false, false
	}
	st := readStatement(q.text)
	return st.killedQuery(q.text)
}

// answerKill kills the query, and replaces the KILL statement with a query for its result.
func (s *server) answerKill(r *http.Request, q *query, id string, wait bool) error {
	if on := q.settings["readonly"]; on != "" && on != "0" {
		return exceptionf(codeReadonly, "READONLY", "Cannot execute query in readonly mode")
	}
	format := readStatement(q.text).format
	status, killed := s.killByID(r.Context(), id, wait)
	text := ""
	if killed != nil {
		text = killed.text
	}
	q.params = []param{
		{"status", status},
		{"id", escapeText(id)},
		{"text", escapeText(text)},
	}
	q.text = "SELECT {status:String} AS kill_status, {id:String} AS query_id, 'default' AS user, {text:String} AS query" +
		" WHERE kill_status != ''"
	if format != "" {
		q.text += " FORMAT " + format
	}
	return nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func isOn(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && on
}

// greeting is the first query of clickhouse-go. The driver decodes only its answer by the protocol version in the
// request, and all later ones by the revision in that answer.
const greeting = "SELECT displayName(), version(), revision(), timezone()"

// greet returns the answer to the greeting: one block in the Native format of version 54454 or newer. The revision is
// zero, because the library writes all further blocks in the plain form of Native.
func (s *server) greet() []byte {
	b := []byte{
		1, 0, // block info: not an overflow block
		2, 0xff, 0xff, 0xff, 0xff, // bucket -1
		0,    // end of the block info
		4, 1, // columns, rows
	}
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	column := func(name, typ string) {
		text(name)
		text(typ)
		b = append(b, 0) // no custom serialization
	}
	column("displayName()", "String")
	text(s.display)
	column("version()", "String")
	text(s.version)
	column("revision()", "UInt32")
	b = append(b, 0, 0, 0, 0)
	column("timezone()", "String")
	text(s.zone)
	return b
}
