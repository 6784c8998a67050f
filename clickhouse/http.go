package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

const (
	// rowFormat has one row per line, after a line of names and a line of types.
	rowFormat = "JSONCompactEachRowWithNamesAndTypes"
	// maxURLParams is the maximum size in bytes of parameters in the URL. Larger ones go into the body, because servers
	// and proxies limit the length of a URL.
	maxURLParams = 8 << 10
	// lineBuffer is the size of the read buffer.
	lineBuffer = 256 << 10
)

// wholeResult is a setting that makes the server buffer the whole result. The driver gets it, so that it does not
// search the body for exceptions, which would copy all of it; lineReader finds them while reading. The transport
// removes the setting from the request.
const wholeResult = "wait_end_of_query"

// queryHTTP runs a query over HTTP. The rows are passed on as the server encoded them.
func (c *Client) queryHTTP(ctx context.Context, h *host, s *server, q Query, sink Sink) (stats Stats, err error) {
	settings := c.settings(ctx, s, q)
	settings[wholeResult] = 1
	exchange := &exchange{format: rowFormat, params: encodeParams(q.Params), queryID: q.ID}
	defer func() { exchange.report(&stats) }()
	outer := ctx
	ctx, cancel := withoutDeadline(context.WithValue(ctx, exchangeKey{}, exchange))
	defer cancel()
	body, err := h.http.QueryFormat(driver.Context(ctx, driver.WithSettings(settings)), rowFormat, q.SQL)
	if err != nil {
		return stats, err
	}
	defer func() {
		if err != nil {
			cancel() // hang up: the rest of the body is not needed
		}
		err = errors.Join(err, body.Close())
	}()
	if err := readRows(body, c.bounds(q), sink); err != nil {
		return stats, err
	}
	return stats, context.Cause(outer)
}

// readRows reads names, types and rows until the end of the body. It stops with errTooLarge as soon as more has arrived than
// most allows.
func readRows(body io.Reader, most bounds, sink Sink) error {
	in := lineBuffers.Get().(*bufio.Reader)
	defer lineBuffers.Put(in)
	in.Reset(body)
	lines := &lineReader{in: in, most: most}
	var names, types []string
	for _, into := range []*[]string{&names, &types} {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(line, into); err != nil {
			return fmt.Errorf("reading the columns of a result: %w", err)
		}
	}
	if len(names) != len(types) {
		return errMalformedRow
	}
	columns := make([]Column, len(names))
	for i := range names {
		columns[i] = Column{Name: names[i], Type: types[i]}
	}
	if err := sink.Columns(columns); err != nil {
		return err
	}
	times := newTimeWriter(columns)
	for {
		row, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if times != nil {
			if row, err = times.row(row); err != nil {
				return err
			}
		}
		if err := sink.Row(row); err != nil {
			return err
		}
	}
}

// copyBuffer is the size of the buffer that copies a file.
const copyBuffer = 128 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

var lineBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lineBuffer) }}

// lineReader reads the lines of a result and detects an exception, which the server writes into the body at the start or
// in the middle of a row: as plain text, or in newer servers as a block between markers. JSON has no bare newlines, so
// exactly the lines from bracket to bracket are rows.
type lineReader struct {
	in   *bufio.Reader
	most bounds // for the rest of the result
	long []byte // a line longer than the reader's buffer
}

// next returns a row without its newline, valid until the next call, or io.EOF after the last one.
func (r *lineReader) next() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.collect(line)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(line) == 0 {
		return nil, io.EOF
	}
	if r.most.all -= int64(len(line)); r.most.all < 0 || int64(len(line)) > r.most.row {
		return nil, errTooLarge
	}
	row := bytes.TrimSuffix(line, []byte("\n"))
	if len(row) >= 2 && row[0] == '[' && row[len(row)-1] == ']' && err == nil {
		return row, nil
	}
	return nil, r.notARow(line)
}

// collect reads the rest of a line that does not fit into the reader's buffer. piece is the line's beginning.
func (r *lineReader) collect(piece []byte) (line []byte, err error) {
	r.long = r.long[:0]
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		size := len(r.long) + len(piece)
		if int64(size) > min(r.most.all, r.most.row) {
			return nil, errTooLarge
		}
		if size > cap(r.long) {
			r.long = slices.Grow(r.long, max(size, 2*cap(r.long))-len(r.long))
		}
		r.long = append(r.long, piece...)
		piece, err = r.in.ReadSlice('\n')
	}
	return append(r.long, piece...), err
}

var (
	// exceptionText matches an exception of ClickHouse, or of a library: "std::exception. Code: 1001, type: …".
	exceptionText = regexp.MustCompile(`(?s)Code: (\d+)(?:\. (DB::[A-Za-z]*Exception: .*)|, (?:type: |e\.code\(\) = ).*)`)
	exceptionEnd  = regexp.MustCompile(`\r?\n\d+ \S+\r?\n__exception__\s*$`)
)

