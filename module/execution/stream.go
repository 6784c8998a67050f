package execution

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Stream is a query whose rows go past the cache to their reader.
type Stream struct {
	ID       string // of the query on ClickHouse
	Columns  []string
	Compiled time.Duration // how long the compile took

	x     *Computation
	query clickhouse.Query
	place *admission.Place
	ended func()
}

// Stream compiles a query whose rows are to be streamed: all of them, or those of a page when limit is not negative.
func (e *Executor) Stream(ctx context.Context, c Caller, q *Query, limit, offset int) (*Stream, error) {
	began := time.Now()
	x := e.Computation(c, q)
	compiled, err := x.compile(ctx, began)
	if err != nil {
		return nil, err
	}
	if err := q.checkPages(compiled); err != nil {
		return nil, err
	}
	s := &Stream{ID: uuid.NewString(), Columns: compiled.Columns, Compiled: time.Since(began), x: x}
	s.query = x.compiledQuery(compiled, s.ID)
	s.query.Unbounded = true
	if limit >= 0 {
		s.query.Limit, s.query.Offset = limit, offset
	}
	return s, nil
}

// Open takes a place on ClickHouse, waiting for it if need be; the caller closes the stream. The query is ended at until, whoever
// still reads its rows. The quotas are those that the answer tells of; nil for none.
func (s *Stream) Open(ctx context.Context) (until time.Time, qs Quotas, err error) {
	s.place, err = s.x.Admit(ctx, admission.Awaited, time.Now())
	qs = s.x.ShownQuotas(0, err)
	if err != nil {
		return until, qs, err
	}
	s.ended = s.x.exec.Runs.beginWork(s.x.query.Key)
	return s.x.exec.Warehouse.Deadline(ctx), qs, nil
}

// Close gives the place back.
func (s *Stream) Close() {
	if s.place != nil {
		s.ended()
		s.place.Leave()
	}
}

// Send runs the query and gives its rows to a sink.
func (s *Stream) Send(ctx context.Context, to clickhouse.Sink) error {
	return s.run(ctx, func(ctx context.Context) (clickhouse.Stats, error) {
		return s.x.exec.Warehouse.Query(ctx, s.place, s.query, to)
	})
}

// SendFile runs the query and has ClickHouse write its rows as a file.
func (s *Stream) SendFile(ctx context.Context, format clickhouse.FileFormat, to io.Writer) error {
	return s.run(ctx, func(ctx context.Context) (clickhouse.Stats, error) {
		return s.x.exec.Warehouse.Export(ctx, s.place, s.query, format, to)
	})
}

func (s *Stream) run(ctx context.Context, ask func(context.Context) (clickhouse.Stats, error)) error {
	asked := time.Now()
	ctx, streamed := traced(ctx, "analytics.clickhouse", attribute.String("query_id", s.ID), attribute.Int64("project", s.x.Project.ID))
	stats, err := ask(ctx)
	streamed(err)
	s.x.query.meter(s.x.exec.Metrics).ran(stats, time.Since(asked), err)
	return err
}
