package execution

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Stream is a query whose rows go past the cache to their reader.
type Stream struct {
	ID       string // of the query on ClickHouse; each try has another one
	Columns  []string
	Compiled time.Duration // how long the compile took

	x      *Computation
	query  clickhouse.Query
	stored *Stored // the table that query reads; nil for none
	place  *admission.Place
	ended  func()
	until  time.Time

	limit, offset int
}

// Stream compiles a query whose rows are to be streamed: all of them, or those of a page when limit is not negative.
func (e *Executor) Stream(ctx context.Context, c *Caller, q *Query, limit, offset int) (*Stream, error) {
	began := time.Now()
	s := &Stream{ID: uuid.NewString(), x: e.Computation(c, q), limit: limit, offset: offset}
	if q.Stored != nil {
		err := s.prepare(ctx, s.x.compileStored, q.Stored)
		if err != nil && !byTable(ctx, err) {
			return nil, err
		}
		if err != nil {
			s.x.passOver(err)
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

// prepare compiles what is to be read. stored is the table that it reads; nil for none.
func (s *Stream) prepare(ctx context.Context, compile func(context.Context, time.Time) (*compiler.Compiled, error), stored *Stored) error {
	compiled, err := compile(ctx, time.Now())
	if err == nil {
		err = s.x.query.checkPages(compiled)
	}
	if err != nil {
		return err
	}
	s.stored, s.Columns = stored, compiled.Columns
	s.query = s.x.compiledQuery(compiled, s.ID, stored)
	s.query.Unbounded = true
	if s.limit >= 0 {
		s.query.Limit, s.query.Offset = s.limit, s.offset
	}
	return nil
}

// Open takes a place on ClickHouse, waiting for it if need be; the caller closes the stream. The quotas are those that the answer tells of;
// nil for none.
func (s *Stream) Open(ctx context.Context) (qs Quotas, err error) {
	s.place, err = s.x.Admit(ctx, admission.Awaited, time.Now())
	qs = s.x.ShownQuotas(0, err)
	if err != nil {
		return qs, err
	}
	s.ended = s.x.exec.Runs.beginWork(s.x.query.Key)
	return qs, nil
}

// Until is when the query that runs is ended, even if its rows are still being read. Each try has a time of its own.
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
	sent := &sentRows{Sink: to}
	return s.run(ctx, &sent.some, func(ctx context.Context) (clickhouse.Stats, error) {
		return s.x.house().Query(ctx, s.place, s.query, sent)
	})
}

// SendFile runs the query and has ClickHouse write its rows as a file.
func (s *Stream) SendFile(ctx context.Context, format clickhouse.FileFormat, to io.Writer) error {
	sent := &sentBytes{Writer: to}
	return s.run(ctx, &sent.some, func(ctx context.Context) (clickhouse.Stats, error) {
		return s.x.house().Export(ctx, s.place, s.query, format, sent)
	})
}

// sentRows notes whether a sink got a row.
type sentRows struct {
	clickhouse.Sink
	some bool
}

// Row passes a row on.
func (s *sentRows) Row(row []byte) error {
	s.some = true
	return s.Sink.Row(row)
}

// sentBytes notes whether a writer got something.
type sentBytes struct {
	io.Writer
	some bool
}

// Write passes bytes on.
func (s *sentBytes) Write(p []byte) (int, error) {
	s.some = true
	return s.Writer.Write(p)
}

// run runs the query: of a version with a table on that, and if that fails before anything was sent, as it is.
func (s *Stream) run(ctx context.Context, sent *bool, ask func(context.Context) (clickhouse.Stats, error)) error {
	err := s.ask(ctx, ask)
	switch {
	case s.stored == nil:
		return err
	case err == nil:
		s.x.query.meter(s.x.exec.Metrics).tables[fromTable].Inc()
		return nil
	case *sent || !byTable(ctx, err):
		return err
	}
	s.x.passOver(err)
	s.ID = uuid.NewString() // ClickHouse may still be ending the query that failed
	if err := s.prepare(ctx, s.x.compile, nil); err != nil {
		return err
	}
	return s.ask(ctx, ask)
}

func (s *Stream) ask(ctx context.Context, ask func(context.Context) (clickhouse.Stats, error)) error {
	asked := time.Now()
	s.until = s.x.house().Deadline(ctx)
	ctx, streamed := traced(ctx, "analytics.clickhouse", attribute.String("query_id", s.ID), attribute.Int64("project", s.x.Project.ID))
	stats, err := ask(ctx)
	streamed(err)
	s.x.query.meter(s.x.exec.Metrics).ran(stats, time.Since(asked), err)
	return err
}
