package clickhouse

import (
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/chtype"
)

// chType is a ClickHouse type, as far as needed to decode its values: Array(T), Tuple(T, …), Map(K, V), Nested(…)
// and the scalars. Nullable and LowCardinality are unwrapped.
type chType struct {
	name     string // such as Array, UInt64, DateTime64
	args     []chType
	nullable bool
	location *time.Location // of DateTime and DateTime64
}

// parseType parses the text of a type. An unknown type is a name without arguments.
func parseType(text string) chType {
	name, args := chtype.Parts(text)
	switch name {
	case "Nullable":
		t := parseType(args[0])
		t.nullable = true
		return t
	case "LowCardinality":
		return parseType(args[0])
	case "SimpleAggregateFunction":
		if len(args) == 2 {
			return parseType(args[1])
		}
		return chType{name: name}
	case "Array", "Map", "Variant":
		return chType{name: name, args: parseAll(args)}
	case "Tuple", "Nested":
		t := chType{name: "Tuple", args: parseAll(chtype.Fields(args))}
		if name == "Nested" {
			return chType{name: "Array", args: []chType{t}}
		}
		return t
	}
	return chType{name: name, location: locationOf(name, args)}
}

func parseAll(texts []string) []chType {
	types := make([]chType, len(texts))
	for i, text := range texts {
		types[i] = parseType(text)
	}
	return types
}

// locationOf returns the zone of a time type: its last argument, or the session's zone, which is UTC.
func locationOf(name string, args []string) *time.Location {
	if name != "DateTime" && name != "DateTime64" && name != "DateTime32" {
		return nil
	}
	if n := len(args); n > 0 && strings.HasPrefix(args[n-1], "'") {
		zone := strings.Trim(args[n-1], "'")
		if location, err := time.LoadLocation(strings.ReplaceAll(zone, `\/`, "/")); err == nil {
			return location
		}
	}
	return time.UTC
}

// hasTime reports whether values of the type contain times to convert.
func (t chType) hasTime() bool {
	if t.location != nil {
		return t.name == "DateTime64" || t.location != time.UTC
	}
	for _, arg := range t.args {
		if t.name != "Variant" && arg.hasTime() {
			return true
		}
	}
	return false
}

var scalars = map[string]bool{
	"UInt8": true, "UInt16": true, "UInt32": true, "UInt64": true, "UInt128": true, "UInt256": true,
	"Int8": true, "Int16": true, "Int32": true, "Int64": true, "Int128": true, "Int256": true,
	"Float32": true, "Float64": true, "Bool": true, "String": true, "FixedString": true, "Enum8": true, "Enum16": true,
	"UUID": true, "IPv4": true, "IPv6": true, "Date": true, "Date32": true, "DateTime": true, "DateTime32": true, "DateTime64": true,
	"Decimal": true, "Decimal32": true, "Decimal64": true, "Decimal128": true, "Decimal256": true, "Nothing": true,
}

// list reports whether the type is a scalar, or an array of list types.
func (t chType) list() bool {
	return scalars[t.name] || t.name == "Array" && len(t.args) == 1 && t.args[0].list()
}

func allLists(types []chType) bool {
	for _, t := range types {
		if !t.list() {
			return false
		}
	}
	return true
}

// easy reports whether the driver returns the type's values completely and in order.
func (t chType) easy() bool {
	switch {
	case t.list(), t.name == "JSON", strings.HasPrefix(t.name, "Interval"):
		return true
	case t.name == "Tuple", t.name == "Map":
		return allLists(t.args)
	}
	return false
}
