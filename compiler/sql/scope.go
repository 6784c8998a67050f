package sql

import (
	"cmp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// scope is what the names in one SELECT can mean to ClickHouse.
//
// If the SELECT has an alias a, ClickHouse reads a.b as field b of that alias before it looks for a table a: with `properties AS events` in the
// columns, events.team_id would be read from a person's own JSON. So a table's printed name never equals an alias, and a column that shares
// its name with an alias is always printed with its table.
type scope struct {
	outer   *scope
	tables  []source
	aliases []string        // of columns, ARRAY JOIN and lambda parameters in this SELECT
	defined map[string]bool // the same, built if there are many
	first   int             // index of the first of them in the printer's names
	paths   map[string]bool // the printed columns that are paths in native JSON
	few     [2]source
}

// source is one table of FROM: its name in the tree's columns, and its printed name, which is empty for an unnamed subquery.
type source struct{ name, printed string }

// open enters the scope of a SELECT, and names its tables. The caller leaves the scope with close.
func (p *printer) open(sel *resolved.Select) {
	s := &scope{outer: p.scope, first: len(p.names)}
	s.tables = s.few[:0]
	refs := p.refs
	if p.aliases(sel); p.refs-refs >= maxUnweighedRefs {
		p.weigh(sel)
	}
	s.aliases = p.names[s.first:len(p.names):len(p.names)]
	if sel.From != nil {
		p.name(s, sel.From)
	}
	p.scope = s
}

func (p *printer) close() {
	p.names = p.names[:p.scope.first]
	p.scope = p.scope.outer
}

// ownName reports whether an alias gives a column of the only table its own name: then the name means the same either way.
func ownName(sel *resolved.Select, a *resolved.Alias) bool {
	column, ok := a.X.(*resolved.Column)
	if !ok || column.Name != a.Name || len(column.Path) > 0 {
		return false
	}
	_, joined := sel.From.(*resolved.Join)
	return !joined && sel.ArrayJoin == nil
}

// name assigns printed names to the tables of FROM.
func (p *printer) name(s *scope, t resolved.Table) {
	var name, printed string
	switch t := t.(type) {
	case *resolved.Join:
		p.name(s, t.Left)
		p.name(s, t.Right)
		return
	case *resolved.Scan:
		name = cmp.Or(t.Alias, t.Table)
		printed = s.free(name)
	case *resolved.CTERef:
		name = cmp.Or(t.Alias, t.Name)
		printed = name
		for isPhysical(printed) { // ClickHouse treats a recursive CTE as a table, and must not apply the filter of a physical table to it
			printed += "_"
		}
		printed = s.free(printed)
	case *resolved.Numbers:
		name = cmp.Or(t.Alias, numbersName)
		// Never the name in the query: additional_table_filters also match aliases, and would look for the project column in numbers() called
		// events.
		printed = s.free(numbersName)
	case *resolved.Derived:
		name = t.Alias
		switch {
		case name != "":
			printed = s.free(name)
		case len(s.aliases) > 0:
			printed = s.free("q")
		}
	}
	for _, other := range s.tables {
		if other.name == name {
			p.bug("two tables named %q in one SELECT", name)
		}
	}
	s.tables = append(s.tables, source{name, printed})
}

// free returns a table name that nothing else in the SELECT has.
func (s *scope) free(name string) string {
	for s.defines(name) || slices.ContainsFunc(s.tables, func(t source) bool { return t.printed == name }) {
		name += "_"
	}
	return name
}

// source finds the table of a column. There are no correlated subqueries: only the tables of this SELECT count.
func (p *printer) source(column *resolved.Column) source {
	if p.scope != nil {
		tables := p.scope.tables
		if column.Table == "" && len(tables) == 1 {
			return tables[0]
		}
		for _, t := range tables {
			if t.name == column.Table && t.name != "" {
				return t
			}
		}
	}
	p.bug("column %q of %q, which is not a table of its SELECT", column.Name, column.Table)
	return source{}
}

// column writes a column, with its table if the name alone could mean something else.
func (p *printer) column(c *resolved.Column) {
	start := len(p.buf)
	from := p.source(c)
	if p.needsTable(c, from) {
		if from.printed == "" {
			p.bug("column %q of a subquery without a name", c.Name)
		}
		p.ident(from.printed)
		p.byte('.')
	}
	p.ident(c.Name)
	if len(c.Path) == 0 {
		return
	}
	for i, key := range c.Path {
		p.byte('.')
		if i == 0 && c.Kind == resolved.PathObject {
			p.byte('^')
		}
		p.quoted(key) // always quoted: a key is data
	}
	switch c.Kind {
	case resolved.PathDynamic, resolved.PathObject:
	case resolved.PathString:
		p.str(".:String")
	case resolved.PathInt:
		p.str(".:Int64")
	case resolved.PathFloat:
		p.str(".:Float64")
	case resolved.PathBool:
		p.str(".:Bool")
	}
	p.readsPath(c, p.buf[start:])
}

// readsPath counts a path that the SELECT reads, unless it reads it already.
func (p *printer) readsPath(c *resolved.Column, printed []byte) {
	s := p.scope
	if s.paths[string(printed)] {
		return
	}
	if s.paths == nil {
		s.paths = map[string]bool{}
	}
	s.paths[string(printed)] = true
	if p.paths++; p.paths > budget.MaxPaths {
		panic(mistake{diag.New(diag.QueryError, c.Pos, "The query reads more than %d sub-columns of properties: a property is one for each type that it may have.",
			budget.MaxPaths)})
	}
}

// fewAliases is the number of names up to which a linear search is faster than a map.
const fewAliases = 32

// defines reports whether the SELECT itself defines a name.
func (s *scope) defines(name string) bool {
	if len(s.aliases) <= fewAliases {
		return slices.Contains(s.aliases, name)
	}
	if s.defined == nil {
		s.defined = make(map[string]bool, len(s.aliases))
		for _, alias := range s.aliases {
			s.defined[alias] = true
		}
	}
	return s.defined[name]
}

// needsTable reports whether a column's name alone could mean something else.
func (p *printer) needsTable(c *resolved.Column, from source) bool {
	return len(p.scope.tables) > 1 || p.scope.defines(c.Name) || len(c.Path) > 0 && from.printed == c.Name
}
