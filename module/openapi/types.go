package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// cell is the form that the values of a column take in JSON, and one value of that form.
type cell struct {
	schema *openapi3.Schema
	sample any
}

// cellOf is the form of a column's values (contract: hogql.md, section 1). Columns whose type is not known may hold anything.
func cellOf(c Column) cell {
	if c.Type != "" {
		return typed(c.Type)
	}
	switch c.Wire {
	case "integer":
		return nullable(typed("Int64"))
	case "float":
		return nullable(cell{openapi3.NewFloat64Schema(), 1.5})
	case "string":
		return nullable(typed("String"))
	case "datetime":
		return nullable(typed("DateTime"))
	case "date":
		return nullable(typed("Date"))
	case "boolean":
		return nullable(typed("Bool"))
	case "array":
		return cell{listOf(inline(anything())), []any{}}
	}
	return cell{described(anything(), "Its type is not known."), "value"}
}

// typed is the form of a ClickHouse type.
func typed(text string) cell {
	name, args := apart(text)
	switch name {
	case "Nullable":
		return nullable(typed(args[0]))
	case "LowCardinality":
		return typed(args[0])
	case "SimpleAggregateFunction":
		return typed(args[len(args)-1])
	case "Array":
		item := typed(args[0])
		return cell{listOf(inline(item.schema)), []any{item.sample}}
	case "Nested":
		item := tuple(fields(args))
		return cell{listOf(inline(item.schema)), []any{item.sample}}
	case "Tuple":
		return tuple(fields(args))
	case "Map":
		value := typed(args[1])
		return cell{openapi3.NewObjectSchema().WithAdditionalProperties(value.schema), map[string]any{"key": value.sample}}
	case "Enum8", "Enum16":
		return enum(args)
	}
	if strings.HasPrefix(name, "Interval") {
		return integer("int64", 1)
	}
	if form, ok := scalars[name]; ok {
		return form()
	}
	return cell{described(anything(), "ClickHouse type "+text), "value"}
}

// scalars are the types without parts. Floats are null where they are not finite; decimals are strings, which keep all digits.
var scalars = map[string]func() cell{
	"Int8": small, "Int16": small, "Int32": small, "UInt8": small, "UInt16": small,
	"UInt32": large, "Int64": large, "UInt64": large,
	"Int128": huge, "Int256": huge, "UInt128": huge, "UInt256": huge,
	"Float32":  func() cell { return nullable(cell{openapi3.NewFloat64Schema().WithFormat("float"), 1.5}) },
	"Float64":  func() cell { return nullable(cell{number(), 1.5}) },
	"BFloat16": func() cell { return nullable(cell{openapi3.NewFloat64Schema().WithFormat("float"), 1.5}) },
	"Decimal":  decimal, "Decimal32": decimal, "Decimal64": decimal, "Decimal128": decimal, "Decimal256": decimal,
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
func large() cell { return integer("int64", 1) }
func huge() cell {
	return cell{described(openapi3.NewIntegerSchema(), "May exceed 64 bits."), 1}
}
func decimal() cell { return cell{text().WithFormat("decimal"), "1.5"} }
func day() cell     { return cell{text().WithFormat("date"), "2026-01-31"} }
func instant() cell { return cell{moment(), "2026-01-31T10:00:00Z"} }

func nullable(c cell) cell {
	if c.schema.Type != nil { // without a type the word means nothing, and null is allowed
		c.schema.Nullable = true
	}
	return c
}

// enum lists the names in Enum8('a' = 1, 'b' = 2).
func enum(args []string) cell {
	var names []any
	for _, arg := range args {
		if end := closing(arg); end > 0 {
			names = append(names, strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(arg[1:end]))
		}
	}
	if len(names) == 0 {
		return cell{text(), "text"}
	}
	return cell{text().WithEnum(names...), names[0]}
}

// tuple is a list of a fixed length. OpenAPI 3.0 cannot give each place a schema of its own, so the places share one: the schema
// of them all, or any of theirs.
func tuple(types []string) cell {
	cells := make([]cell, len(types))
	for i, typ := range types {
		cells[i] = typed(typ)
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

// shared is the schema that all cells have in common. It is nullable where one of them is.
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

// apart cuts Name(arg, arg) into its parts. A type that should have arguments and has none is read as one of unknown name.
func apart(typ string) (name string, args []string) {
	name, inner, ok := strings.Cut(strings.TrimSpace(typ), "(")
	if !ok {
		switch name {
		case "Nullable", "LowCardinality", "SimpleAggregateFunction", "Array", "Map":
			return "?", nil
		}
		return name, nil
	}
	args = split(strings.TrimSuffix(inner, ")"))
	if len(args) == 0 || name == "Map" && len(args) < 2 {
		return "?", nil
	}
	return name, args
}

// split cuts at the commas outside of brackets and quotes.
func split(list string) []string {
	var args []string
	depth, start := 0, 0
	for i := 0; i < len(list); i++ {
		switch c := list[i]; c {
		case '\'', '`', '"':
			if end := closing(list[i:]); end > 0 {
				i += end
			} else {
				i = len(list)
			}
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				args, start = append(args, strings.TrimSpace(list[start:i])), i+1
			}
		}
	}
	if last := strings.TrimSpace(list[min(start, len(list)):]); last != "" {
		args = append(args, last)
	}
	return args
}

// closing is where the quote that text begins with ends, or -1.
func closing(text string) int {
	if text == "" || !strings.ContainsRune("'`\"", rune(text[0])) {
		return -1
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i
		}
	}
	return -1
}

// fields drops the names of the parts of Tuple(name T, …).
func fields(args []string) []string {
	types := make([]string, len(args))
	for i, arg := range args {
		types[i] = arg
		if end := closing(arg); end > 0 {
			types[i] = strings.TrimSpace(arg[end+1:])
		} else if name, typ, ok := strings.Cut(arg, " "); ok && !strings.ContainsAny(name, "('") {
			types[i] = typ
		}
	}
	return types
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
