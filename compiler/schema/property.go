package schema

import "strings"

// StorageKind is a way in which a property is stored.
type StorageKind uint8

// The ways of storing a property.
const (
	// StringColumn: the property is inside JSON text.
	StringColumn StorageKind = iota
	// NativeJSON: the property is a path of a column of ClickHouse's JSON type.
	NativeJSON
	// Materialized: the property has a text column of its own.
	Materialized
)

// Storage says where one property is found.
type Storage struct {
	Kind StorageKind
	// Column holds the property itself when Kind is Materialized, else all properties.
	Column string
	// Nullable reports whether a Materialized column holds NULL where the property is absent. One that is not nullable holds ''
	// for an absent property as for an empty one, and 'null' for JSON null as for the text "null".
	Nullable bool
}

// Property says where the property of that name is found, in a JSON column of a physical table.
func (l *Layout) Property(table, column, name string) Storage {
	if l.Native(table, column) {
		return Storage{Kind: NativeJSON, Column: column}
	}
	if m, ok := l.materialized[propertyKey{table, column, name}]; ok {
		return Storage{Kind: Materialized, Column: m.column, Nullable: m.nullable}
	}
	return Storage{Kind: StringColumn, Column: column}
}

// Native reports whether a column is of ClickHouse's JSON type.
func (l *Layout) Native(table, column string) bool {
	typ := l.ColumnType(table, column)
	return typ == "JSON" || strings.HasPrefix(typ, "JSON(")
}
