package module

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// export answers a run with a file that is streamed from ClickHouse: all rows, or those of the page that is asked for. Nothing of
// it is kept. What goes wrong before the first bytes are out is an error as for any run; later the connection is broken, so that
// no client takes a part for the whole.
func (rq *request) export(p *result.Plan) error {
	limit, offset := -1, 0
	if p.IsPage() {
		limit, offset = p.Limit, p.Offset
	}
	from, err := rq.rt.Stream(rq.r.Context(), rq.Caller.Caller, p.Query, limit, offset)
	if err != nil {
		return err
	}
	rq.spent.Compile = from.Compiled
	out := &exportWriter{rq: rq, p: p}
	if rq.r.Method == http.MethodHead {
		out.headers()
		rq.w.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, done := rq.rt.Following(rq.r.Context(), p.Query)
	defer done()
	var shown execution.Quotas
	out.until, shown, err = from.Open(ctx)
	rq.showQuotas(shown)
	if err != nil {
		return err
	}
	defer from.Close()
	err = writeRows(ctx, from, p.Format, out)
	if err == nil {
		err = out.finish()
	}
	switch {
	case err == nil:
		rq.rt.registry.Executed(p.Endpoint, p.Version.Number, rq.Start)
		rq.logExport(p, from.ID, http.StatusOK)
		return nil
	case out.sent:
		rq.logExport(p, from.ID, http.StatusInternalServerError)
		if ctx.Err() == nil { // neither the client has gone, nor was it cancelled
			rq.rt.logger.Error("an export broke off", zap.String("request_id", rq.RequestID), zap.String("path", rq.r.URL.Path), api.Logged(err))
		}
		panic(http.ErrAbortHandler) // the only way to end a response visibly broken
	case errors.Is(err, clickhouse.ErrNoFiles):
		return api.Invalid("format", "invalid_input", "%s is not available: this server speaks ClickHouse's native protocol, which writes no files. "+
			"Ask for csv or ndjson.", p.Format)
	}
	return err
}

// writeRows runs the query and writes its rows to out.
func writeRows(ctx context.Context, from *execution.Stream, form result.Format, out io.Writer) error {
	if file := result.Formats[form].File; file != "" {
		return from.SendFile(ctx, file, out)
	}
	lines := &lineSink{out: out, append: lineOf(form, from.Columns)}
	if form == result.AsCSV {
		lines.buf = rows.AppendCSVHeader(nil, from.Columns)
	}
	if err := from.Send(ctx, lines); err != nil {
		return err
	}
	return lines.flush()
}

// lineSink makes a line of each row, and writes them in larger pieces.
type lineSink struct {
	out    io.Writer
	buf    []byte
	append func(dst, row []byte) ([]byte, error)
}

// pieceSize is about how much is sent at once.
const pieceSize = 64 << 10

func (*lineSink) Columns([]clickhouse.Column) error { return nil }

func (s *lineSink) Row(row []byte) (err error) {
	if s.buf, err = s.append(s.buf, row); err != nil || len(s.buf) < pieceSize {
		return err
	}
	return s.flush()
}

func (s *lineSink) flush() error {
	_, err := s.out.Write(s.buf)
	s.buf = s.buf[:0]
	return err // the writer's own words
}

// exportWriter sends a file. It keeps the first part back, so that an export that fails early fails with a status and a message,
// and a small file has its length in the headers.
type exportWriter struct {
	rq   *request
	p    *result.Plan
	held []byte
	sent bool // the headers are out
	// When the query is ended, whoever still reads its rows.
	until time.Time
}

// sendTimeout is how long a client may take for a piece of a file: one that nobody reads keeps its place no longer.
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
	w.deadline(earlier(time.Now().Add(sendTimeout), w.until))
	return w.rq.w.Write(piece) // a client that is gone
}

// deadline bounds the time that the next writes may take, where the connection can.
func (w *exportWriter) deadline(at time.Time) {
	_ = http.NewResponseController(w.rq.w).SetWriteDeadline(at) // without one, the connection's own timeouts hold
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (w *exportWriter) headers() {
	h := w.rq.w.Header()
	h["Content-Type"] = result.Formats[w.p.Format].Header
	h["Content-Disposition"] = w.p.Attachment
	h["X-Content-Type-Options"] = noSniff
	h["Vary"] = api.VaryHeader
	h["Cache-Control"] = []string{"no-store"}
	h["Server-Timing"] = []string{string(w.rq.spent.Append(nil, time.Since(w.rq.Start)))}
}

func (w *exportWriter) send() error {
	w.headers()
	w.sent = true
	w.deadline(time.Now().Add(sendTimeout))
	w.rq.w.WriteHeader(http.StatusOK)
	_, err := w.rq.w.Write(w.held)
	w.held = nil
	return err // a client that is gone
}

// finish ends a whole file.
func (w *exportWriter) finish() error {
	if !w.sent {
		w.rq.w.Header().Set("Content-Length", strconv.Itoa(len(w.held)))
		if err := w.send(); err != nil {
			return err
		}
	}
	_ = http.NewResponseController(w.rq.w).Flush() // what is sent later has no deadline
	w.deadline(time.Time{})                        // the connection may bring another request
	return nil
}
