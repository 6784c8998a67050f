package endpoints

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// export answers a run with a file streamed from ClickHouse: all rows, or those of the page requested. Nothing is stored. An error before the first bytes
// are sent is answered as for any run; after that, the connection is aborted, so that no client mistakes a part for the whole.
func (s *Runs) export(ctx context.Context, c *api.Caller, in *api.Input, p *result.Plan) *api.Response {
	caller := *c // so that the caller of other runs stays on the stack
	return &api.Response{Header: p.Notices, Stream: func(w http.ResponseWriter) error {
		if err := s.stream(ctx, &caller, in, p, w); err != nil {
			return s.failure(ctx, &caller, p.Endpoint, p.Version.Number, err)
		}
		return nil
	}}
}

func (s *Runs) stream(ctx context.Context, c *api.Caller, in *api.Input, p *result.Plan, w http.ResponseWriter) error {
	limit, offset := -1, 0
	if p.IsPage() {
		limit, offset = p.Limit, p.Offset
	}
	from, err := s.Executor.Stream(ctx, &c.Caller, p.Query, limit, offset)
	if err != nil {
		return err
	}
	out := &exportWriter{to: w, plan: p, start: c.Start, spent: api.Spent{Compile: from.Compiled}, until: from.Until}
	if in.Method == http.MethodHead {
		out.headers()
		w.WriteHeader(http.StatusOK)
		return nil
	}
	following, done := s.Executor.Following(ctx, p.Query)
	defer done()
	shown, err := from.Open(following)
	api.SetQuotas(w.Header(), shown)
	if err != nil {
		return err
	}
	defer from.Close()
	err = writeRows(following, from, p, out)
	if err == nil {
		err = out.finish()
	}
	switch {
	case err == nil:
		s.Registry.Executed(p.Endpoint, p.Version.Number, c.Start)
		s.logExport(c, p, from, http.StatusOK)
		return nil
	case out.sent:
		s.logExport(c, p, from, http.StatusInternalServerError)
		if following.Err() == nil { // neither did the client leave, nor was the run canceled
			s.Logger.Error("an export broke off", zap.String("request_id", c.RequestID), zap.String("path", in.URL.Path), api.Logged(err))
		}
		panic(http.ErrAbortHandler) // the only way to end a response as visibly broken
	case errors.Is(err, clickhouse.ErrNoFiles):
		return api.Invalid("format", "invalid_input", "%s is not available: this server speaks ClickHouse's native protocol, which writes no files. "+
			"Ask for csv or ndjson.", p.Format)
	}
	return err
}

// writeRows runs the query and writes its rows to out.
func writeRows(ctx context.Context, from *execution.Stream, p *result.Plan, out io.Writer) error {
	if file := result.Formats[p.Format].File; file != "" {
		return from.SendFile(ctx, file, out)
	}
	lines := &lineSink{out: out, plan: p, columns: from.Columns}
	if p.Format == result.AsCSV {
		lines.buf = rows.AppendCSVHeader(nil, from.Columns)
	}
	if err := from.Send(ctx, lines); err != nil {
		return err
	}
	return lines.flush()
}

// lineSink converts each row to a line, and writes the lines in larger pieces.
type lineSink struct {
	out     io.Writer
	plan    *result.Plan
	columns []string // names
	buf     []byte
	append  func(dst, row []byte) ([]byte, error) // set once the types of the columns are known
}

// pieceSize is roughly how much is sent at a time, in bytes.
const pieceSize = 64 << 10

// Columns receives the types of the columns.
func (s *lineSink) Columns(columns []clickhouse.Column) error {
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = c.Type
	}
	s.append = lineOf(s.plan, s.columns, types)
	return nil
}

func (s *lineSink) Row(row []byte) (err error) {
	if s.buf, err = s.append(s.buf, row); err != nil || len(s.buf) < pieceSize {
		return err
	}
	return s.flush()
}

func (s *lineSink) flush() error {
	_, err := s.out.Write(s.buf)
	s.buf = s.buf[:0]
	return err // from the writer
}

// exportWriter sends a file. It holds back the first piece, so that an export that fails early gets a status and a message, and a small file gets a
// Content-Length.
type exportWriter struct {
	to    http.ResponseWriter
	plan  *result.Plan
	start time.Time // of the request
	spent api.Spent
	until func() time.Time // when the running query is canceled, even if its rows are still being read
	held  []byte
	sent  bool // the headers have been sent
}

// sendTimeout is how long a client may take to receive a piece, so that one that stops reading does not keep its place.
const sendTimeout = 2 * time.Minute

func (w *exportWriter) Write(piece []byte) (int, error) {
	if !w.sent {
		if len(w.held)+len(piece) <= pieceSize {
			w.held = append(w.held, piece...)
			return len(piece), nil
		}
		if err := w.send(); err != nil {
			return 0, err
		}
	}
	w.deadline(earlier(time.Now().Add(sendTimeout), w.until()))
	return w.to.Write(piece) // fails if the client is gone
}

// deadline bounds the time for the next writes, if the connection supports it.
func (w *exportWriter) deadline(at time.Time) {
	_ = http.NewResponseController(w.to).SetWriteDeadline(at) // otherwise, the connection's own timeouts apply
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (w *exportWriter) headers() {
	h := w.to.Header()
	h["Content-Type"] = []string{result.Formats[w.plan.Format].Type}
	h["Content-Disposition"] = slices.Clone(w.plan.Attachment)
	h["X-Content-Type-Options"] = []string{noSniff}
	h["Vary"] = []string{api.Vary}
	h["Cache-Control"] = []string{"no-store"}
	h["Server-Timing"] = []string{string(w.spent.Append(nil, time.Since(w.start)))}
}

func (w *exportWriter) send() error {
	w.headers()
	w.sent = true
	w.deadline(time.Now().Add(sendTimeout))
	w.to.WriteHeader(http.StatusOK)
	_, err := w.to.Write(w.held)
	w.held = nil
	return err // fails if the client is gone
}

// finish completes the file.
func (w *exportWriter) finish() error {
	if !w.sent {
		w.to.Header().Set("Content-Length", strconv.Itoa(len(w.held)))
		if err := w.send(); err != nil {
			return err
		}
	}
	_ = http.NewResponseController(w.to).Flush() // buffered data would be sent without the deadline
	w.deadline(time.Time{})                      // the connection may carry another request
	return nil
}
