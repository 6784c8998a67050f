package schema

import "strings"

// StorageKind is a way to store a property.
type StorageKind uint8

// The ways to store a property.
const (
	// StringColumn: the property is inside JSON text.
	StringColumn StorageKind = iota
	// NativeJSON: the property is a path in a column of ClickHouse's JSON type.
	NativeJSON
	// Materialized: the property has its own text column.
	Materialized
)

// Storage says where a property is stored.
type Storage struct {
	Kind StorageKind
	// Column is the column of the property itself if Kind is Materialized, otherwise of all properties.
	Column string
	// Nullable reports whether a Materialized column has NULL for a missing property. A column that is not nullable has '' for a missing as well
	// as for an empty property, and 'null' for JSON null as well as for the text "null".
	Nullable bool
}

// Property returns where the property of that name in a JSON column of a physical table is stored.
func (l *Layout) Property(table, column, name string) Storage {
	if l.Native(table, column) {
		return Storage{Kind: NativeJSON, Column: column}
	}
	if m, ok := l.materialized[propertyKey{table, column, name}]; ok {
		return Storage{Kind: Materialized, Column: m.column, Nullable: m.nullable}
	}
	return Storage{Kind: StringColumn, Column: column}
}

// Native reports whether a column has ClickHouse's JSON type.
func (l *Layout) Native(table, column string) bool {
	typ := l.ColumnType(table, column)
	return typ == "JSON" || strings.HasPrefix(typ, "JSON(")
}
