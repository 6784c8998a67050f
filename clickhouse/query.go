package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// Param is the value for a {name:Type} placeholder.
type Param struct {
	Name  string
	Type  string // as in the placeholder
	Value string // the value of a String; else the text form of the type in ClickHouse; \N is NULL for Nullable types
}

// ArrayParam is a parameter with a list of elements of a type.
func ArrayParam(name, typ string, list []string) Param {
	return Param{Name: name, Type: "Array(" + typ + ")", Value: "[" + literals(list) + "]"}
}

// Query is a SELECT for one project.
type Query struct {
	SQL     string
	Params  []Param
	Project int64  // the project whose rows the query may see; never 0
	ID      string // query_id; empty lets the server choose
	Comment string // log_comment, a JSON object
	// The part of the result to return, after the query's own LIMIT: Limit rows, after skipping Offset rows. A zero Limit means all
	// rows.
	Limit, Offset int
	// The maximum size in bytes of all rows as JSON. Zero, or more than Config.MaxResultBytes, means Config.MaxResultBytes.
	MaxBytes int64
	// Unbounded removes the limits on rows and bytes of the result, for callers that pass it on without keeping it. The limits on
	// time and memory remain, and so does [MaxRowBytes] if rows are read; the server uses smaller blocks.
	Unbounded bool
	// Yields gives other queries priority for the CPU. It only affects the embedded engine.
	Yields bool
	// EventsFrom is the time of the earliest events that the query may see; zero for all.
	EventsFrom time.Time
	// Tables are additional tables that the query reads. Like the physical ones, they have a column for the project: see Materialization.
	Tables []string

	// Spread lets any host answer if the DSN spreads queries. Without it, the first host that answers is asked, which has the latest writes.
	Spread bool
	// First is the host that is asked first, if it answers; zero for any.
	First Host

	on       *host   // the only host to ask; nil for any
	system   bool    // reads system tables, without the project filter
	projects []int64 // instead of Project: see CollectOf
	rights   bool    // asks what our user may do, which is less in a read-only query
	inOrder  bool    // groups by the order of the table, without holding all groups in memory
	// Called if the embedded engine may go on with the query after the call returns, because some functions do not notice that a query is stopped; ended
	// is called when it has ended. May be nil.
	Lingers func() (ended func())

	longest time.Duration // in place of Config.MaxExecutionTime; zero for that
}

// Column is a column of a result: its name and its ClickHouse type.
type Column struct{ Name, Type string }

// Sink receives a result: Columns is called once, before the first row, then Row for each row. An error stops the
// query, which returns it.
type Sink interface {
	Columns(columns []Column) error
	// Row receives one row as a JSON array in PostHog's format. The bytes are valid until Row returns.
	Row(json []byte) error
}

// Stats has the cost of a query. Over HTTP, ReadRows and ReadBytes are what the server had read when it began to
// respond.
type Stats struct {
	Rows                uint64 // passed to the sink
	ReadRows, ReadBytes uint64
	Elapsed             time.Duration
	Elsewhere           bool // a host other than Query.First answered
}

