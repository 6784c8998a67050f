//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library has the C functions of libchdb, bound without cgo. Handles are opaque uintptrs.
type library struct {
	setSignalHandlers func(enabled int32)
	connect           func(argc int32, argv **byte) *uintptr
	closeConn         func(conn *uintptr)
	query             queryFunc
	streamQuery       queryFunc
	streamFetch       func(conn, stream uintptr) uintptr
	streamCancel      func(conn, stream uintptr)
	classify          func(conn uintptr, sql *byte, size uintptr, db *byte, dbSize uintptr, out *analysis) int32
	insert            queryFunc
	insertAppend      func(stream uintptr, data *byte, size uintptr) int32
	insertDone        func(stream uintptr) uintptr
	insertCancel      func(stream uintptr)
	insertError       func(stream uintptr) *byte
	insertDestroy     func(stream uintptr)
	resultDestroy     func(result uintptr)
	resultBuffer      func(result uintptr) *byte
	resultLength      func(result uintptr) uintptr
	resultError       func(result uintptr) *byte
	resultRows        func(result uintptr) uint64
	resultReadRows    func(result uintptr) uint64
	resultReadBytes   func(result uintptr) uint64
	resultWroteRows   func(result uintptr) uint64
	resultWroteBytes  func(result uintptr) uint64
}

// queryFunc is the signature of the three functions that start a statement with parameters.
type queryFunc func(conn uintptr, sql *byte, sqlSize uintptr, format *byte, formatSize uintptr,
	names **byte, nameSizes *uintptr, values **byte, valueSizes *uintptr, n uintptr) uintptr

// analysis is chdb_query_analysis_v1.
type analysis struct {
	StructSize uint32
	Statements uint32 // 0 if the text does not parse
	Flags      uint32
	Class      queryClass
}

// queryClass is chdb_query_class: the effect of a statement on persistent state.
type queryClass uint32

const (
	classReadOnly       queryClass = iota // SELECT, SHOW, DESCRIBE, EXPLAIN, EXISTS, CHECK
	classMutating                         // INSERT, CREATE, ALTER, DROP, …
	classMutatingGlobal                   // functions, users, the system database
	classControl                          // SET, USE, KILL, SYSTEM, …, and statements that write outside the engine
	classUnknown
)

// loadLibrary loads the library and binds its functions. The engine starts with the first connection.
func loadLibrary(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("loading the engine's library %s: %w", path, err)
	}
	lib := &library{}
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &lib.setSignalHandlers,
		"chdb_connect":                     &lib.connect,
		"chdb_close_conn":                  &lib.closeConn,
		"chdb_query_with_params_n":         &lib.query,
		"chdb_stream_query_with_params_n":  &lib.streamQuery,
		"chdb_stream_fetch_result":         &lib.streamFetch,
		"chdb_stream_cancel_query":         &lib.streamCancel,
		"chdb_classify_query_n":            &lib.classify,
		"chdb_stream_insert_with_params_n": &lib.insert,
		"chdb_stream_append":               &lib.insertAppend,
		"chdb_stream_done":                 &lib.insertDone,
		"chdb_stream_cancel_insert":        &lib.insertCancel,
		"chdb_stream_insert_error":         &lib.insertError,
		"chdb_destroy_insert_stream":       &lib.insertDestroy,
		"chdb_destroy_query_result":        &lib.resultDestroy,
		"chdb_result_buffer":               &lib.resultBuffer,
		"chdb_result_length":               &lib.resultLength,
		"chdb_result_error":                &lib.resultError,
		"chdb_result_rows_read":            &lib.resultRows,
		"chdb_result_storage_rows_read":    &lib.resultReadRows,
		"chdb_result_storage_bytes_read":   &lib.resultReadBytes,
		"chdb_result_rows_written":         &lib.resultWroteRows,
		"chdb_result_bytes_written":        &lib.resultWroteBytes,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("the engine's library %s is not a chdb %s: %w", path, Version, err)
		}
		purego.RegisterFunc(fn, symbol)
	}
	// Go's runtime needs its own signal handlers, and the engine would replace them.
	lib.setSignalHandlers(0)
	return lib, nil
}

// param is a value for a {name:Type} placeholder, escaped as in ClickHouse's HTTP interface: \t, \n, \\ and \0 are
// escapes, \N is NULL.
type param struct{ name, value string }

