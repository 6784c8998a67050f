package sql

import (
	"cmp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// guardColumn is the column that guards compare.
const guardColumn = schema.ProjectColumn

// table writes a table in FROM. joined reports whether there are other tables.
func (p *printer) table(t resolved.Table, joined bool) {
	switch t := t.(type) {
	case *resolved.Scan:
		if joined {
			p.bug("a bare scan of %q under a join", t.Table)
		}
		p.scan(t)
	case *resolved.Derived:
		p.byte('(')
		p.query(t.Query)
		p.byte(')')
		p.as(p.printed(t.Alias))
	case *resolved.CTERef:
		p.reference(t)
	case *resolved.Numbers:
		p.numbers(t)
	case *resolved.Join:
		p.join(t)
	}
}

// printed returns the printed name of a table of the current SELECT.
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

// scan writes a physical table. Its guard is put into WHERE: see where.
func (p *printer) scan(t *resolved.Scan) {
	p.checkScan(t)
	if p.tables != nil {
		p.tables = append(p.tables, t.Table)
	}
	p.ident(t.Table)
	if printed := p.printed(cmp.Or(t.Alias, t.Table)); printed != t.Table {
		p.as(printed)
	}
	p.sample(t.Sample)
}

// checkScan refuses a table that is not in the schema, and a table with projects' rows whose guard does not compare with this project.
func (p *printer) checkScan(t *resolved.Scan) {
	if !p.db.Guarded(t.Table) {
		p.bug("table %q is not physical", t.Table)
	}
	if !p.guards(t.Guard) {
		p.bug("the scan of %q is not guarded", t.Table)
	}
}

// guards reports whether a condition can only hold for rows of the project.
func (p *printer) guards(guard resolved.Expr) bool {
	if all, ok := guard.(*resolved.Logic); ok {
		return !all.Or && slices.ContainsFunc(all.Args, p.guards)
	}
	g, ok := guard.(*resolved.Native)
	if !ok || g.Name != "equals" || len(g.Args) != 2 || g.Params != nil || g.Over != nil {
		return false
	}
	column, isColumn := g.Args[0].(*resolved.Column)
	project, isConst := g.Args[1].(*resolved.Const)
	return isColumn && isConst && column.Name == guardColumn && len(column.Path) == 0 && project.Value == p.db.Project
}

// reference writes a use of a common table expression.
func (p *printer) reference(t *resolved.CTERef) {
	for _, known := range slices.Backward(p.ctes) {
		if known.name != t.Name {
			continue
		}
		p.ident(known.printed)
		if printed := p.printed(cmp.Or(t.Alias, t.Name)); printed != known.printed {
			p.as(printed)
		}
		return
	}
	p.bug("%q is not a common table expression in scope", t.Name)
}

// numbersName is the name of the only table function.
const numbersName = "numbers"

func (p *printer) numbers(t *resolved.Numbers) {
	p.str(numbersName)
	p.args(t.Args)
	p.as(p.printed(cmp.Or(t.Alias, numbersName)))
}

func (p *printer) join(j *resolved.Join) {
	if _, nested := j.Right.(*resolved.Join); nested {
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
	case j.Kind != hogql.CrossJoin:
		p.bug("a join without a condition")
	}
}

// sample writes SAMPLE, which only takes plain numbers and fractions.
func (p *printer) sample(s *resolved.Sample) {
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

func (p *printer) ratio(e resolved.Expr) {
	if c, ok := e.(*resolved.Const); ok {
		switch c.Value.(type) {
		case int64, uint64, float64:
			p.constant(c)
			return
		}
	}
	if n, ok := e.(*resolved.Native); ok && n.Name == "divide" && len(n.Args) == 2 {
		p.ratio(n.Args[0])
		p.str(" / ")
		p.ratio(n.Args[1])
		return
	}
	p.bug("SAMPLE of something other than a number")
}
