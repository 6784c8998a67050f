package formats

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// parquetRows reads the rows of a Parquet file.
type parquetRows struct {
	r       *Reader
	file    *parquet.File
	bytes   io.ReaderAt
	size    int64
	table   *table
	convert []func([]byte, parquet.Value) []byte // by leaf column; nil for a column that is left out
	column  []int                                // column of the table, by leaf column
	values  []record.Value
	group   int // the next row group
	rows    parquet.Rows
	buffer  []parquet.Row
	left    []parquet.Row
	line    int

	unfolded int64 // bytes of pages
}

// rowsAtOnce is how many rows are read from the file at a time.
const rowsAtOnce = 64

func (r *Reader) openParquet(in io.ReaderAt, size int64) (s source, err error) {
	defer damaged(&err)
	if r.summary.Format == "" {
		r.summary.Format = Parquet
	}
	if f := r.options.Format; f != "" && f != Parquet && f != PostHog {
		return nil, fmt.Errorf("the file is Parquet, not %s", f)
	}
	if err := checkFooter(in, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged or cut off: %w", err)
	}
	p := &parquetRows{r: r, file: file, bytes: in, size: size}
	var names []string
	for _, c := range file.Root().Columns() {
		if err := p.add(c, &names); err != nil {
			return nil, err
		}
	}
	if p.table, err = r.newTable(names); err != nil {
		return nil, err
	}
	p.values = make([]record.Value, len(names))
	p.buffer = make([]parquet.Row, rowsAtOnce)
	r.closers = append(r.closers, p.closeRows)
	return p, nil
}

// add takes a column of the file. A column that cannot be converted counts as an unknown field.
func (p *parquetRows) add(c *parquet.Column, names *[]string) error {
	leaves := leavesOf(c)
	if len(p.column)+leaves > maxColumns {
		return fmt.Errorf("the file has more than %d columns", maxColumns)
	}
	convert := converter(c)
	if convert == nil {
		p.r.unknown.add(c.Name()+" (nested, or of a type that is not read)", func() []string { return nil })
		for range leaves {
			p.column, p.convert = append(p.column, -1), append(p.convert, nil)
		}
		return nil
	}
	p.column, p.convert = append(p.column, len(*names)), append(p.convert, convert)
	*names = append(*names, c.Name())
	return nil
}

func leavesOf(c *parquet.Column) int {
	if c.Leaf() {
		return 1
	}
	n := 0
	for _, inner := range c.Columns() {
		n += leavesOf(inner)
	}
	return n
}

// damaged turns a panic into an error: the library panics on files that contradict themselves.
func damaged(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", p)
	}
}

func (p *parquetRows) closeRows() error {
	if p.rows == nil {
		return nil
	}
	err := p.rows.Close()
	p.rows = nil
	return err
}

func (p *parquetRows) next() (_ record.Record, err error) {
	defer damaged(&err)
	for len(p.left) == 0 {
		if err := p.fill(); err != nil {
			return record.Record{}, wrapped(err, fmt.Sprintf("reading row %d of the import", p.line+1))
		}
	}
	row := p.left[0]
	p.left = p.left[1:]
	p.line++
	clear(p.values)
	size := 0
	for _, v := range row {
		size += len(`"",`) + 32
		if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
			size += len(v.ByteArray())
		}
	}
	if err := p.r.unfold(int64(size)); err != nil {
		return record.Record{}, fmt.Errorf("reading row %d of the import: %w", p.line, err)
	}
	if size > maxLine {
		return record.Record{}, &record.Error{Line: p.line, Reason: fmt.Errorf("the row is longer than %d MiB", maxLine>>20)}
	}
	out := make([]byte, 0, size)
	for _, v := range row {
		at := v.Column()
		if at < 0 || at >= len(p.column) || p.column[at] < 0 || v.IsNull() {
			continue
		}
		start := len(out)
		if out = p.convert[at](out, v); len(out) > start {
			p.values[p.column[at]] = out[start:len(out):len(out)]
			out = append(out, ',')
		}
	}
	return p.table.row(p.r, p.values, p.line, out)
}

