package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// stored reads a property of a table where it is stored, in the form that is wanted. Scanned is the name of the table, and known the kinds
// of values that the property has had.
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

// materialized reads a property that has a text column of its own. One that is not nullable does not distinguish an absent
// property from an empty one, nor null from "null": for these two texts the document decides.
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
// Such a column keeps the value at each path in a sub-column of the type Dynamic, and that has one sub-column for each
// type of value. Reading just these is what makes the type fast, so the usual types come first, and the costly forms,
// of arrays and of objects, are computed only for the rows that need them. A path that leads to an object holds nothing
// itself; the object is put together from the paths below.
//
// Where the kinds of values are known, only what holds these is read. To look for objects is the most costly of it, although there is
// hardly ever one.
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
	// The string is taken out of the Dynamic, which is read anyway for the other types; and the rare forms are in a branch
	// of their own. Together that is a third less time than reading the string's sub-column beside it in one multiIf.
	bare := native(nullableString, at, "dynamicElement", value, literal("String"))
	rare := native(nullableString, at, "multiIf", present(value), valueText, filled(object), objectText, literal(nil))
	if known.Only(notObjects) {
		rare = native(nullableString, at, "if", present(value), valueText, literal(nil))
	}
	return native(nullableString, at, "if", present(bare), bare, rare)
}

const (
	notObjects = physical.AllKinds &^ physical.Objects
	// castKinds are those that a cast of the Dynamic makes numbers of as we do. It makes numbers of booleans too, and none of whole numbers
	// that a float does not have exactly.
	castKinds = physical.Texts | physical.Wholes | physical.Floats | physical.Objects
)

// nativeElement reads what lies below an array, the n-th key being the first that is an index: the array as JSON text has
// the rest of the path.
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

// escapeKey writes a key as ClickHouse stores it in a path: dots would divide it.
func escapeKey(key string) string { return strings.ReplaceAll(key, ".", "%2E") }
