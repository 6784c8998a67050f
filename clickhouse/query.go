package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// Param is the value of a {name:Type} placeholder.
type Param struct {
	Name  string
	Type  string // as in the placeholder
	Value string // as it is for a String; else the text that ClickHouse reads the type from; \N is NULL for Nullable types
}

// ArrayParam is a parameter with a list of elements of a type.
func ArrayParam(name, typ string, list []string) Param {
	return Param{Name: name, Type: "Array(" + typ + ")", Value: "[" + literals(list) + "]"}
}

// Query is a SELECT for one project.
type Query struct {
	SQL     string
	Params  []Param
	Project int64  // whose rows the query may see; never 0
	ID      string // query_id; empty lets the server choose
	Comment string // log_comment, a JSON object
	// The part of the result that is wanted, cut from what the query's own LIMIT leaves: Limit rows behind Offset rows. Zero stands
	// for all rows, and for none passed over.
	Limit, Offset int
	// The most bytes that the rows may have together as JSON. Zero, or more than Config.MaxResultBytes, stands for that.
	MaxBytes int64
	// Unbounded takes off the bounds on rows and bytes of the result, for who passes it on and keeps none of it. Those on time and
	// memory stay, and so does [MaxRowBytes] where rows are read; and the server makes the result in smaller pieces.
	Unbounded bool
	// Yields lets other queries have the processor first, where the embedded engine runs it.
	Yields   bool
	Progress func(Progress) // called as rows are read, over HTTP only once it answers (see Running); may be nil

	system bool // reads system tables, without the project filter
}

// Progress is what a query has read so far.
type Progress struct {
	ReadRows, ReadBytes uint64
	TotalRows           uint64        // an estimate, 0 when there is none
	CPU                 time.Duration // processor time; known to Running alone
}

// Column is a column of a result: its name and its ClickHouse type.
type Column struct{ Name, Type string }

// Sink takes a result: Columns once, before the first row, then each row. An error stops the query and is
// returned by it.
type Sink interface {
	Columns(columns []Column) error
	// Row takes one row as a JSON array in the form of the contract (hogql.md, section 1). The bytes are
	// valid until Row returns.
	Row(json []byte) error
}

// Stats is what a query cost. Over HTTP, ReadRows and ReadBytes are what the server had read when it began to
// answer.
type Stats struct {
	Rows                uint64 // given to the sink
	ReadRows, ReadBytes uint64
	Elapsed             time.Duration
}

// Query runs a SELECT and gives its rows to the sink while they arrive. When it returns nil the sink has seen
// the whole result: an error of the server after the first rows is an error here, never a short result. When
// ctx ends, the server's query is stopped; so it is with a Timeout when it does not end soon after its limit, and with TooLarge as
// soon as more bytes have arrived than the result may have.
//
// Mistakes of the query and trouble of the server are *Error; an error of the sink or of ctx is returned wrapped.
func (c *Client) Query(ctx context.Context, q Query, sink Sink) (Stats, error) {
	began := time.Now()
	if q.Project <= 0 && !q.system {
		return Stats{}, fmt.Errorf("BUG: a query without a project: %d", q.Project)
	}
	if err := checkText(q.SQL); err != nil {
		return Stats{}, fmt.Errorf("BUG: a query whose text is not the compiler's: %w", err)
	}
	s, err := c.server(ctx)
	if err != nil {
		return Stats{}, err
	}
	ctx, cancel := c.withinLimit(ctx)
	defer cancel()
	if q.ID == "" {
		q.ID = uuid.NewString() // to be stopped by
	}
	out := &counter{sink: sink}
	run := c.queryHTTP
	if c.native != nil {
		run = c.queryNative
	}
	stats, err := run(ctx, s, q, out)
	c.stop(ctx, q.ID, err)
	stats.Rows = out.rows
	stats.Elapsed = time.Since(began)
	if out.err != nil {
		return stats, fmt.Errorf("taking the rows: %w", out.err)
	}
	if err != nil && q.system {
		return stats, c.ownFailure(ctx, "querying ClickHouse", err)
	}
	if err != nil {
		return stats, c.failure(ctx, "querying ClickHouse", err)
	}
	c.answered()
	return stats, nil
}

// counter counts the rows, and keeps an error of the sink apart from those of ClickHouse.
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

// Describe gives the columns of a query without running it, or its scalar subqueries where their values do not decide the columns.
func (c *Client) Describe(ctx context.Context, q Query) ([]Column, error) {
	// Of a view the engine finds out the columns alone. Asked about a subquery, it runs the scalar subqueries in it.
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

// encodeParams writes the values the way the server reads them.
func encodeParams(params []Param) driver.Parameters {
	encoded := make(driver.Parameters, len(params))
	for _, p := range params {
		encoded[p.Name] = encodeParam(p)
	}
	return encoded
}

var paramEscaper = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// encodeParam escapes a value as a field of TSV, which is how the server reads scalars. Values of arrays, tuples
// and maps are read as they are: they quote their own strings.
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
