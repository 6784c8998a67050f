package schema

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Layout says how the physical tables are stored: their columns and types, and where properties are found. It is immutable and safe for
// concurrent use.
type Layout struct {
	tables       map[string]bool
	types        map[columnKey]string
	materialized map[propertyKey]materialized
}

type columnKey struct{ table, column string }

type propertyKey struct{ table, column, property string }

type materialized struct {
	column   string
	nullable bool
}

// The comment with which PostHog marks a column that stores one property of another column: column_materializer::properties::$browser, followed by
// ::disabled if the column must not be read.
const (
	materializerPrefix   = "column_materializer"
	materializerSplit    = "::"
	materializerDisabled = "disabled"
)

// NewLayout returns the layout for the columns of a ClickHouse server. It ignores columns of tables that are not physical tables of the schema.
func NewLayout(columns []physical.Column) *Layout {
	l := &Layout{
		tables:       make(map[string]bool),
		types:        make(map[columnKey]string, len(columns)),
		materialized: make(map[propertyKey]materialized),
	}
	for _, c := range columns {
		if _, known := PhysicalTable(c.Table); !known {
			continue
		}
		l.tables[c.Table] = true
		l.types[columnKey{c.Table, c.Name}] = c.Type
		source, property, ok := materializes(c)
		if !ok {
			continue
		}
		switch c.Type {
		case "String":
			l.addMaterialized(c, source, property, false)
		case "Nullable(String)":
			l.addMaterialized(c, source, property, true)
		}
	}
	for i := range physical.Tables {
		if t := &physical.Tables[i]; physical.IsLog(t.Name) && l.tables[t.Name] && !l.hasAll(t) {
			delete(l.tables, t.Name) // it is another product's
		}
	}
	return l
}

func (l *Layout) hasAll(t *physical.Table) bool {
	return !slices.ContainsFunc(t.Columns, func(c physical.Column) bool { return !l.Has(t.Name, c.Name) })
}

// Stores reports whether ClickHouse has a physical table.
func (l *Layout) Stores(table string) bool { return l.tables[table] }

// addMaterialized adds a column. If two store the same property, the nullable one wins, because it distinguishes an empty text from a missing value.
func (l *Layout) addMaterialized(c physical.Column, source, property string, nullable bool) {
	key := propertyKey{c.Table, source, property}
	if known, ok := l.materialized[key]; ok && known.nullable {
		return
	}
	l.materialized[key] = materialized{c.Name, nullable}
}

// materializes reports whether a column stores one property of another column: by its comment, or by the expression that fills it.
func materializes(c physical.Column) (source, property string, ok bool) {
	if strings.HasPrefix(c.Comment, materializerPrefix+materializerSplit) {
		return fromComment(c.Comment)
	}
	for typ, pattern := range materializing {
		if m := pattern.FindStringSubmatch(c.DefaultExpression); m != nil && c.Type == typ && c.DefaultKind == "MATERIALIZED" {
			return m[1], unescaped.Replace(m[2]), true
		}
	}
	return "", "", false
}

// materializing matches the expressions that fill the text column of a property, by the column's type.
var materializing = map[string]*regexp.Regexp{
	"String":           regexp.MustCompile(`^replaceRegexpAll\(JSONExtractRaw\((\w+), '((?:[^'\\]|\\.)*)'\), '\^"\|"\$', ''\)$`),
	"Nullable(String)": regexp.MustCompile(`^JSONExtract\((\w+), '((?:[^'\\]|\\.)*)', 'Nullable\(String\)'\)$`),
}

var unescaped = strings.NewReplacer(`\\`, `\`, `\'`, `'`)

// fromComment parses PostHog's comment. Old comments have no source column and mean properties.
func fromComment(comment string) (source, property string, ok bool) {
	parts := strings.SplitN(comment, materializerSplit, 4)
	switch {
	case len(parts) == 2:
		return "properties", parts[1], true
	case len(parts) == 3:
		return parts[1], parts[2], true
	case parts[3] == materializerDisabled:
		return "", "", false
	}
	return parts[1], parts[2] + materializerSplit + parts[3], true // a property with :: in its name
}

// Has reports whether a physical table has a column.
func (l *Layout) Has(table, column string) bool {
	_, ok := l.types[columnKey{table, column}]
	return ok
}

// Foreign reports whether the tables belong to a product that stores properties as text, instead of being ours, which store native JSON.
func (l *Layout) Foreign() bool {
	return l.tables[eventsTable] && !l.Native(eventsTable, "properties")
}

// ColumnType returns ClickHouse's type of a column; empty if the table has no such column.
func (l *Layout) ColumnType(table, column string) string { return l.types[columnKey{table, column}] }

// ColumnZone returns the time zone in a column's type, as in DateTime64(6, 'UTC'); empty if there is none.
func (l *Layout) ColumnZone(table, column string) string {
	typ := l.ColumnType(table, column)
	open := strings.IndexByte(typ, '\'')
	end := strings.LastIndexByte(typ, '\'')
	if !strings.Contains(typ, "DateTime") || open == end {
		return ""
	}
	return typ[open+1 : end]
}

// nullableColumn reports whether a column may hold NULL.
func (l *Layout) nullableColumn(table, column string) bool {
	typ := l.ColumnType(table, column)
	return strings.HasPrefix(typ, "Nullable(") || strings.HasPrefix(typ, "LowCardinality(Nullable(")
}

// nativeLayout is what NativeLayout returns.
var nativeLayout = NewLayout(physical.Columns())

// NativeLayout returns the layout of the tables that this product creates: properties are native JSON.
func NativeLayout() *Layout { return nativeLayout }
