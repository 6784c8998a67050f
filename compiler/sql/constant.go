package sql

import (
	"math"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// listAsParam is the length from which a list of numbers is bound instead of printed.
const listAsParam = 64

// constant writes a literal. Strings never appear in the text: they are bound.
func (p *printer) constant(c *resolved.Const) { p.value(c.Value, c.Pos) }

func (p *printer) value(v any, at hogql.Span) {
	switch v := v.(type) {
	case nil:
		p.str("NULL")
	case bool: // contract: hogql.md, section 17, 12
		if v {
			p.byte('1')
		} else {
			p.byte('0')
		}
	case int64:
		p.buf = strconv.AppendInt(p.buf, v, 10)
	case uint64:
		p.buf = strconv.AppendUint(p.buf, v, 10)
	case float64:
		p.buf = appendFloat(p.buf, v)
	case string:
		p.spend.Bytes(len(v))
		p.bind("String", v)
	case time.Time:
		p.time(v)
	case []any:
		p.list(v, at)
	default:
		p.bug("a constant of type %T", v)
	}
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, '.', '0') // 5.0 stays a float
}

// near is how far a time must be from a change of the zone's offset for its wall clock to be unambiguous.
const near = 3 * time.Hour

// time writes a time as a DateTime64(6) in the project's zone: by the zone's wall clock, or by UTC near a change of offset, where one wall clock
// reading can mean two times.
func (p *printer) time(t time.Time) {
	const layout = "2006-01-02 15:04:05.000000"
	local := t.In(p.db.Location)
	_, before := local.Add(-near).Zone()
	_, after := local.Add(near).Zone()
	if before == after {
		p.str("toDateTime64(")
		p.bind("String", local.Format(layout))
		p.str(", 6, ")
		p.bind("String", p.db.Location.String())
		p.byte(')')
		return
	}
	p.str("toTimeZone(toDateTime64(")
	p.bind("String", t.UTC().Format(layout))
	p.str(", 6, ")
	p.bind("String", "UTC")
	p.str("), ")
	p.bind("String", p.db.Location.String())
	p.byte(')')
}

// list writes an array. Strings, and long lists of integers, become a single parameter.
func (p *printer) list(items []any, at hogql.Span) {
	if typ, text, ok := p.arrayParam(items); ok {
		p.bind(typ, text)
		return
	}
	p.byte('[')
	p.values(items, at)
	p.byte(']')
}

// values writes constants one by one.
func (p *printer) values(values []any, at hogql.Span) {
	for i, v := range values {
		if i > 0 {
			p.str(", ")
		}
		p.value(v, at)
		p.checkSize(at)
	}
}

// arrayParam turns a list of strings and NULLs, or a long list of integers, into one Array parameter.
func (p *printer) arrayParam(items []any) (typ, text string, ok bool) {
	p.spend.Work(len(items))
	var strs, ints, nulls, size int
	for _, item := range items {
		switch item := item.(type) {
		case string:
			strs++
			size += len(item) + 3
		case int64:
			ints++
			size += 8
		case nil:
			nulls++
			size += 5
		default:
			return "", "", false
		}
	}
	switch {
	case strs > 0 && ints == 0:
		typ = "String"
	case ints > 0 && strs == 0 && len(items) >= listAsParam:
		typ = "Int64"
	default:
		return "", "", false
	}
	if nulls > 0 {
		typ = "Nullable(" + typ + ")"
	}
	p.spend.Bytes(size)
	b := append(make([]byte, 0, size+2), '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		switch item := item.(type) {
		case string:
			b = appendQuoted(b, item)
		case int64:
			b = strconv.AppendInt(b, item, 10)
		default:
			b = append(b, "NULL"...)
		}
	}
	return "Array(" + typ + ")", string(append(b, ']')), true
}

// appendQuoted appends a string, quoted for the text of an array value.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '\'')
	for i := range len(s) {
		switch c := s[i]; c {
		case '\'', '\\':
			b = append(b, '\\', c)
		case 0:
			b = append(b, '\\', '0')
		default:
			b = append(b, c)
		}
	}
	return append(b, '\'')
}

// maxScannedParams is the number of parameters up to which a linear search is faster than a map.
const maxScannedParams = 8

// paramKey identifies a parameter.
type paramKey struct{ typ, value string }

// bind writes the parameter for a value. Equal values share one.
func (p *printer) bind(typ, value string) {
	if len(p.params) <= maxScannedParams {
		for i := range p.params {
			if p.params[i].Value == value && p.params[i].Type == typ {
				p.param(i)
				return
			}
		}
	} else {
		if p.lookup == nil {
			p.lookup = make(map[paramKey]int, 4*maxScannedParams)
			for i, known := range p.params {
				p.lookup[paramKey{known.Type, known.Value}] = i
			}
		}
		if i, known := p.lookup[paramKey{typ, value}]; known {
			p.param(i)
			return
		}
		p.lookup[paramKey{typ, value}] = len(p.params)
	}
	p.params = append(p.params, Param{Name: paramName(len(p.params)), Type: typ, Value: value})
	p.param(len(p.params) - 1)
}

func (p *printer) param(i int) {
	p.byte('{')
	p.str(p.params[i].Name)
	p.byte(':')
	p.str(p.params[i].Type)
	p.byte('}')
}

const namedParams = "p0p1p2p3p4p5p6p7p8p9"

func paramName(i int) string {
	if i < 10 {
		return namedParams[2*i : 2*i+2]
	}
	return "p" + strconv.Itoa(i)
}

// constants returns the values of a list or tuple that contains only constants.
func constants(e resolved.Expr) ([]any, bool) {
	if c, ok := e.(*resolved.Const); ok {
		list, isList := c.Value.([]any)
		return list, isList
	}
	var items []resolved.Expr
	if tuple, ok := e.(*resolved.Tuple); ok {
		items = tuple.Items
	} else if array, ok := e.(*resolved.Array); ok {
		items = array.Items
	} else {
		return nil, false
	}
	values := make([]any, len(items))
	for i, item := range items {
		c, ok := item.(*resolved.Const)
		if !ok {
			return nil, false
		}
		values[i] = c.Value
	}
	return values, true
}