// notARow returns the error for a line that is not a row.
func (r *lineReader) notARow(line []byte) error {
	text := bytes.Clone(line)
	rest, err := io.ReadAll(io.LimitReader(r.in, 32<<10))
	text = exceptionEnd.ReplaceAll(append(text, rest...), nil)
	if m := exceptionText.FindSubmatch(text); m != nil {
		if code, err := strconv.ParseInt(string(m[1]), 10, 32); err == nil {
			return &driver.Exception{Code: int32(code), Name: "DB::Exception", Message: string(m[2])}
		}
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("incomplete row: %w", io.ErrUnexpectedEOF)
}

type exchangeKey struct{}

// exchange is data passed between a query and the transport through the context.
type exchange struct {
	format  string
	params  driver.Parameters
	queryID string
	writes  bool   // it must not be sent twice
	summary string // the server's summary of the query, from the response header
}

// report copies the server's summary.
func (x *exchange) report(stats *Stats) {
	var summary struct {
		ReadRows  uint64 `json:"read_rows,string"`
		ReadBytes uint64 `json:"read_bytes,string"`
	}
	if x.summary == "" || json.Unmarshal([]byte(x.summary), &summary) != nil {
		return
	}
	stats.ReadRows, stats.ReadBytes = summary.ReadRows, summary.ReadBytes
}

// newTransport wraps the driver's transport.
func newTransport(base *http.Transport) (http.RoundTripper, error) {
	return &transport{base: base}, nil
}

// transport adds the parameters and the id of a query to its request. The driver would send all parameters in the
// URL, which fails if they are long, and use the id for its handshake too.
type transport struct{ base http.RoundTripper }

// CloseIdleConnections is called by the driver to close a connection: after each failed query, and at the end of its life.
func (t *transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

var errUnframed = errors.New("the response has neither a length nor chunks, so a broken connection would go unnoticed")

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	values := req.URL.Query()
	if !ok || values.Get("default_format") != x.format {
		return t.base.RoundTrip(req)
	}
	req, err := x.apply(req, values)
	if err != nil {
		return nil, err
	}
	send := t.base.RoundTrip
	if !x.writes {
		send = t.again
	}
	res, err := send(req)
	if err != nil {
		return nil, err
	}
	x.summary = res.Header.Get("X-ClickHouse-Summary")
	chunked := len(res.TransferEncoding) > 0 && res.TransferEncoding[0] == "chunked"
	if res.ContentLength < 0 && !chunked && res.ProtoMajor == 1 {
		return nil, errors.Join(errUnframed, res.Body.Close())
	}
	return res, nil
}

const (
	// maxClosed is how many connections in a row may turn out to be closed.
	maxClosed = 8
	// closedWithin is how soon a request fails on a connection that the server had closed. A request that fails later may have run.
	closedWithin = time.Second
)

// again sends a query, and sends it again on another connection if the server had closed the first one while it was idle. net/http does that only for
// requests that it considers idempotent.
func (t *transport) again(req *http.Request) (res *http.Response, err error) {
	var waited bool // the connection was idle before
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { waited = got.Reused }}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	for tries := 0; ; tries++ {
		waited = false
		began := time.Now()
		res, err = t.base.RoundTrip(req)
		if err == nil || tries == maxClosed || !waited || time.Since(began) > closedWithin || req.Context().Err() != nil || req.GetBody == nil ||
			!closedIdle(err) && !unreachable(err) {
			return res, err
		}
		body, failed := req.GetBody()
		if failed != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = body
		t.CloseIdleConnections() // the others have been idle as long
	}
}

// apply returns a copy of the request with the parameters in its URL, or in its body if they are long.
func (x *exchange) apply(req *http.Request, values url.Values) (*http.Request, error) {
	req = req.Clone(req.Context())
	values.Del(wholeResult)
	if x.queryID != "" {
		values.Set("query_id", x.queryID)
	}
	size := 0
	for name, value := range x.params {
		size += len(name) + len(value)
	}
	if size <= maxURLParams {
		for name, value := range x.params {
			values.Set("param_"+name, value)
		}
		req.URL.RawQuery = values.Encode()
		return req, nil
	}
	req.URL.RawQuery = values.Encode()
	query, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, name := range slices.Sorted(maps.Keys(x.params)) {
		if err := w.WriteField("param_"+name, x.params[name]); err != nil {
			return nil, err
		}
	}
	if err := w.WriteField("query", string(query)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.ContentLength = int64(form.Len())
	content := form.Bytes()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	req.Body, err = req.GetBody()
	return req, err
}
