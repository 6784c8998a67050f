package clickhouse

import (
	"context"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// queryNative runs a query over the native protocol and turns its blocks into the rows that the server would send
// over HTTP.
func (c *Client) queryNative(ctx context.Context, h *host, s *server, q Query, sink Sink) (stats Stats, err error) {
	settings, most := c.settings(ctx, s, q), c.bounds(q)
	if s.settings["max_block_size"] {
		settings["max_block_size"] = blockRows(most)
	}
	options := []driver.QueryOption{
		driver.WithSettings(settings),
		driver.WithBlockBufferSize(1), // see aheadBytes
		driver.WithProgress(func(p *driver.Progress) {
			stats.ReadRows += p.Rows
			stats.ReadBytes += p.Bytes
		}),
	}
	if q.ID != "" {
		options = append(options, driver.WithQueryID(q.ID))
	}
	if len(q.Params) > 0 {
		options = append(options, driver.WithParameters(encodeParams(q.Params)))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		options = append(options, driver.WithSpan(span)) // the server's own spans join the trace
	}
	ctx, sink = metered(ctx, most, sink)
	err = c.queryOnce(ctx, h, options, q.SQL, sink, readBlocks)
	if hard, ok := errors.AsType[*hardTypesError](err); ok {
		if s.settings[keepOrder.name] {
			settings[keepOrder.name] = keepOrder.value
		}
		again := uuid.NewString()
		options = append(options, driver.WithSettings(settings), driver.WithQueryID(again)) // the first one may still be ending
		err = c.queryOnce(ctx, h, options, q.SQL, sink, hard.readFormatted)
		c.stop(ctx, h, again, err)
	}
	return stats, err
}

// blockRows returns how many rows a block of a result may have. A block of a sorted result has that many, whatever their size, and all of it must fit into
// aheadBytes. That is no question for a result that fits as a whole; one that is passed on has blocks of fewer rows.
func blockRows(most bounds) int {
	if most.all <= aheadBytes {
		return 2048
	}
	return 256
}

// reader reads a query's result into the sink. It calls hangUp to stop the query early.
type reader func(ctx context.Context, conn driver.Conn, sql string, sink Sink, hangUp func()) error

// queryOnce runs one query on one connection.
func (c *Client) queryOnce(ctx context.Context, h *host, options []driver.QueryOption, sql string, sink Sink, read reader) error {
	var hungUp bool
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	counting, _ := ctx.Value(meterKey{}).(*meter)
	err := h.with(ctx, func(lent context.Context, conn driver.Conn) error {
		return read(driver.Context(lent, options...), conn, sql, sink, func() {
			hungUp = true
			stop()
		})
	})
	switch {
	case err != nil && counting.spent():
		return errTooLarge
	case hungUp || err != nil:
		return err
	}
	return context.Cause(ctx)
}

// keepOrder preserves the order of rows of a subquery.
var keepOrder = setting{"query_plan_remove_redundant_sorting", 0}

// hardTypesError is returned for a result with types that the driver cannot decode without loss, such as tuples in
// tuples or maps in arrays.
type hardTypesError struct{ columns []Column }

func (e *hardTypesError) Error() string { return "the columns have types that the driver cannot read" }

// readFormatted runs the query again and lets the server format each row as JSON.
func (e *hardTypesError) readFormatted(ctx context.Context, conn driver.Conn, sql string, sink Sink, hangUp func()) (err error) {
	rows, err := conn.Query(ctx, "SELECT formatRowNoNewline('JSONCompactEachRow', *) FROM ("+sql+"\n)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := sink.Columns(e.columns); err != nil {
		hangUp()
		return err
	}
	times := newTimeWriter(e.columns)
	var row []byte
	for rows.Next() {
		if err := rows.Scan(&row); err != nil {
			hangUp()
			return err
		}
		text := row
		if times != nil {
			if text, err = times.row(row); err != nil {
				hangUp()
				return err
			}
		}
		if err := sink.Row(text); err != nil {
			hangUp()
			return err
		}
	}
	return rows.Err()
}

// readBlocks runs the query and formats the rows of its blocks as JSON.
func readBlocks(ctx context.Context, conn driver.Conn, sql string, sink Sink, hangUp func()) (err error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types := rows.ColumnTypes()
	columns := make([]Column, len(types))
	cells := make([]any, len(types))
	writers := make([]func([]byte) ([]byte, error), len(types))
	easy := true
	for i, t := range types {
		columns[i] = Column{Name: t.Name(), Type: t.DatabaseTypeName()}
		parsed := parseType(columns[i].Type)
		easy = easy && parsed.easy()
		cells[i], writers[i] = newCell(parsed)
	}
	if !easy {
		hangUp()
		return &hardTypesError{columns: columns}
	}
	if err := sink.Columns(columns); err != nil {
		hangUp()
		return err
	}
	var buf []byte
	for rows.Next() {
		if err := rows.Scan(cells...); err != nil {
			hangUp()
			return err
		}
		buf = append(buf[:0], '[')
		for i, write := range writers {
			if i > 0 {
				buf = append(buf, ',', ' ')
			}
			if buf, err = write(buf); err != nil {
				hangUp()
				return err
			}
		}
		buf = append(buf, ']')
		if err := sink.Row(buf); err != nil {
			hangUp()
			return err
		}
	}
	return rows.Err()
}

// newCell returns a destination for the driver's scan of a column, and a function that appends the value as JSON.
func newCell(t chType) (any, func([]byte) ([]byte, error)) {
	switch t.name {
	case "UInt8":
		return scalar(t, appendUint[uint8])
	case "UInt16":
		return scalar(t, appendUint[uint16])
	case "UInt32":
		return scalar(t, appendUint[uint32])
	case "UInt64":
		return scalar(t, appendUint[uint64])
	case "Int8":
		return scalar(t, appendInt[int8])
	case "Int16":
		return scalar(t, appendInt[int16])
	case "Int32":
		return scalar(t, appendInt[int32])
	case "Int64":
		return scalar(t, appendInt[int64])
	case "Int128", "Int256", "UInt128", "UInt256":
		return scalar(t, func(b []byte, v big.Int) []byte { return v.Append(b, 10) })
	case "Float32":
		return scalar(t, func(b []byte, v float32) []byte { return appendFloat(b, float64(v), 32) })
	case "Float64":
		return scalar(t, func(b []byte, v float64) []byte { return appendFloat(b, v, 64) })
	case "Bool":
		return scalar(t, strconv.AppendBool)
	case "String", "FixedString", "Enum8", "Enum16":
		return scalar(t, chjson.AppendString)
	case "UUID":
		return scalar(t, func(b []byte, v uuid.UUID) []byte { return chjson.AppendString(b, v.String()) })
	case "IPv4", "IPv6":
		return scalar(t, func(b []byte, v netip.Addr) []byte { return chjson.AppendString(b, v.String()) })
	case "Decimal", "Decimal32", "Decimal64", "Decimal128", "Decimal256":
		return scalar(t, func(b []byte, v decimal.Decimal) []byte { return chjson.AppendString(b, v.String()) })
	case "Date", "Date32":
		return scalar(t, appendDate)
	case "DateTime", "DateTime32", "DateTime64":
		return scalar(t, func(b []byte, v time.Time) []byte { return appendDriverTime(b, t, v) })
	}
	switch {
	case t.name == "JSON":
		return scalar(t, func(b []byte, v string) []byte { return append(b, v...) })
	case t.name == "Map" && len(t.args) == 2:
		m := &orderedMap{}
		return m, func(b []byte) ([]byte, error) {
			defer m.reset()
			return m.append(b, t)
		}
	case strings.HasPrefix(t.name, "Interval"):
		return scalar(t, func(b []byte, v string) []byte {
			number, _, _ := strings.Cut(v, " ")
			return append(b, number...)
		})
	case t.name == "Tuple":
		v := new([]any)
		return v, func(b []byte) ([]byte, error) { return appendValue(b, t, *v) }
	}
	v := new(any)
	return v, func(b []byte) ([]byte, error) { return appendValue(b, t, *v) }
}

// scalar scans a T, or a *T if the column is nullable.
func scalar[T any](t chType, write func([]byte, T) []byte) (any, func([]byte) ([]byte, error)) {
	if !t.nullable {
		v := new(T)
		return v, func(b []byte) ([]byte, error) { return write(b, *v), nil }
	}
	v := new(*T)
	return v, func(b []byte) ([]byte, error) {
		if *v == nil {
			return append(b, "null"...), nil
		}
		return write(b, **v), nil
	}
}

func appendUint[T uint8 | uint16 | uint32 | uint64](b []byte, v T) []byte {
	return strconv.AppendUint(b, uint64(v), 10)
}

func appendInt[T int8 | int16 | int32 | int64](b []byte, v T) []byte {
	return strconv.AppendInt(b, int64(v), 10)
}

func appendDate(b []byte, v time.Time) []byte { return v.AppendFormat(b, `"2006-01-02"`) }

// beforeAll is earlier than any DateTime64 of ClickHouse, in any zone.
var beforeAll = time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC)

// appendDriverTime appends a time that the driver has read, in the zone of its type. The driver counts nanoseconds in 64 bits: a time after
// 2262-04-11, which ClickHouse has until 2299, arrives 2^64 ns too early.
func appendDriverTime(b []byte, t chType, v time.Time) []byte {
	if v.Before(beforeAll) {
		v = v.Add(math.MaxInt64).Add(math.MaxInt64).Add(2)
	}
	b = append(b, '"')
	b = appendTime(b, v.In(t.location))
	return append(b, '"')
}