// cstrings has Go strings as C pointers and sizes. It pins their memory.
type cstrings struct {
	pin      runtime.Pinner
	pointers []*byte
	sizes    []uintptr
}

func (c *cstrings) add(s string) *byte {
	b := make([]byte, len(s)+1) // C needs a zero at the end
	copy(b, s)
	c.pin.Pin(&b[0])
	c.pointers = append(c.pointers, &b[0])
	c.sizes = append(c.sizes, uintptr(len(s)))
	return &b[0]
}

// arrays returns the two C arrays, or nil if they are empty.
func (c *cstrings) arrays() (**byte, *uintptr) {
	if len(c.pointers) == 0 {
		return nil, nil
	}
	c.pin.Pin(&c.pointers[0])
	c.pin.Pin(&c.sizes[0])
	return &c.pointers[0], &c.sizes[0]
}

// call calls one of the functions that start a statement.
func call(fn queryFunc, conn uintptr, sql, format string, params []param) uintptr {
	var text, names, values cstrings
	defer text.pin.Unpin()
	defer names.pin.Unpin()
	defer values.pin.Unpin()
	for _, p := range params {
		names.add(p.name)
		values.add(p.value)
	}
	n, nSizes := names.arrays()
	v, vSizes := values.arrays()
	return fn(conn, text.add(sql), uintptr(len(sql)), text.add(format), uintptr(len(format)),
		n, nSizes, v, vSizes, uintptr(len(params)))
}

// conn is a session of the engine, with settings, current database and temporary tables. It runs one
// statement at a time, and must not be used concurrently.
type conn struct {
	lib    *library
	handle *uintptr
}

// errConnect is the error for a refused connection. The library gives no reason.
var errConnect = errors.New("the engine refused to open a session")

// open starts a session. The arguments are --name=value pairs: settings and, for the first session of the
// process, the engine's options.
func (lib *library) open(args ...string) (*conn, error) {
	var argv cstrings
	defer argv.pin.Unpin()
	argv.add("analytics-engine")
	for _, arg := range args {
		argv.add(arg)
	}
	pointers, _ := argv.arrays()
	handle := lib.connect(int32(len(argv.pointers)), pointers) //nolint:gosec // a few hundred settings at most
	if handle == nil {
		return nil, errConnect
	}
	return &conn{lib, handle}, nil
}

// close ends the session. The engine stops with its last one.
func (c *conn) close() { c.lib.closeConn(c.handle) }

// classify analyzes a statement without running it.
func (c *conn) classify(sql string) analysis {
	var text cstrings
	defer text.pin.Unpin()
	out := &analysis{StructSize: uint32(unsafe.Sizeof(analysis{}))}
	if c.lib.classify(*c.handle, text.add(sql), uintptr(len(sql)), nil, 0, out) != 0 {
		return analysis{Class: classUnknown}
	}
	return *out
}

// query runs a statement to its end and returns the whole result. The caller must free it.
func (c *conn) query(sql, format string, params []param) (result, error) {
	r := result{c.lib, call(c.lib.query, *c.handle, sql, format, params)}
	if err := r.err(); err != nil {
		r.free()
		return result{}, err
	}
	return r, nil
}

// text runs a statement and returns its result as a string.
func (c *conn) text(sql, format string, params ...param) (string, error) {
	r, err := c.query(sql, format, params)
	if err != nil {
		return "", err
	}
	defer r.free()
	return string(r.bytes()), nil
}

// selection is the result of a running SELECT.
type selection struct {
	conn   *conn
	handle uintptr
}

// stream starts a SELECT whose result is read in pieces. The caller must close it.
func (c *conn) stream(sql, format string, params []param) (*selection, error) {
	r := result{c.lib, call(c.lib.streamQuery, *c.handle, sql, format, params)}
	if err := r.err(); err != nil {
		r.free()
		return nil, err
	}
	return &selection{c, r.handle}, nil
}

// next returns the next piece; an empty one ends the result. The caller must free it.
func (s *selection) next() (result, error) {
	r := result{s.conn.lib, s.conn.lib.streamFetch(*s.conn.handle, s.handle)}
	if err := r.err(); err != nil {
		r.free()
		return result{}, err
	}
	return r, nil
}

