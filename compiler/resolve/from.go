package resolve

import (
	"math"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// with resolves the CTEs of one WITH. Each sees those before it.
func (r *resolver) with(list []*hogql.CTE, recursive bool, env *environment) *environment {
	if len(list) == 0 {
		return env
	}
	l := &level{outer: env}
	for i, c := range list {
		name := c.Name.Text
		next := &environment{outer: env, level: l, at: i, name: name, value: c.X}
		selects, tables, openUses := r.selects, r.tables, len(r.openUses)
		switch {
		case c.Query == nil:
		case recursive && uses(c.Query, name):
			next.table = r.recursive(c, env)
		default:
			rel := r.query(c.Query, env)
			next.table = &cte{rel: rel, names: r.columnNames(rel, c.Columns, c.Name.Pos)}
		}
		if next.table != nil { // its cost counts where it is used
			next.table.size, next.table.tables = r.selects-selects, r.tables-tables
			r.selects, r.tables = selects, tables
			if slices.ContainsFunc(r.openUses[openUses:], func(around *cte) bool { return around.open }) {
				r.mistake(c.Name.Pos, "The CTE '%s' cannot read the recursive CTE that it is part of: use a subquery", name)
			}
		}
		if l.known.at(name) != nil {
			r.mistake(c.Name.Pos, "Cannot redefine a CTE with the name: %s", name)
		} else {
			l.known.put(name, next)
		}
		env = next
	}
	return env
}

// columnNames returns the names of a relation's columns in the outer query.
func (r *resolver) columnNames(rel *relation, given []hogql.Name, at hogql.Span) *labels {
	r.spend.Work(len(rel.columns))
	out := &labels{names: make([]string, len(rel.columns)), aliased: make([]bool, len(rel.columns))}
	for i, c := range rel.columns {
		out.names[i], out.aliased[i] = c.name, c.aliased
	}
	if len(given) > len(out.names) && len(out.names) > 0 {
		r.tooManyNames(len(out.names), given, at)
	}
	for i, n := range given {
		if i < len(out.names) {
			out.names[i], out.aliased[i] = n.Text, true
		}
	}
	return out
}

// from resolves FROM: the tables become the sources of the scope.
func (s *scope) from(sel *hogql.Select) {
	if sel.From == nil {
		return
	}
	if name, ok := sel.From.(*hogql.TableName); ok && len(name.Columns) == 0 && s.r.find(s.env, single(name.Chain)) == nil {
		if table, known := s.r.db.Table(schema.Root(dotted(name.Chain))); known && table.Merge == nil && table.Grouping == nil && s.r.db.Stored(table) {
			src := s.newTable(table, tableAlias(name))
			src.direct = !s.mayJoin(sel, src)
			s.addSource(src, nameAt(name.Alias, name.Pos))
			s.tree.From = src.from(s.sample(name.Sample))
			return
		}
	}
	s.tree.From = s.table(sel.From)
}

func single(chain []hogql.Name) string {
	if len(chain) != 1 {
		return ""
	}
	return chain[0].Text
}

func tableAlias(t *hogql.TableName) string {
	if t.Alias.Text != "" {
		return t.Alias.Text
	}
	return t.Chain[len(t.Chain)-1].Text
}

// addSource adds a table to the scope. Two tables of one SELECT must have different names.
func (s *scope) addSource(src source, at hogql.Span) {
	for _, other := range s.sources {
		if other.called() == src.called() && src.called() != "" {
			s.r.mistake(at, "Already have joined a table called \"%s\". Can't join another one with the same name.", src.called())
			return
		}
	}
	s.sources = append(s.sources, src)
}

// table resolves one table in FROM, or a join of tables.
func (s *scope) table(t hogql.Table) resolved.Table {
	if !s.r.enter(t.At()) {
		return nil
	}
	defer s.r.leave()
	switch t := t.(type) {
	case *hogql.TableName:
		return s.tableName(t)
	case *hogql.TableFunc:
		return s.tableFunc(t)
	case *hogql.Derived:
		return s.derived(t)
	case *hogql.Join:
		return s.join(t)
	case *hogql.TablePlaceholder:
		s.r.mistake(t.Pos, "Unresolved placeholder: %s", hogql.ShortText(t.X))
	}
	return nil
}

func (s *scope) tableName(t *hogql.TableName) resolved.Table {
	name := single(t.Chain)
	if env := s.r.find(s.env, name); env != nil && name != "" {
		if env.table == nil {
			s.r.mistake(chainAt(t.Chain, t.Pos), "CTE `%s` is a value, not a table", name)
			s.addSource(&missingSource{name: tableAlias(t)}, t.Pos)
			return nil
		}
		if t.Sample != nil {
			s.r.mistake(t.Sample.Pos, "SAMPLE needs a table that is stored, not a CTE")
		}
		src := &querySource{r: s.r, name: tableAlias(t), alias: s.uniqueTable(tableAlias(t)), rel: env.table.rel, names: env.table.names}
		s.addSource(s.r.renamed(src, t.Columns, t.Pos), nameAt(t.Alias, t.Pos))
		return &resolved.CTERef{Name: s.r.useCTE(env, t.Pos), Alias: src.alias}
	}
	name = schema.Root(dotted(t.Chain))
	if held, ok := s.r.db.Holds(name); ok {
		return s.held(t, held)
	}
	table, ok := s.r.db.Table(name)
	if !ok {
		s.r.unknownTable(t.Chain, chainAt(t.Chain, t.Pos), s.env)
		s.addSource(&missingSource{name: tableAlias(t)}, t.Pos)
		return nil
	}
	if !s.r.db.Stored(table) {
		s.r.mistake(chainAt(t.Chain, t.Pos), "Table `%s` cannot be read: the ClickHouse database has no table %s", name, table.Physical)
		s.addSource(&missingSource{name: tableAlias(t)}, t.Pos)
		return nil
	}
	src := s.newTable(table, tableAlias(t))
	if t.Group != nil {
		src.group = *t.Group
	}
	s.addSource(s.r.renamed(src, t.Columns, t.Pos), nameAt(t.Alias, t.Pos))
	if t.Sample != nil && (table.Merge != nil || table.Grouping != nil) {
		s.r.mistake(t.Sample.Pos, "SAMPLE needs a table that is stored as it is, which %s is not", table.Name)
	}
	return src.from(s.sample(t.Sample))
}

// useCTE makes sure that a table CTE is defined, and returns its name there.
func (r *resolver) useCTE(env *environment, at hogql.Span) string {
	c := env.table
	r.count(c.size, at)
	r.countTables(c.tables, at)
	if c.ref == "" {
		c.ref = r.refs.unique(env.name)
	}
	if c.open {
		r.openUses = append(r.openUses, c)
	}
	if !c.used && !c.open {
		c.used = true
		r.ctes = append(r.ctes, &resolved.CTE{Name: c.ref, Query: c.rel.tree})
	}
	return c.ref
}

// unknownTable reports a table that does not exist.
func (r *resolver) unknownTable(chain []hogql.Name, at hogql.Span, env *environment) {
	if single(chain) == "numbers" {
		r.mistake(at, "Table function 'numbers' requires arguments")
		return
	}
	if r.mistakes.Full() {
		return
	}
	e := diag.New(diag.QueryError, at, "Unknown table `%s`.", dotted(chain))
	within := ""
	if len(chain) > 1 && chain[0].Text == schema.Namespace {
		within = schema.Namespace + "."
	}
	e.Hint = schema.Nearest(dotted(chain), r.spend.Hints(func(yield func(string) bool) {
		for name := range r.db.TableNames() {
			if !yield(within + name) {
				return
			}
		}
		if !yield("numbers") {
			return
		}
		for name := range schema.HeldNames() {
			if !yield(name) {
				return
			}
		}
		for ; env != nil; env = env.outer {
			if env.table != nil && !yield(env.name) {
				return
			}
		}
	}))
	r.mistakes.Add(e)
}

func dotted(chain []hogql.Name) string {
	parts := make([]string, len(chain))
	for i, n := range chain {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}

// tableFunc resolves numbers(n) and numbers(offset, n), the only table function.
func (s *scope) tableFunc(t *hogql.TableFunc) resolved.Table {
	name := t.Name.Text
	if name != "numbers" {
		if _, table := s.r.db.Table(name); table {
			s.r.mistake(t.Pos, "Table '%s' does not accept arguments", name)
		} else {
			s.r.unknownTable([]hogql.Name{t.Name}, nameAt(t.Name, t.Pos), s.env)
		}
		s.addSource(&missingSource{name: name}, t.Pos)
		return nil
	}
	switch n := len(t.Args); {
	case n == 0:
		s.r.mistake(t.Pos, "Table function 'numbers' requires at least 1 argument")
	case n > 2:
		s.r.mistake(t.Pos, "Table function 'numbers' requires at most 2 arguments")
	}
	called := name
	if t.Alias.Text != "" {
		called = t.Alias.Text
	}
	out := &resolved.Numbers{Alias: s.uniqueTable(called)}
	apart := &scope{r: s.r, env: s.env, tree: &resolved.Select{}, clause: "a table function"}
	apart.frame = &apart.aliases
	for _, arg := range t.Args {
		e := apart.expr(arg)
		if !constant(e) {
			s.r.mistake(arg.At(), "The arguments of 'numbers' must be constant")
		}
		out.Args = append(out.Args, e)
	}
	numbers := &numbersSource{name: called, alias: out.Alias}
	s.addSource(s.r.renamed(numbers, t.Columns, t.Pos), nameAt(t.Alias, t.Pos))
	return out
}

func (s *scope) derived(t *hogql.Derived) resolved.Table {
	rel := s.r.query(t.Query, s.env)
	src := &querySource{
		r: s.r, name: t.Alias.Text, alias: s.uniqueTable(t.Alias.Text), rel: rel, names: s.r.columnNames(rel, t.Columns, t.Pos),
	}
	s.addSource(src, nameAt(t.Alias, t.Pos))
	return &resolved.Derived{Query: rel.tree, Alias: src.alias}
}

// sample resolves SAMPLE; all rows is the same as no sample. A number above 1 would be a number of rows, which ClickHouse turns into a share by
// counting the rows of every project.
func (s *scope) sample(sm *hogql.Sample) *resolved.Sample {
	if sm == nil {
		return nil
	}
	out := &resolved.Sample{Ratio: s.ratio(sm.Ratio), Offset: s.ratio(sm.Offset)}
	if c, ok := out.Ratio.(*resolved.Const); ok && (c.Value == int64(1) || c.Value == float64(1)) {
		return nil
	}
	for _, e := range []resolved.Expr{out.Ratio, out.Offset} {
		if share, known := ratioOf(e); known && (share > 1 || math.IsNaN(share)) {
			s.r.mistake(e.At(), "SAMPLE takes a share of the rows, from 0 to 1")
		}
	}
	return out
}

// ratioOf evaluates a number, or a fraction of two.
func ratioOf(e resolved.Expr) (share float64, known bool) {
	if n, ok := e.(*resolved.Native); ok && n.Name == "divide" && len(n.Args) == 2 {
		over, ok := ratioOf(n.Args[0])
		under, also := ratioOf(n.Args[1])
		return over / under, ok && also
	}
	if c, ok := e.(*resolved.Const); ok {
		return hogql.FloatOf(c.Value)
	}
	return 0, false
}

// ratio resolves a number, or a fraction of two.
func (s *scope) ratio(e hogql.Expr) resolved.Expr {
	if e == nil {
		return nil
	}
	if c, ok := e.(*hogql.Const); ok && numeric(constType(c.Value).Kind) {
		return (*resolved.Const)(c)
	}
	if b, ok := e.(*hogql.Binary); ok && b.Op == hogql.Divide {
		return native(hogql.Type{Kind: hogql.Float}, b.Pos, "divide", s.ratio(b.Left), s.ratio(b.Right))
	}
	s.r.mistake(e.At(), "SAMPLE takes a number or a fraction of two numbers")
	return &resolved.Const{Pos: e.At()}
}

// arrayJoin resolves ARRAY JOIN; its aliases are columns of the SELECT. Its arrays may be defined in the select list.
func (s *scope) arrayJoin(a *hogql.ArrayJoin) {
	if a == nil {
		return
	}
	out := &resolved.ArrayJoin{Left: a.Left}
	if len(s.sources) == 0 {
		s.r.mistake(a.Pos, "ARRAY JOIN needs a FROM")
	}
	s.clause = "ARRAY JOIN"
	values := make([]resolved.Expr, len(a.Arrays))
	for i, array := range a.Arrays {
		values[i] = s.expr(array.X)
	}
	for i, array := range a.Arrays {
		name := array.Name.Text
		if s.aliases.alias(name) != nil {
			s.r.mistake(array.Name.Pos, "Cannot redefine an alias with the name: %s", name)
			continue
		}
		item := &alias{name: name, printed: s.aliasName(name), state: aliasDefined}
		if t := typeOf(values[i]); t.Elem != nil {
			item.typ = *t.Elem
		}
		s.put(&s.aliases, item)
		out.Arrays = append(out.Arrays, named(values[i], item.printed))
	}
	s.clause = ""
	s.tree.ArrayJoin = out
}