// Query runs a SELECT and passes its rows to the sink while they arrive. If it returns nil, the sink has received the
// whole result: an error of the server after the first rows is returned, and never truncates the result silently. When
// ctx ends, the query is stopped on the server. It is also stopped, with a Timeout, if it does not end soon after its
// limit, and, with TooLarge, as soon as more bytes have arrived than the result may have.
//
// Errors of the query and of the server are *Error; errors of the sink or of ctx are returned wrapped.
func (c *Client) Query(ctx context.Context, q Query, sink Sink) (Stats, error) {
	began := time.Now()
	if q.Project <= 0 && !q.system {
		return Stats{}, fmt.Errorf("BUG: a query without a project: %d", q.Project)
	}
	if err := checkText(q.SQL); err != nil {
		return Stats{}, fmt.Errorf("BUG: a query whose text is not the compiler's: %w", err)
	}
	ctx, cancel := c.withinLimit(ctx, q)
	defer cancel()
	if q.ID == "" {
		q.ID = uuid.NewString() // needed to stop it
	}
	var stats Stats
	out := &counter{sink: sink}
	hosts, begin := c.hostsOf(&q), func(error) bool { return false }
	rows := Sink(out)
	var kept *held
	if len(hosts) > 1 {
		kept = &held{to: out, again: out.restarter()}
		rows, begin = kept, func(error) bool { return out.err == nil && kept.restart() }
	}
	elsewhere := false
	err := c.tryEach(ctx, hosts, begin, func(ctx context.Context, h *host) (err error) {
		elsewhere = q.First != Host{} && q.First != Host{h}
		s, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		q := q.sentTo(h != hosts[0])
		run := c.queryHTTP
		if h.native != nil {
			run = c.queryNative
		}
		stats, err = run(ctx, h, s, q, rows)
		c.stop(ctx, h, q.ID, err)
		c.linger(ctx, h, q, err)
		if err == nil && kept != nil {
			err = kept.flush()
		}
		if out.err != nil {
			err = nil // the sink failed, not the host
		}
		return err
	})
	stats.Rows, stats.Elsewhere = out.rows, elsewhere
	stats.Elapsed = time.Since(began)
	if out.err != nil {
		return stats, fmt.Errorf("processing the rows: %w", out.err)
	}
	if err != nil && q.system {
		return stats, c.ownFailure(ctx, "querying ClickHouse", err)
	}
	if err != nil {
		return stats, c.failure(ctx, "querying ClickHouse", err)
	}
	return stats, nil
}

// hostsOf returns the hosts to try a query on, in order.
func (c *Client) hostsOf(q *Query) []*host {
	if q.on != nil {
		return []*host{q.on}
	}
	hosts := c.order(q.Spread && q.First == Host{})
	if first := q.First.of; first != nil && hosts[0] != first && !first.out.Load() && !first.unfit.Load() {
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(h *host) bool { return h == first })
		hosts = slices.Insert(hosts, 0, first)
	}
	return hosts
}

// sentTo returns the query as it is sent to a host. A repeated query has another id: the server that could not be reached may still run it, and may
// be the same one under another name.
func (q Query) sentTo(repeated bool) Query {
	if repeated {
		q.ID = uuid.NewString()
	}
	return q
}

// counter counts the rows, and distinguishes errors of the sink from those of ClickHouse.
type counter struct {
	sink Sink
	rows uint64
	err  error
}

func (o *counter) Columns(columns []Column) error {
	o.err = o.sink.Columns(columns)
	return o.err
}

func (o *counter) Row(json []byte) error {
	o.rows++
	o.err = o.sink.Row(json)
	return o.err
}

// restarter returns a function that restarts the sink; nil if the sink can't.
func (o *counter) restarter() func() bool {
	sink, ok := o.sink.(Restarter)
	if !ok {
		return nil
	}
	return func() bool {
		o.rows = 0
		return sink.Restart()
	}
}

// Describe returns the columns of a query without running it. It does not run scalar subqueries either, unless the columns depend
// on their values.
func (c *Client) Describe(ctx context.Context, q Query) ([]Column, error) {
	// For a view, the engine only determines the columns. For a subquery, it runs the scalar subqueries in it.
	columns, err := c.describe(ctx, q, "DESCRIBE TABLE view(")
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != UserError {
		return columns, err
	}
	return c.describe(ctx, q, "DESCRIBE TABLE (")
}

func (c *Client) describe(ctx context.Context, q Query, opening string) ([]Column, error) {
	q.SQL = opening + q.SQL + "\n)"
	var columns []Column
	err := c.Collect(ctx, q, func(cells []Cell) error {
		columns = append(columns, Column{Name: cells[0].Text(), Type: cells[1].Text()})
		return nil
	})
	return columns, err
}

// encodeParams encodes the values as the server expects them.
func encodeParams(params []Param) driver.Parameters {
	encoded := make(driver.Parameters, len(params))
	for _, p := range params {
		encoded[p.Name] = encodeParam(p)
	}
	return encoded
}

var paramEscaper = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// encodeParam escapes a value as a TSV field, which is how the server reads scalars. Arrays, tuples and maps are not
// escaped, because they quote their own strings.
func encodeParam(p Param) string {
	if p.Value == `\N` && strings.HasPrefix(p.Type, "Nullable(") {
		return p.Value
	}
	switch parseType(p.Type).name {
	case "Array", "Tuple", "Map":
		return p.Value
	}
	return paramEscaper.Replace(p.Value)
}
