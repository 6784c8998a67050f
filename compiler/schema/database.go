package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Database is the virtual schema of one project at one time. It is immutable and safe for concurrent use.
type Database struct {
	// Project is the id that the guard requires of every row.
	Project int64
	// Location is the project's time zone; nil for UTC.
	Location *time.Location
	// EventsFrom is the time of the earliest events that queries can see; zero for all.
	EventsFrom time.Time
	// WeekStart is the first day of the project's week: 0 Sunday, 1 Monday.
	WeekStart int
	// Properties holds the declared types of properties; a property without an entry reads as text.
	Properties PropertyTypes
	// Values are the kinds of values that properties in columns of ClickHouse's JSON type have ever had. A property without an entry may have any,
	// unless ValuesComplete says that it has had none, if [physical.Noted] returns true for its name.
	Values         PropertyValues
	ValuesComplete bool
	// GroupTypes maps the project's named group types to their index, 0 to 4.
	GroupTypes map[string]int
	// Cohorts are the cohorts that queries can name.
	Cohorts Cohorts
	// Layout says how the physical tables store properties; nil for NativeLayout.
	Layout *Layout
	// Held returns the rows of a held table, with values in the order of its fields; a text may be a []byte. The error tells the query's author why the table cannot be
	// read. Nil if the query can read none.
	Held func(table string) ([][]any, error)
	// Kept is the table of a materialized endpoint that the query reads, made by NewKept; nil for none.
	Kept *Table
	// Readable reports whether the caller may read a held table; information_schema and descriptions leave out the others. If nil, the caller may
	// only read those of information_schema.
	Readable func(table string) bool
	// Modifiers are the modifiers of the compiled query.
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

// PropertyScope says what a property belongs to.
type PropertyScope uint8

// The scopes of properties. NoProperties marks JSON whose properties have no declared types.
const (
	NoProperties PropertyScope = iota
	EventProperty
	PersonProperty
	GroupProperty
)

// PropertyKey identifies a declared property. Group is the index of the group type, 0 for events and persons.
type PropertyKey struct {
	Scope PropertyScope
	Group int
	Name  string
}

// PropertyType is the declared type of a property.
type PropertyType string

// The types of properties. Any other type is read as String.
const (
	StringProperty   PropertyType = "String"
	NumericProperty  PropertyType = "Numeric"
	BooleanProperty  PropertyType = "Boolean"
	DateTimeProperty PropertyType = "DateTime"
)

// PropertyTypes are the declared types of a project's properties.
type PropertyTypes map[PropertyKey]PropertyType

// PropertyValues are the kinds of values of a project's properties.
type PropertyValues map[PropertyKey]physical.Kinds

// Of returns the declared type of a property, StringProperty if it has none.
func (p PropertyTypes) Of(key PropertyKey) PropertyType {
	if typ, ok := p[key]; ok {
		return typ
	}
	return StringProperty
}

// String lists properties with their types, in a fixed order.
func (p PropertyTypes) String() string {
	lines := make([]string, 0, len(p))
	for key, typ := range p {
		lines = append(lines, fmt.Sprintf("%d %d %q %q", key.Scope, key.Group, key.Name, typ))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// QuotedName returns a field name as PostHog clients expect it: in backquotes if it contains a special character.
func QuotedName(name string) string {
	if strings.ContainsAny(name, "@-!$+") {
		return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
	}
	return hogql.Identifier(name)
}
