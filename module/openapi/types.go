package openapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/internal/chtype"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// cell is the schema of a column's values in JSON, with a sample value.
type cell struct {
	schema *openapi3.Schema
	sample any
}

// cellOf returns the cell of a column (contract: hogql.md, section 1). Columns of unknown type may hold anything.
func (w *writer) cellOf(c Column) cell {
	of := w.typeOf(c)
	if c.Name == insight.PlainColumn {
		return withNull(of)
	}
	return of
}

func (w *writer) typeOf(c Column) cell {
	if c.Type != "" {
		return w.typed(c.Type)
	}
	switch c.Wire {
	case "integer":
		return nullable(w.typed("Int64"))
	case "float":
		return w.typed("Float64")
	case "string":
		return nullable(w.typed("String"))
	case "datetime":
		return nullable(w.typed("DateTime"))
	case "date":
		return nullable(w.typed("Date"))
	case "boolean":
		return nullable(w.typed("Bool"))
	case "array":
		return cell{listOf(inline(anything())), []any{}}
	}
	return cell{described(anything(), "Its type is not known."), "value"}
}

// typed returns the cell of a ClickHouse type.
func (w *writer) typed(text string) cell {
	name, args := chtype.Parts(text)
	switch name {
	case "Nullable":
		return nullable(w.typed(args[0]))
	case "LowCardinality":
		return w.typed(args[0])
	case "SimpleAggregateFunction":
		return w.typed(args[len(args)-1])
	case "Array":
		item := w.typed(args[0])
		return cell{listOf(inline(item.schema)), []any{item.sample}}
	case "Nested":
		item := w.tuple(chtype.Fields(args))
		return cell{listOf(inline(item.schema)), []any{item.sample}}
	case "Tuple":
		return w.tuple(chtype.Fields(args))
	case "Map":
		value := w.typed(args[1])
		return cell{openapi3.NewObjectSchema().WithAdditionalProperties(value.schema), map[string]any{"key": value.sample}}
	case "Enum8", "Enum16":
		return enum(args)
	}
	if rows.IsWide(name) {
		return w.wide(name)
	}
	if form, ok := scalars[name]; ok {
		return form()
	}
	return cell{described(anything(), "ClickHouse type "+text), "value"}
}

// scalars are the types without parts. Floats are null if they are not finite; decimals are strings, which keep all digits.
var scalars = map[string]func() cell{
	"Int8": small, "Int16": small, "Int32": small, "UInt8": small, "UInt16": small,
	"UInt32":  func() cell { return integer("int64", 1) },
	"Float32": float, "Float64": float, "BFloat16": float,
	"Decimal": decimal, "Decimal32": decimal, "Decimal64": decimal, "Decimal128": decimal, "Decimal256": decimal,
	"Bool":   func() cell { return cell{boolean(), true} },
	"String": func() cell { return cell{text(), "text"} }, "FixedString": func() cell { return cell{text(), "text"} },
	"UUID": func() cell { return cell{openapi3.NewUUIDSchema(), "018f3a52-7c3e-7a41-9d2b-5e8c0f6a1b2d"} },
	"IPv4": func() cell { return cell{text().WithFormat("ipv4"), "192.0.2.1"} },
	"IPv6": func() cell { return cell{text().WithFormat("ipv6"), "2001:db8::1"} },
	"Date": day, "Date32": day,
	"DateTime": instant, "DateTime32": instant, "DateTime64": instant,
	"JSON":    func() cell { return cell{openapi3.NewObjectSchema().WithAnyAdditionalProperties(), map[string]any{}} },
	"Nothing": func() cell { return nullable(cell{described(text(), "Always null."), nil}) },
}

func integer(format string, sample any) cell {
	return cell{openapi3.NewIntegerSchema().WithFormat(format), sample}
}

func small() cell { return integer("int32", 1) }
func float() cell { return nullable(cell{number(), 1.5}) }

// wide returns the cell of an integer with more than 53 bits. OpenAPI defines no integer formats besides int32 and int64: generators that do not know
// uint64 use a plain integer.
func (w *writer) wide(name string) cell {
	if w.site.WideAsText {
		return cell{text().WithPattern("^-?[0-9]+$"), "1"}
	}
	switch name {
	case "UInt64":
		return cell{openapi3.NewIntegerSchema().WithFormat("uint64").WithMin(0), 1}
	case "Int128", "UInt128", "Int256", "UInt256":
		return cell{described(openapi3.NewIntegerSchema(), "May exceed 64 bits. With the parameter int64=string it is a string."), 1}
	}
	return integer("int64", 1) // Int64 and intervals
}

func decimal() cell { return cell{text().WithFormat("decimal"), "1.5"} }
func day() cell     { return cell{text().WithFormat("date"), "2026-01-31"} }
func instant() cell { return cell{moment(), "2026-01-31T10:00:00Z"} }

func nullable(c cell) cell {
	if c.schema.Type != nil { // without a type, null is allowed and nullable means nothing
		c.schema.Nullable = true
	}
	return c
}

// withNull is nullable for the cell and, if it is a list, for the values in it.
func withNull(c cell) cell {
	if items := c.schema.Items; items != nil {
		withNull(cell{schema: items.Value})
	}
	return nullable(c)
}

// enum returns the names in Enum8('a' = 1, 'b' = 2).
func enum(args []string) cell {
	var names []any
	for _, name := range chtype.Words(args) {
		names = append(names, name)
	}
	if len(names) == 0 {
		return cell{text(), "text"}
	}
	return cell{text().WithEnum(names...), names[0]}
}

// tuple returns the cell of a list with a fixed length. OpenAPI 3.0 can't give each place a schema of its own, so all places share one, which allows
// the schema of any of them.
func (w *writer) tuple(types []string) cell {
	cells := make([]cell, len(types))
	for i, typ := range types {
		cells[i] = w.typed(typ)
	}
	return places(cells)
}

func places(cells []cell) cell {
	samples := make([]any, len(cells))
	for i := range cells {
		samples[i] = cells[i].sample
	}
	s := listOf(inline(shared(cells)))
	n := uint64(len(cells))
	s.MinItems, s.MaxItems = n, &n
	return cell{s, samples}
}

// shared returns the schema that all cells have in common. It is nullable if any of them is.
func shared(cells []cell) *openapi3.Schema {
	var kinds []*openapi3.Schema
	known := map[string]*openapi3.Schema{}
	for _, c := range cells {
		if c.schema.Type == nil {
			return anything()
		}
		bare := *c.schema
		bare.Description, bare.Extensions, bare.Nullable = "", nil, false
		mark, err := json.Marshal(&bare)
		if err != nil {
			panic("BUG: encoding the schema of a column: " + err.Error())
		}
		kind, ok := known[string(mark)]
		if !ok {
			kind = &bare
			known[string(mark)] = kind
			kinds = append(kinds, kind)
		}
		kind.Nullable = kind.Nullable || c.schema.Nullable
	}
	switch len(kinds) {
	case 0:
		return anything()
	case 1:
		return kinds[0]
	}
	return openapi3.NewAnyOfSchema(kinds...)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
