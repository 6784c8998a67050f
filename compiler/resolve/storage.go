package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// stored reads a property of a table where it is stored, in the wanted form. scanned is the name of the table, and known the kinds of values
// that the property has had.
func (t *tableSource) stored(f *schema.Field, keys []hogql.Name, known physical.Kinds, want wanted, scanned string, at hogql.Span) resolved.Expr {
	storage := t.r.db.Storage(t.table, f, keys[0].Text)
	document := &resolved.Column{Pos: at, Table: scanned, Name: f.PhysicalName(), Type: t.r.db.FieldType(t.table, f)}
	if storage.Kind == schema.NativeJSON {
		return nativeProperty(document, keys, known, want, at)
	}
	value := fromText(document, keys, at)
	if storage.Kind == schema.Materialized && len(keys) == 1 && !keys[0].Index {
		value = materialized(storage, value, want, scanned, at)
	}
	return ofText(value, want, at)
}

// materialized reads a property with its own text column. A column that is not nullable does not distinguish a missing property from an empty one, nor
// null from "null": for these two texts, the document is read.
func materialized(storage schema.Storage, fromDocument resolved.Expr, want wanted, scanned string, at hogql.Span) resolved.Expr {
	own := &resolved.Column{Pos: at, Table: scanned, Name: storage.Column, Type: hogql.Type{Kind: hogql.String, Nullable: storage.Nullable}}
	if storage.Nullable || want == stringValue {
		return own
	}
	unsure := native(boolType, at, "in", own, &resolved.Tuple{Items: []resolved.Expr{literal(""), literal("null")}})
	return native(nullableString, at, "if", unsure, fromDocument, own)
}

// nativeProperty reads a property from a column of ClickHouse's JSON type.
//
// Such a column stores the value at each path in a sub-column of type Dynamic, which has one sub-column for each type of value. Reading only these
// is what makes the type fast, so the common types come first, and the costly forms, of arrays and objects, are only computed for the rows
// that need them. A path to an object has no value itself; the object is assembled from the paths below.
//
// If the kinds of values are known, only sub-columns for these are read. Looking for objects is the most expensive part, although there are hardly
// ever any.
func nativeProperty(document *resolved.Column, keys []hogql.Name, known physical.Kinds, want wanted, at hogql.Span) resolved.Expr {
	if n := slices.IndexFunc(keys, func(k hogql.Name) bool { return k.Index || k.Text == "" }); n >= 0 {
		return nativeElement(document, keys, n, want, at)
	}
	path := make([]string, len(keys))
	for i, k := range keys {
		path[i] = escapeKey(k.Text)
	}
	read := func(kind resolved.PathKind, typ hogql.Type) *resolved.Column {
		return &resolved.Column{Pos: at, Table: document.Table, Name: document.Name, Path: path, Kind: kind, Type: nullable(typ)}
	}
	text := read(resolved.PathString, stringType)
	switch want {
	case stringValue:
		return text
	case floatValue:
		float, whole := read(resolved.PathFloat, hogql.Type{Kind: hogql.Float}), read(resolved.PathInt, intType)
		ofWhole := native(nullableFloat, at, "toFloat64", whole)
		switch {
		case known.Only(physical.Texts):
			return floatOf(text, at)
		case known.Only(physical.Floats):
			return float
		case known.Only(physical.AllKinds &^ physical.Texts):
			return native(nullableFloat, at, "ifNull", float, ofWhole)
		case known.Only(castKinds):
			return floatOf(read(resolved.PathDynamic, hogql.Type{}), at)
		}
		return native(nullableFloat, at, "multiIf", present(float), float, present(whole), ofWhole, floatOf(text, at))
	case boolValue:
		flag := read(resolved.PathBool, boolType)
		if known.Only(physical.AllKinds &^ physical.Texts) {
			return flag
		}
		return native(nullableBool, at, "if", present(flag), flag, boolOf(text, at))
	case typedValue, textValue:
		if known.Only(physical.Texts) {
			return text
		}
	case rawValue, scalarValue:
	}
	value, object := read(resolved.PathDynamic, hogql.Type{}), read(resolved.PathObject, hogql.Type{Kind: hogql.JSON})
	valueText, objectText := native(nullableString, at, "toJSONString", value), native(stringType, at, "toString", object)
	switch want {
	case scalarValue:
		return native(stringType, at, "ifNull", valueText, literal("null"))
	case rawValue:
		whole := native(stringType, at, "assumeNotNull", valueText)
		if known.Only(notObjects) {
			return native(stringType, at, "if", present(value), whole, literal(""))
		}
		return native(stringType, at, "multiIf", present(value), whole, filled(object), objectText, literal(""))
	case typedValue, textValue, stringValue, floatValue, boolValue:
	}
	// The string is extracted from the Dynamic, which is read for the other types anyway, and the rare forms have their own branch. Together that
	// takes a third less time than reading the string's sub-column as well, in a single multiIf.
	bare := native(nullableString, at, "dynamicElement", value, literal("String"))
	rare := native(nullableString, at, "multiIf", present(value), valueText, filled(object), objectText, literal(nil))
	if known.Only(notObjects) {
		rare = native(nullableString, at, "if", present(value), valueText, literal(nil))
	}
	return native(nullableString, at, "if", present(bare), bare, rare)
}

const (
	notObjects = physical.AllKinds &^ physical.Objects
	// castKinds are the kinds that a cast of the Dynamic converts to numbers as we do. It also converts booleans, and returns nothing for integers
	// that a float cannot represent exactly.
	castKinds = physical.Texts | physical.Wholes | physical.Floats | physical.Objects
)

// nativeElement reads a value below an array. The n-th key is the first that is an index: the rest of the path is followed in the array as JSON
// text.
func nativeElement(document *resolved.Column, keys []hogql.Name, n int, want wanted, at hogql.Span) resolved.Expr {
	var array resolved.Expr = document
	if n > 0 {
		path := make([]string, n)
		for i, k := range keys[:n] {
			path[i] = escapeKey(k.Text)
		}
		array = &resolved.Column{Pos: at, Table: document.Table, Name: document.Name, Path: path, Kind: resolved.PathDynamic}
	}
	value := fromText(native(nullableString, at, "toJSONString", array), keys[n:], at)
	return ofText(value, want, at)
}

func present(e resolved.Expr) resolved.Expr { return native(boolType, e.At(), "isNotNull", e) }

func filled(e resolved.Expr) resolved.Expr { return native(boolType, e.At(), "notEmpty", e) }

// escapeKey escapes a key as ClickHouse stores it in a path: a dot would split it.
func escapeKey(key string) string { return strings.ReplaceAll(key, ".", "%2E") }