// fill takes the next rows from the file.
func (p *parquetRows) fill() error {
	if p.rows == nil {
		groups := p.file.RowGroups()
		if p.group >= len(groups) {
			return io.EOF
		}
		unfolded := func(bytes int64) error { return p.r.inProportion(&p.unfolded, bytes) }
		if err := checkPages(p.bytes, p.size, &p.file.Metadata().RowGroups[p.group], unfolded); err != nil {
			return err
		}
		p.rows = groups[p.group].Rows()
		p.group++
	}
	n, err := p.rows.ReadRows(p.buffer)
	p.left = p.buffer[:n]
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return p.closeRows()
	case err != nil:
		return fmt.Errorf("the Parquet file is damaged: %w", err)
	case n == 0:
		return errors.New("the Parquet file is damaged: it has fewer rows than it says")
	}
	return nil
}

// converter returns a function that writes the values of a column as JSON; nil for a column that is nested, repeated, or of a type that is not read.
func converter(c *parquet.Column) func([]byte, parquet.Value) []byte {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	var logical format.LogicalTypeValue
	if l := c.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	switch c.Type().Kind() {
	case parquet.Boolean:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendBool(b, v.Boolean()) }
	case parquet.Int32:
		return integers(logical, func(v parquet.Value) int64 { return int64(v.Int32()) }, func(v parquet.Value) uint64 { return uint64(v.Uint32()) })
	case parquet.Int64:
		return integers(logical, parquet.Value.Int64, parquet.Value.Uint64)
	case parquet.Int96:
		return func(b []byte, v parquet.Value) []byte {
			n := v.Int96()
			const epoch = 2440588 // the Julian day of 1970
			nanos := int64(n[1])<<32 | int64(n[0])
			return appendTime(b, time.Unix((int64(n[2])-epoch)*86400, nanos))
		}
	case parquet.Float:
		return func(b []byte, v parquet.Value) []byte { return appendFloat(b, float64(v.Float()), 32) }
	case parquet.Double:
		return func(b []byte, v parquet.Value) []byte { return appendFloat(b, v.Double(), 64) }
	case parquet.ByteArray:
		switch logical.(type) {
		case *format.DecimalType, *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
			return nil
		}
		return func(b []byte, v parquet.Value) []byte { return appendText(b, v.ByteArray()) }
	case parquet.FixedLenByteArray:
		if _, ok := logical.(*format.UUIDType); ok {
			return func(b []byte, v parquet.Value) []byte {
				id, err := uuid.FromBytes(v.ByteArray())
				if err != nil {
					return b
				}
				return chjson.AppendString(b, id.String())
			}
		}
	}
	return nil
}

func appendText(b, text []byte) []byte {
	if !utf8.Valid(text) {
		text = []byte(string([]rune(string(text))))
	}
	return chjson.AppendString(b, string(text))
}

// appendFloat appends a number; nothing for NaN and infinities.
func appendFloat(b []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

func appendTime(b []byte, t time.Time) []byte {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return b
	}
	return t.AppendFormat(append(b, '"'), `2006-01-02T15:04:05.999999Z07:00"`)
}

// integers returns a function that writes integers by their logical type.
func integers(logical format.LogicalTypeValue, signed func(parquet.Value) int64, unsigned func(parquet.Value) uint64) func([]byte, parquet.Value) []byte {
	switch l := logical.(type) {
	case *format.TimestampType:
		at := time.UnixMilli
		switch l.Unit.Value.(type) {
		case *format.MicroSeconds:
			at = time.UnixMicro
		case *format.NanoSeconds:
			at = func(n int64) time.Time { return time.Unix(0, n) }
		}
		return func(b []byte, v parquet.Value) []byte { return appendTime(b, at(signed(v))) }
	case *format.DateType:
		return func(b []byte, v parquet.Value) []byte {
			return time.Unix(signed(v)*86400, 0).UTC().AppendFormat(append(b, '"'), `2006-01-02"`)
		}
	case *format.DecimalType:
		scale := math.Pow10(int(l.Scale))
		return func(b []byte, v parquet.Value) []byte { return appendFloat(b, float64(signed(v))/scale, 64) }
	case *format.IntType:
		if !l.IsSigned {
			return func(b []byte, v parquet.Value) []byte { return strconv.AppendUint(b, unsigned(v), 10) }
		}
	}
	return func(b []byte, v parquet.Value) []byte { return strconv.AppendInt(b, signed(v), 10) }
}
