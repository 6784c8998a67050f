// Package typetext parses the ClickHouse types written in queries, such as 'Array(Tuple(day Date, n Int64))', and writes them again, so that the
// engine never reads a caller's own text: a type may name a time zone, which the engine looks up among files.
//
// The supported types are Bool, String, FixedString(n), the integers of 8 to 256 bits, Float32, Float64, Decimal(p, s) and Decimal32(s) to
// Decimal256(s), Date, Date32, DateTime(zone), DateTime64(precision, zone), UUID, IPv4, IPv6, Enum, Enum8, Enum16, Array, Tuple, Map, Nullable,
// LowCardinality, and the common SQL names of the plain ones. Types whose values have no fixed form (JSON, Dynamic, Variant, Nested,
// aggregate states) are not supported: their text does not bound the size of a value.
package typetext

import (
	"fmt"
	"iter"
	"maps"
)

// The limits of a text, far above what people write.
const (
	maxText   = 64 << 10 // bytes
	maxDepth  = 16
	maxTypes  = 500
	maxFixed  = 4096 // bytes of a FixedString, which every row takes
	maxValues = 1000 // of an Enum
)

// Error is a mistake in the text of a type.
type Error struct {
	Detail string
	// Start and End delimit the mistake in the text, in bytes.
	Start, End int
	// Name is the unknown name, and Among yields the known ones; nil for other mistakes.
	Name  string
	Among iter.Seq[string]
}

// Error returns the detail.
func (e *Error) Error() string { return e.Detail }

// Zones finds a time zone by name, and returns the name to write for it.
type Zones interface {
	Lookup(name string) (target string, ok bool)
	Names() iter.Seq[string]
}

// Rewrite parses the text of a type, and returns a normalized text of the same type: parameters within their limits, names quoted, and zones named
// as zones returns them. Rewriting the result returns it unchanged.
func Rewrite(text string, zones Zones) (string, *Error) {
	if len(text) > maxText {
		return "", &Error{Detail: fmt.Sprintf("The text of a type has at most %d bytes", maxText), End: len(text)}
	}
	p := &parser{text: text, zones: zones}
	p.next()
	p.typ(0)
	if p.err == nil && p.token.kind != end {
		p.fail(p.token, "Unexpected %s in a type, expected its end", p.shown(p.token))
	}
	if p.err != nil {
		return "", p.err
	}
	return p.out.String(), nil
}

// form is the form of a type's parameters.
type form uint8

const (
	plain         form = iota // none
	optionalZone              // none, or a zone
	precisionZone             // none, or a precision, or a precision and a zone
	oneNumber                 // a number from low to high
	twoNumbers                // a number from low to high, and optionally another up to the first
	oneType
	twoTypes
	elements // types, all or none with a name
	values   // texts, each optionally with a number
)

// family is one entry of the table of types.
type family struct {
	name      string // ClickHouse's own
	form      form
	low, high int
}

// families are the types by ClickHouse's own names, which are case-sensitive.
var families = byName(
	family{name: "Bool"}, family{name: "String"}, family{name: "UUID"}, family{name: "IPv4"}, family{name: "IPv6"},
	family{name: "Int8"}, family{name: "Int16"}, family{name: "Int32"}, family{name: "Int64"}, family{name: "Int128"}, family{name: "Int256"},
	family{name: "UInt8"}, family{name: "UInt16"}, family{name: "UInt32"}, family{name: "UInt64"}, family{name: "UInt128"}, family{name: "UInt256"},
	family{name: "Float32"}, family{name: "Float64"},
	family{name: "Date"}, family{name: "Date32"},
	family{name: "DateTime", form: optionalZone}, family{name: "DateTime64", form: precisionZone, high: 9},
	family{name: "FixedString", form: oneNumber, low: 1, high: maxFixed},
	family{name: "Decimal", form: twoNumbers, low: 1, high: 76},
	family{name: "Decimal32", form: oneNumber, high: 9}, family{name: "Decimal64", form: oneNumber, high: 18},
	family{name: "Decimal128", form: oneNumber, high: 38}, family{name: "Decimal256", form: oneNumber, high: 76},
	family{name: "Enum", form: values, low: -1 << 15, high: 1<<15 - 1},
	family{name: "Enum8", form: values, low: -1 << 7, high: 1<<7 - 1}, family{name: "Enum16", form: values, low: -1 << 15, high: 1<<15 - 1},
	family{name: "Array", form: oneType}, family{name: "Nullable", form: oneType}, family{name: "LowCardinality", form: oneType},
	family{name: "Map", form: twoTypes}, family{name: "Tuple", form: elements},
)

func byName(rows ...family) map[string]family {
	all := make(map[string]family, len(rows))
	for _, f := range rows {
		all[f.name] = f
	}
	return all
}

// aliases maps SQL names, and ClickHouse's case-insensitive names, in lower case, to families.
var aliases = map[string]string{
	"bool": "Bool", "boolean": "Bool", "date": "Date", "date32": "Date32",
	"datetime": "DateTime", "datetime32": "DateTime", "timestamp": "DateTime", "datetime64": "DateTime64",
	"decimal": "Decimal", "dec": "Decimal", "numeric": "Decimal",
	"decimal32": "Decimal32", "decimal64": "Decimal64", "decimal128": "Decimal128", "decimal256": "Decimal256", "enum": "Enum",
	"tinyint": "Int8", "smallint": "Int16", "int": "Int32", "integer": "Int32", "bigint": "Int64",
	"float": "Float32", "real": "Float32", "double": "Float64", "char": "String", "varchar": "String", "text": "String",
}

// Names yields ClickHouse's own names of the supported types, in no order.
func Names() iter.Seq[string] { return maps.Keys(families) }
