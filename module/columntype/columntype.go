// Package columntype names ClickHouse types on the wire, and finds the type that holds the values of two types.
package columntype

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/chtype"
)

// Unknown is the wire type of a column that ClickHouse was not available to describe, or whose type has no name on the wire.
const Unknown = "unknown"

// decimal is what InRows calls decimals. Records have no such type: there, decimals are floats.
const decimal = "decimal"

// names are what InRows calls types, by prefix of the type's name; the first match counts.
var names = []struct{ prefix, name string }{
	{"Interval", Unknown},
	{"Int", "integer"},
	{"UInt", "integer"},
	{"Float", "float"},
	{"Decimal", decimal},
	{"BFloat", "float"},
	{"Bool", "boolean"},
	{"DateTime", "datetime"},
	{"Date", "date"},
	{"Array", "array"},
	{"Tuple", "json"},
	{"Map", "json"},
	{"JSON", "json"},
	{"String", "string"},
	{"FixedString", "string"},
	{"UUID", "string"},
	{"Enum", "string"},
	{"IPv", "string"},
}

// Wire returns the name that records of endpoints use for a ClickHouse type (contract: api.md, section 5.3).
func Wire(typ string) string {
	if name := InRows(typ); name != decimal {
		return name
	}
	return "float"
}

// InRows is like Wire, but tells decimals from floats: in rows, decimals are strings.
func InRows(typ string) string {
	bare, _ := withoutNull(typ)
	if name, args := chtype.Parts(bare); name == "SimpleAggregateFunction" && len(args) > 1 {
		return InRows(args[1])
	}
	for _, t := range names {
		if strings.HasPrefix(bare, t.prefix) {
			return t.name
		}
	}
	return Unknown
}

// Plain returns a type without LowCardinality, which concerns how ClickHouse stores a column and not its values.
func Plain(typ string) string {
	const storage = "LowCardinality("
	for {
		before, rest, found := strings.Cut(typ, storage)
		if !found {
			return typ
		}
		end := closing(rest)
		if end < 0 {
			return typ
		}
		typ = before + rest[:end] + rest[end+1:]
	}
}

// closing finds the parenthesis that closes one opened before the text; -1 if there is none.
func closing(text string) int {
	depth := 1
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// Widest returns the type that holds the values of both; empty if there is none, or if one of them is unknown.
func Widest(a, b string) string {
	if a == b || a == "" {
		return a
	}
	x, nullX := withoutNull(a)
	y, nullY := withoutNull(b)
	const nothing = "Nothing" // the type of NULL
	switch {
	case x == nothing:
		x = y
	case y == nothing || x == y:
	case isInteger(x) && isInteger(y):
		x = "Int64"
	case (isInteger(x) || isFloat(x)) && (isInteger(y) || isFloat(y)):
		x = "Float64"
	default:
		nameX, itemX := chtype.Parts(x)
		nameY, itemY := chtype.Parts(y)
		if nameX != "Array" || nameY != "Array" {
			return ""
		}
		item := Widest(itemX[0], itemY[0])
		if item == "" {
			return ""
		}
		x = "Array(" + item + ")"
	}
	if nullX || nullY {
		return "Nullable(" + x + ")"
	}
	return x
}

// withoutNull removes LowCardinality and Nullable from a type. NULL itself has the type Nothing.
func withoutNull(typ string) (bare string, null bool) {
	bare = strings.TrimSpace(typ)
	if name, args := chtype.Parts(bare); name == "LowCardinality" {
		bare = args[0]
	}
	if name, args := chtype.Parts(bare); name == "Nullable" {
		return args[0], true
	}
	return bare, bare == "Nothing"
}

func isInteger(typ string) bool { return Wire(typ) == "integer" }

func isFloat(typ string) bool { return strings.HasPrefix(typ, "Float") }
