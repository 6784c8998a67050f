package sql

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// guardColumn is the column that guards hold on to.
const guardColumn = schema.ProjectColumn

// table writes what stands in FROM. joined reports whether it stands beside other tables.
func (p *printer) table(t hogql.Table, joined bool) {
	core, ok := t.(hogql.CoreTable)
	if !ok {
		p.bug("a table of type %T is not core", t)
	}
	switch t := core.(type) {
	case *hogql.Scan:
		if joined {
			p.bug("a bare scan of %q under a join", t.Table)
		}
		p.scan(t)
	case *hogql.Derived:
		p.byte('(')
		p.query(t.Query)
		p.byte(')')
		p.as(p.printed(t.Alias.Text))
		p.columnNames(t.Columns)
	case *hogql.TableName:
		p.reference(t)
	case *hogql.TableFunc:
		p.numbers(t)
	case *hogql.Join:
		p.join(t)
	}
}

// printed finds the printed name of a table of the current SELECT.
func (p *printer) printed(name string) string {
	for _, t := range p.scope.tables {
		if t.name == name {
			return t.printed
		}
	}
	p.bug("table %q has no name", name)
	return ""
}

func (p *printer) as(name string) {
	if name == "" {
		return
	}
	p.str(" AS ")
	p.ident(name)
}

func (p *printer) columnNames(names []hogql.Name) {
	if len(names) == 0 {
		return
	}
	p.str(" (")
	for i, name := range names {
		if i > 0 {
			p.str(", ")
		}
		p.ident(name.Text)
	}
	p.byte(')')
}

// scan writes a physical table. Its guard goes to WHERE: see where.
func (p *printer) scan(t *hogql.Scan) {
	p.checkScan(t)
	p.ident(t.Table)
	name := t.Alias
	if name == "" {
		name = t.Table
	}
	if printed := p.printed(name); printed != t.Table {
		p.as(printed)
	}
	p.sample(t.Sample)
}

// checkScan refuses a table that is not one of the schema's, and one with rows of projects whose guard does not hold on to
// this project's.
func (p *printer) checkScan(t *hogql.Scan) {
	guarded, known := schema.PhysicalTable(t.Table)
	if !known {
		p.bug("table %q is not physical", t.Table)
	}
	if guarded && !p.guards(t.Guard) {
		p.bug("the scan of %q is not guarded", t.Table)
	}
}

// guards reports whether a condition can hold only for rows of the project.
func (p *printer) guards(guard hogql.Expr) bool {
	if all, ok := guard.(*hogql.Logic); ok {
		return !all.Or && slices.ContainsFunc(all.Args, p.guards)
	}
	g, ok := guard.(*hogql.Native)
	if !ok || g.Name != "equals" || len(g.Args) != 2 || g.Params != nil || g.Over != nil {
		return false
	}
	column, isColumn := g.Args[0].(*hogql.Column)
	project, isConst := g.Args[1].(*hogql.Const)
	return isColumn && isConst && column.Name == guardColumn && len(column.Path) == 0 && project.Value == p.db.Project
}

// reference writes the use of a common table expression.
func (p *printer) reference(t *hogql.TableName) {
	if len(t.Chain) != 1 {
		p.bug("a table name of %d parts", len(t.Chain))
	}
	name := t.Chain[0].Text
	for _, known := range slices.Backward(p.ctes) {
		if known.name != name {
			continue
		}
		p.ident(known.printed)
		called := t.Alias.Text
		if called == "" {
			called = name
		}
		if printed := p.printed(called); printed != known.printed {
			p.as(printed)
		}
		p.sample(t.Sample)
		return
	}
	p.bug("%q is no common table expression in scope", name)
}

// numbers writes the only table function.
func (p *printer) numbers(t *hogql.TableFunc) {
	if t.Name.Text != "numbers" {
		p.bug("table function %q is not allowed", t.Name.Text)
	}
	p.str("numbers")
	p.args(t.Args)
	name := t.Alias.Text
	if name == "" {
		name = t.Name.Text
	}
	p.as(p.printed(name))
}

func (p *printer) join(j *hogql.Join) {
	if _, nested := j.Right.(*hogql.Join); nested {
		p.bug("a join on the right side of a join")
	}
	p.table(j.Left, true)
	p.byte(' ')
	switch j.Strictness {
	case hogql.JoinDefault:
	case hogql.JoinAll:
		p.str("ALL ")
	case hogql.JoinAny:
		p.str("ANY ")
	case hogql.JoinAsof:
		p.str("ASOF ")
	case hogql.JoinSemi:
		p.str("SEMI ")
	case hogql.JoinAnti:
		p.str("ANTI ")
	default:
		p.bug("join strictness %d", j.Strictness)
	}
	switch j.Kind {
	case hogql.InnerJoin:
		p.str("INNER JOIN ")
	case hogql.LeftJoin:
		p.str("LEFT JOIN ")
	case hogql.RightJoin:
		p.str("RIGHT JOIN ")
	case hogql.FullJoin:
		p.str("FULL JOIN ")
	case hogql.CrossJoin:
		p.str("CROSS JOIN ")
	default:
		p.bug("join kind %d", j.Kind)
	}
	p.table(j.Right, true)
	switch {
	case j.On != nil:
		p.str(" ON ")
		p.expr(j.On)
	case len(j.Using) > 0:
		p.str(" USING")
		p.columnNames(j.Using)
	case j.Kind != hogql.CrossJoin:
		p.bug("a join without a condition")
	}
}

// sample writes SAMPLE, which takes plain numbers and fractions only.
func (p *printer) sample(s *hogql.Sample) {
	if s == nil {
		return
	}
	p.str(" SAMPLE ")
	p.ratio(s.Ratio)
	if s.Offset != nil {
		p.str(" OFFSET ")
		p.ratio(s.Offset)
	}
}

func (p *printer) ratio(e hogql.Expr) {
	if c, ok := e.(*hogql.Const); ok {
		switch c.Value.(type) {
		case int64, uint64, float64:
			p.constant(c)
			return
		}
	}
	if n, ok := e.(*hogql.Native); ok && n.Name == "divide" && len(n.Args) == 2 {
		p.ratio(n.Args[0])
		p.str(" / ")
		p.ratio(n.Args[1])
		return
	}
	p.bug("SAMPLE of something else than a number")
}