// close stops the query if it still runs.
func (s *selection) close() {
	s.conn.lib.streamCancel(*s.conn.handle, s.handle)
	s.conn.lib.resultDestroy(s.handle)
}

// insertion is a running INSERT that receives its data in pieces.
type insertion struct {
	conn   *conn
	handle uintptr
}

// insert starts an INSERT. The statement must not have a FORMAT clause. The caller must close the insertion.
func (c *conn) insert(sql, format string, params []param) (*insertion, error) {
	in := &insertion{c, call(c.lib.insert, *c.handle, sql, format, params)}
	if err := in.err(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *insertion) err() error {
	if text := in.conn.lib.insertError(in.handle); text != nil {
		return newException(goString(text))
	}
	return nil
}

// Write appends data in the statement's format. It blocks while the engine is busy.
func (in *insertion) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if in.conn.lib.insertAppend(in.handle, &p[0], uintptr(len(p))) != 0 {
		return 0, errInsertStopped
	}
	return len(p), nil
}

// errInsertStopped is returned when the engine accepts no more data; done returns the reason.
var errInsertStopped = errors.New("the engine stopped the INSERT")

// done ends and commits the data. The result only has counts; the caller must free it.
func (in *insertion) done() (result, error) {
	r := result{in.conn.lib, in.conn.lib.insertDone(in.handle)}
	if err := r.err(); err != nil {
		r.free()
		return result{}, err
	}
	return r, nil
}

// close aborts the insertion unless it is done.
func (in *insertion) close() {
	in.conn.lib.insertCancel(in.handle)
	in.conn.lib.insertDestroy(in.handle)
}

// result is a piece of a query's result in the engine's memory.
type result struct {
	lib    *library
	handle uintptr
}

// bytes returns the encoded result, valid until free.
func (r result) bytes() []byte {
	n := r.lib.resultLength(r.handle)
	if n == 0 {
		return nil
	}
	return unsafe.Slice(r.lib.resultBuffer(r.handle), n) //nolint:gosec // the size comes from the library
}

func (r result) err() error {
	if r.handle == 0 {
		return newException("")
	}
	if text := r.lib.resultError(r.handle); text != nil {
		return newException(goString(text))
	}
	return nil
}

func (r result) free() {
	if r.handle != 0 {
		r.lib.resultDestroy(r.handle)
	}
}

// progress is the progress of a query, with the fields of X-ClickHouse-Summary.
type progress struct{ readRows, readBytes, wroteRows, wroteBytes, resultRows, resultBytes uint64 }

// count adds the counts of a piece of the result.
func (p *progress) count(r result) {
	p.readRows += r.lib.resultReadRows(r.handle)
	p.readBytes += r.lib.resultReadBytes(r.handle)
	p.wroteRows += r.lib.resultWroteRows(r.handle)
	p.wroteBytes += r.lib.resultWroteBytes(r.handle)
	p.resultRows += r.lib.resultRows(r.handle)
	p.resultBytes += uint64(r.lib.resultLength(r.handle))
}

func goString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 { //nolint:gosec // C strings end in a zero
		n++
	}
	return string(unsafe.Slice(p, n)) //nolint:gosec // as counted above
}

// exceptionError is an error of the engine, or an error of this server in the same form.
type exceptionError struct {
	code int
	text string // "Code: 62. DB::Exception: …"
}

func (e *exceptionError) Error() string { return e.text }

// codeUnknown is UNKNOWN_EXCEPTION: the library failed without a ClickHouse error.
const codeUnknown = 1002

// newException parses the code in the engine's error text.
func newException(text string) *exceptionError {
	if rest, ok := strings.CutPrefix(text, "Code: "); ok {
		if digits, _, ok := strings.Cut(rest, "."); ok {
			if code, err := strconv.Atoi(digits); err == nil && code > 0 {
				return &exceptionError{code, text}
			}
		}
	}
	if text == "" {
		text = "The engine gave no reason"
	}
	return exceptionf(codeUnknown, "UNKNOWN_EXCEPTION", "%s", text)
}

// exceptionf returns an error in the form of the engine's errors.
func exceptionf(code int, name, format string, args ...any) *exceptionError {
	return &exceptionError{code, fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", code, fmt.Sprintf(format, args...), name)}
}
