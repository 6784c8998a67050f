package execution

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Stream is a query whose rows go to their reader without being cached.
type Stream struct {
	ID       string // of the query on ClickHouse; each try has its own
	Columns  []string
	Compiled time.Duration // how long the compile took

	x      *Computation
	query  clickhouse.Query
	reads  schema.Reads
	stored *Stored // the table that query reads; nil for none
	place  *admission.Place
	ended  func()
	until  time.Time

	limit, offset int
}

// Stream compiles a query whose rows are to be streamed: all of them, or those of a page if limit is not negative.
func (e *Executor) Stream(ctx context.Context, c *Caller, q *Query, limit, offset int) (*Stream, error) {
	began := time.Now()
	s := &Stream{ID: uuid.NewString(), x: e.NewComputation(c, q), limit: limit, offset: offset}
	if q.Stored != nil {
		err := s.prepare(ctx, s.x.compileStored, q.Stored)
		if err != nil && !byTable(ctx, err) {
			return nil, err
		}
		if err != nil {
			s.x.reportTableFailure(err)
		}
	}
	if s.stored == nil {
		if err := s.prepare(ctx, s.x.compile, nil); err != nil {
			return nil, err
		}
	}
	s.Compiled = time.Since(began)
	return s, nil
}

// prepare compiles the query. stored is the table that it reads; nil for none.
func (s *Stream) prepare(ctx context.Context, compile func(context.Context, time.Time) (*compiler.Compiled, error), stored *Stored) error {
	compiled, err := compile(ctx, time.Now())
	if err == nil {
		err = s.x.query.checkPages(compiled)
	}
	if err != nil {
		return err
	}
	s.stored, s.Columns, s.reads = stored, compiled.Columns, compiled.Reads
	s.query = s.x.compiledQuery(compiled, s.ID, stored)
	s.query.Unbounded = true
	if s.limit >= 0 {
		s.query.Limit, s.query.Offset = s.limit, s.offset
	}
	return nil
}

// Open takes a place on ClickHouse, waiting for it if need be; the caller closes the stream. The quotas are those that the answer mentions; nil for none.
func (s *Stream) Open(ctx context.Context) (qs Quotas, err error) {
	s.x.syncLog(ctx, s.reads.Tables)
	s.place, err = s.x.Admit(ctx, admission.Awaited, time.Now())
	qs = s.x.ShownQuotas(0, err)
	if err != nil {
		return qs, err
	}
	s.ended = s.x.exec.Runs.beginWork(s.x.query.Key)
	return qs, nil
}

// Until returns when the running query is ended, even if its rows are still being read. Each try has a deadline of its own.
func (s *Stream) Until() time.Time { return s.until }

// Close gives the place back.
func (s *Stream) Close() {
	if s.place != nil {
		s.ended()
		s.place.Leave()
	}
}

// Send runs the query and gives its rows to a sink.
func (s *Stream) Send(ctx context.Context, to clickhouse.Sink) error {
	return s.run(ctx, func(ctx context.Context, sent *sent) (clickhouse.Stats, error) {
		return s.x.warehouse().Query(ctx, s.place, s.query, &sentRows{Sink: to, sent: sent})
	})
}

// SendFile runs the query and lets ClickHouse write its rows as a file.
func (s *Stream) SendFile(ctx context.Context, format clickhouse.FileFormat, to io.Writer) error {
	return s.run(ctx, func(ctx context.Context, sent *sent) (clickhouse.Stats, error) {
		return s.x.warehouse().Export(ctx, s.place, s.query, format, &sentBytes{Writer: to, sent: sent})
	})
}

// sent counts what was sent of an answer.
type sent struct {
	allow func() error // called before anything is sent
	any   bool
	rows  uint64 // 0 for a file that ClickHouse writes
	bytes int64  // of the rows as they came from ClickHouse, or of the file
}

// begin must be called before anything is sent. If it returns an error, nothing may be sent.
func (s *sent) begin() error {
	if s.any {
		return nil
	}
	err := s.allow()
	s.any = err == nil
	return err
}

// sentRows passes rows on to a sink if they may be sent.
type sentRows struct {
	clickhouse.Sink
	*sent
}

// Row passes a row on.
func (s *sentRows) Row(row []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.Sink.Row(row); err != nil {
		return err
	}
	s.rows++
	s.bytes += int64(len(row))
	return nil
}

// sentBytes passes bytes on to a writer if they may be sent.
type sentBytes struct {
	io.Writer
	*sent
}

// Write passes bytes on.
func (s *sentBytes) Write(p []byte) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	n, err := s.Writer.Write(p)
	s.bytes += int64(n)
	return n, err
}

// asking runs the query of a stream and sends its rows.
type asking func(context.Context, *sent) (clickhouse.Stats, error)

// run runs the query. If the version has a table it reads that, and if this fails before anything was sent, it runs the query itself. If properties
// now have other kinds of values than the query was compiled for, it is compiled again for any kind.
func (s *Stream) run(ctx context.Context, ask asking) error {
	some, err := s.ask(ctx, ask)
	if s.stored != nil {
		if err == nil {
			s.x.query.meter(s.x.exec.Metrics).table(fromTable)
		}
		if err == nil || some || !byTable(ctx, err) {
			return err
		}
		s.x.reportTableFailure(err)
		err = s.again(ctx, s.x.compile, ask)
	}
	if errors.Is(err, errOtherValues) {
		err = s.again(ctx, s.x.compileForAll, ask)
	}
	return err
}

// FromTable reports whether the rows are from the table of a materialized version. It is known once the query has run.
func (s *Stream) FromTable() bool { return s.stored != nil }

// again compiles and runs the query itself, when nothing has been sent.
func (s *Stream) again(ctx context.Context, compile func(context.Context, time.Time) (*compiler.Compiled, error), ask asking) error {
	s.ID = uuid.NewString() // ClickHouse may still be ending the previous one
	if err := s.prepare(ctx, compile, nil); err != nil {
		return err
	}
	_, err := s.ask(ctx, ask)
	return err
}

// ask runs the query once, and counts and logs it. If properties may have had values of other kinds when it began than it was compiled for, nothing
// was sent and the error is errOtherValues. By the first row, or the end, ClickHouse has chosen what it reads.
func (s *Stream) ask(ctx context.Context, ask asking) (some bool, err error) {
	asked := time.Now()
	s.until = s.x.warehouse().Deadline(ctx)
	ctx, streamed := traced(ctx, "analytics.clickhouse", attribute.String("query_id", s.ID), attribute.Int64("project", s.x.Project.ID))
	out := &sent{allow: func() error {
		if !s.x.exec.kindsUnchanged(ctx, s.x.Project.ID, s.reads.Values) {
			return errOtherValues
		}
		return nil
	}}
	stats, err := ask(ctx, out)
	if err == nil {
		err = out.begin()
	}
	failure := err
	if errors.Is(err, errOtherValues) {
		failure = nil // our own error, not ClickHouse's
	}
	streamed(failure)
	s.x.query.meter(s.x.exec.Metrics).ran(stats, time.Since(asked), failure)
	s.x.log(s.ID, asked, out.rows, out.bytes, failure)
	return out.any, err
}
