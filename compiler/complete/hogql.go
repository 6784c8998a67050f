package complete

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxProperties is the most properties suggested at once.
const maxProperties = 220

// endings are texts that may be missing behind the cursor, in the order in which they are tried.
var endings = [...]string{"", "}", " FROM " + defaultTable, " ON 1"}

// hogQL completes a query or an expression, with the first ending that yields a result.
func (c *completing) hogQL() error {
	for _, ending := range endings {
		if done, err := c.try(c.Text[:c.end] + filler + ending + c.Text[c.end:]); done || err != nil {
			return err
		}
	}
	return nil
}

// word returns the part of a name that is typed already: from the start of the word, if that is within the name, to the cursor.
func (c *completing) word(name hogql.Name) string {
	before, _, _ := strings.Cut(name.Text, filler)
	if from := c.start - name.Pos.Start; 0 < from && from < len(before) && !name.Quoted {
		return before[from:]
	}
	return before
}

// add adds a suggestion.
func (c *completing) add(s Suggestion) { c.out.Suggestions = append(c.out.Suggestions, s) }

// field completes a field. It returns false if a table must be known first.
func (c *completing) field(q hogql.Query, at *cursor) (bool, error) {
	chain := at.field.Chain[:at.index]
	if c.globals(chain) {
		return true, nil
	}
	if at.hole {
		c.variables(chain, at)
		return len(c.out.Suggestions) > 0, nil
	}
	without := at.around == nil || at.around.From == nil
	if without && at.index > 0 {
		return false, nil
	}
	names, err := resolve.Look(q, resolve.Probe{Field: at.field, Index: at.index, Beside: at.beside}, c.World.World)
	if err != nil {
		return false, err
	}
	if names == nil {
		names = new(resolve.Names)
	}
	word := c.word(at.name)
	switch {
	case names.Properties != nil:
		c.properties(*names.Properties, word)
	case at.index > 0:
		c.members(names.Columns)
	case without:
		c.out.Functions = functionsComparedWith(names.Beside)
		return false, nil
	default:
		c.folders(at.aliased)
		if len(at.aliased) > 0 && word == "" {
			return true, nil
		}
		c.members(names.Columns)
		c.members(names.Local)
		c.folders(at.others)
		c.out.Functions = functionsComparedWith(names.Beside)
	}
	return true, nil
}

// members suggests fields.
func (c *completing) members(list []resolve.Member) {
	for _, m := range list {
		detail := tableDetail
		if !m.Table {
			detail = typeName(m.Type)
		}
		c.add(Suggestion{Label: m.Name, Insert: schema.QuotedName(m.Name), Kind: Variable, Detail: detail})
	}
}

// folders suggests table names.
func (c *completing) folders(names []string) {
	for _, name := range names {
		c.add(Suggestion{Label: name, Insert: name, Kind: Folder, Detail: tableDetail})
	}
}

// properties suggests the properties that contain the word.
func (c *completing) properties(of schema.PropertyKey, word string) {
	if c.Properties == nil {
		return
	}
	seen := map[string]bool{}
	for name, typ := range c.Properties(of.Scope, of.Group) {
		if !strings.Contains(name, word) || seen[name] {
			continue
		}
		if len(seen) == maxProperties {
			c.out.Incomplete = true
			return
		}
		seen[name] = true
		c.add(Suggestion{Label: name, Insert: hogql.Identifier(name), Kind: Variable, Detail: string(typ)})
	}
}

// variablesRoot is the name that insight variables are under in placeholders.
const variablesRoot = "variables"

// variables suggests names for a placeholder.
func (c *completing) variables(chain []hogql.Name, at *cursor) {
	prefix := ""
	switch {
	case len(chain) == 0 && strings.HasPrefix(variablesRoot, c.word(at.name)):
		prefix = variablesRoot + "."
	case len(chain) == 1 && chain[0].Text == variablesRoot:
	default:
		return
	}
	for _, code := range c.Variables {
		c.add(Suggestion{Label: prefix + code, Insert: prefix + code, Kind: Constant, Detail: variableDetail})
	}
}

// tables suggests table names, below the names before the cursor.
func (c *completing) tables(at *cursor) {
	if at.index == 0 {
		c.folders(at.with)
		c.folders(slices.DeleteFunc(c.Tables(), func(name string) bool { return slices.Contains(at.with, name) }))
		return
	}
	var above strings.Builder
	for _, n := range at.table.Chain[:at.index] {
		above.WriteString(n.Text)
		above.WriteByte('.')
	}
	for _, name := range c.Tables() {
		below, ok := strings.CutPrefix(name, above.String())
		if above.String() == schema.Namespace+"." && !strings.Contains(name, ".") {
			ok = true
		}
		if ok {
			c.folders([]string{below})
		}
	}
}

// unknownType is the detail of a suggestion of unknown type.
const unknownType = "unknown"

// typeName names a type as ClickHouse does, without a size that HogQL does not know.
func typeName(t hogql.Type) string {
	var name string
	switch t.Kind {
	case hogql.Bool:
		name = "Boolean"
	case hogql.Int:
		name = "Int64"
	case hogql.Float:
		name = "Float64"
	case hogql.Decimal:
		name = "Decimal"
	case hogql.String:
		name = "String"
	case hogql.UUID:
		name = "UUID"
	case hogql.Date:
		name = "Date"
	case hogql.DateTime:
		name = "DateTime"
	case hogql.IntervalKind:
		name = "Interval"
	case hogql.JSON:
		name = "JSON"
	case hogql.ArrayKind:
		elem := unknownType
		if t.Elem != nil {
			elem = typeName(*t.Elem)
		}
		return "Array(" + elem + ")"
	case hogql.TupleKind:
		return "Tuple"
	case hogql.MapKind:
		return "Map"
	case hogql.State:
		return "AggregateState"
	case hogql.Unknown, hogql.Null:
		return unknownType
	}
	if t.Nullable {
		return "Nullable(" + name + ")"
	}
	return name
}
