package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Database is the virtual schema of one project at one moment. It is immutable and safe for concurrent use.
type Database struct {
	// Project is the id that guards every row.
	Project int64
	// Location is the project's time zone; nil is UTC.
	Location *time.Location
	// EventsFrom is the time of the earliest events that queries can see; zero for all.
	EventsFrom time.Time
	// WeekStart is the first day of the project's week: 0 Sunday, 1 Monday.
	WeekStart int
	// Properties holds the declared types of properties; a property without an entry reads as text.
	Properties PropertyTypes
	// Values says of properties in columns of ClickHouse's JSON type which kinds of values they have ever had. A property without an entry
	// may have any, unless ValuesComplete says that it has had none, if [physical.Noted] holds for its name.
	Values         PropertyValues
	ValuesComplete bool
	// GroupTypes gives the index, 0 to 4, of each named group type of the project.
	GroupTypes map[string]int
	// Cohorts are those that queries can ask for.
	Cohorts Cohorts
	// Layout says how the physical tables store properties; nil is NativeLayout.
	Layout *Layout
	// Held returns the rows of a held table, whose values are in the order of its fields. The error says to the author of the query why the
	// table cannot be read. Nil: the query can read none.
	Held func(table string) ([][]any, error)
	// Kept is the table of a materialized endpoint that the query reads, made by NewKept; nil for none.
	Kept *Table
	// Readable reports whether the caller may read a held table: information_schema and descriptions leave out the others. Nil: it may read
	// those of information_schema alone.
	Readable func(table string) bool
	// Modifiers are those of the query that is compiled.
	Modifiers Modifiers
}

// Zone returns the name of the project's time zone.
func (db *Database) Zone() string {
	if db.Location == nil {
		return "UTC"
	}
	return db.Location.String()
}

// layout returns the layout of the physical tables.
func (db *Database) layout() *Layout {
	if db.Layout == nil {
		return nativeLayout
	}
	return db.Layout
}

// PropertyScope says whose property it is.
type PropertyScope uint8

// The scopes of properties. NoProperties marks JSON whose properties have no declared types.
const (
	NoProperties PropertyScope = iota
	EventProperty
	PersonProperty
	GroupProperty
)

// PropertyKey names one declared property. Group is the index of the group type, 0 for events and persons.
type PropertyKey struct {
	Scope PropertyScope
	Group int
	Name  string
}

// PropertyType is the declared type of a property.
type PropertyType string

// The types of properties. Any other type reads as String.
const (
	StringProperty   PropertyType = "String"
	NumericProperty  PropertyType = "Numeric"
	BooleanProperty  PropertyType = "Boolean"
	DateTimeProperty PropertyType = "DateTime"
)

// PropertyTypes holds the declared types of a project's properties.
type PropertyTypes map[PropertyKey]PropertyType

// PropertyValues holds the kinds of values of a project's properties.
type PropertyValues map[PropertyKey]physical.Kinds

// Of returns the declared type of a property, StringProperty when there is none.
func (p PropertyTypes) Of(key PropertyKey) PropertyType {
	if typ, ok := p[key]; ok {
		return typ
	}
	return StringProperty
}

// String lists properties with their types, in an order of its own.
func (p PropertyTypes) String() string {
	lines := make([]string, 0, len(p))
	for key, typ := range p {
		lines = append(lines, fmt.Sprintf("%d %d %q %q", key.Scope, key.Group, key.Name, typ))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// QuotedName writes the name of a field as clients of PostHog expect it: in backquotes as soon as it holds a sign.
func QuotedName(name string) string {
	if strings.ContainsAny(name, "@-!$+") {
		return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
	}
	return hogql.Identifier(name)
}
