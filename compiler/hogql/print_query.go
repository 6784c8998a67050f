package hogql

func (p *printer) query(q Query) {
	p.spend.Nodes(1)
	switch n := q.(type) {
	case *Select:
		p.selectQuery(n)
	case *SetQuery:
		p.with(n.With, n.Recursive)
		if n.With != nil {
			p.put("(")
		}
		p.setQuery(n)
		if n.With != nil {
			p.put(")")
		}
	case *QueryPlaceholder:
		p.put("{")
		p.item(n.X)
		p.put("}")
	}
}

var setOps = [...]string{
	UnionAll:          " UNION ALL",
	UnionDistinct:     " UNION DISTINCT",
	Intersect:         " INTERSECT",
	IntersectDistinct: " INTERSECT DISTINCT",
	Except:            " EXCEPT",
}

// setQuery writes the members of n and its clauses. The last member needs parentheses if it would otherwise swallow an ORDER BY or LIMIT.
func (p *printer) setQuery(n *SetQuery) {
	tail := n.OrderBy != nil || n.Limit != nil
	for i, member := range n.Members {
		if i > 0 {
			p.put(setOps[n.Ops[i-1]])
			if n.ByName != nil && n.ByName[i-1] {
				p.put(" BY NAME")
			}
			p.put(" ")
		}
		_, set := member.(*SetQuery)
		_, plain := member.(*Select)
		if set || plain && tail && i == len(n.Members)-1 {
			p.put("(")
			p.query(member)
			p.put(")")
			continue
		}
		p.query(member)
	}
	p.orderBy(" ", n.OrderBy)
	p.limit(n.Limit)
}

func (p *printer) with(ctes []*CTE, recursive bool) {
	if ctes == nil {
		return
	}
	p.put("WITH ")
	if recursive {
		p.put("RECURSIVE ")
	}
	commas(p, ctes, func(c *CTE) {
		if c.Query == nil {
			p.expr(c.X, levelTernary)
			p.put(" AS ")
			p.name(c.Name)
			return
		}
		p.name(c.Name)
		if c.Columns != nil {
			p.put(" ")
			p.names(c.Columns)
		}
		p.put(" AS (")
		p.query(c.Query)
		p.put(")")
	})
	p.put(" ")
}

func (p *printer) selectQuery(n *Select) {
	p.with(n.With, n.Recursive)
	p.put("SELECT ")
	if n.Distinct {
		p.put("DISTINCT ")
	}
	commas(p, n.Columns, p.item)
	if n.From != nil {
		p.put(" FROM ")
		p.table(n.From)
	}
	if n.ArrayJoin != nil {
		if n.ArrayJoin.Left {
			p.put(" LEFT")
		}
		p.put(" ARRAY JOIN ")
		commas(p, n.ArrayJoin.Arrays, func(a *Alias) { p.item(a) })
	}
	p.clause(" PREWHERE ", n.Prewhere)
	p.clause(" WHERE ", n.Where)
	p.groupBy(n.GroupBy)
	p.clause(" HAVING ", n.Having)
	if n.Windows != nil {
		p.put(" WINDOW ")
		commas(p, n.Windows, func(w *NamedWindow) {
			p.name(w.Name)
			p.put(" AS ")
			p.window(w.Window)
		})
	}
	p.orderBy(" ", n.OrderBy)
	p.interpolate(n.Interpolate)
	if by := n.LimitBy; by != nil {
		p.clause(" LIMIT ", by.N)
		p.clause(" OFFSET ", by.Offset)
		p.put(" BY ")
		commas(p, by.Keys, p.item)
	}
	p.limit(n.Limit)
}

func (p *printer) interpolate(n *Interpolate) {
	if n == nil {
		return
	}
	p.put(" INTERPOLATE")
	if n.Columns == nil {
		return
	}
	p.put(" (")
	commas(p, n.Columns, func(c *InterpolatedColumn) {
		p.name(c.Name)
		p.clause(" AS ", c.X)
	})
	p.put(")")
}

// clause writes a keyword and its expression, if there is one.
func (p *printer) clause(word string, e Expr) {
	if e != nil {
		p.put(word)
		p.expr(e, levelTernary)
	}
}

func (p *printer) groupBy(n *GroupBy) {
	if n == nil {
		return
	}
	p.put(" GROUP BY ")
	switch n.Mode {
	case GroupKeys:
		commas(p, n.Keys, p.item)
	case GroupCube:
		p.call("CUBE", n.Keys)
	case GroupRollup:
		p.call("ROLLUP", n.Keys)
	case GroupSets:
		p.put("GROUPING SETS (")
		commas(p, n.Sets, func(set []Expr) { p.call("", set) })
		p.put(")")
	case GroupAll:
		p.put("ALL")
	}
	if n.Totals {
		p.put(" WITH TOTALS")
	}
}

// call writes word(a, b).
func (p *printer) call(word string, args []Expr) {
	p.put(word, "(")
	commas(p, args, p.item)
	p.put(")")
}

// orderBy writes ORDER BY after the given text, if there are keys.
func (p *printer) orderBy(before string, keys []*Order) {
	if len(keys) == 0 {
		return
	}
	p.put(before, "ORDER BY ")
	commas(p, keys, func(o *Order) {
		p.item(o.X)
		if o.Desc {
			p.put(" DESC")
		}
		switch o.Nulls {
		case NullsDefault:
		case NullsFirst:
			p.put(" NULLS FIRST")
		case NullsLast:
			p.put(" NULLS LAST")
		}
		if o.Fill != nil {
			p.put(" WITH FILL")
			p.clause(" FROM ", o.Fill.From)
			p.clause(" TO ", o.Fill.To)
			p.clause(" STEP ", o.Fill.Step)
		}
	})
}

func (p *printer) limit(n *Limit) {
	if n == nil {
		return
	}
	p.clause(" LIMIT ", n.N)
	if n.Percent {
		p.put(" %")
	}
	if n.WithTies {
		p.put(" WITH TIES")
	}
	p.clause(" OFFSET ", n.Offset)
}

var (
	joinKinds = [...]string{
		InnerJoin: "", LeftJoin: "LEFT ", RightJoin: "RIGHT ", FullJoin: "FULL ", CrossJoin: "CROSS ",
	}
	joinStrictnesses = [...]string{
		JoinDefault: "", JoinAll: "ALL ", JoinAny: "ANY ", JoinAsof: "ASOF ", JoinSemi: "SEMI ", JoinAnti: "ANTI ",
	}
)

func (p *printer) table(t Table) {
	p.spend.Nodes(1)
	switch n := t.(type) {
	case *TableName:
		p.chain(n.Chain)
		p.tableAlias(n.Alias)
		p.columnNames(n.Columns)
		p.sample(n.Sample)
	case *TableFunc:
		p.function(n.Name.Text)
		p.call("", n.Args)
		p.tableAlias(n.Alias)
		p.columnNames(n.Columns)
	case *Derived:
		p.put("(")
		p.query(n.Query)
		p.put(")")
		p.tableAlias(n.Alias)
		p.columnNames(n.Columns)
	case *TablePlaceholder:
		p.put("{")
		p.item(n.X)
		p.put("}")
		p.tableAlias(n.Alias)
	case *Join:
		p.join(n)
	}
}

func (p *printer) columnNames(list []Name) {
	if list != nil {
		p.put(" ")
		p.names(list)
	}
}

func (p *printer) tableAlias(n Name) {
	if n.Text != "" {
		p.put(" AS ")
		p.name(n)
	}
}

func (p *printer) sample(n *Sample) {
	if n != nil {
		p.clause(" SAMPLE ", n.Ratio)
		p.clause(" OFFSET ", n.Offset)
	}
}

func (p *printer) join(n *Join) {
	p.table(n.Left)
	p.put(" ", joinKinds[n.Kind], joinStrictnesses[n.Strictness], "JOIN ")
	if _, nested := n.Right.(*Join); nested {
		p.put("(")
		p.table(n.Right)
		p.put(")")
	} else {
		p.table(n.Right)
	}
	switch {
	case n.On != nil:
		p.put(" ON ")
		p.item(n.On)
	case n.Using != nil:
		p.put(" USING ")
		p.names(n.Using)
	}
}

func (p *printer) window(n *Window) {
	if n.Name.Text != "" {
		p.name(n.Name)
		return
	}
	p.put("(")
	before := ""
	if n.PartitionBy != nil {
		p.put("PARTITION BY ")
		commas(p, n.PartitionBy, p.item)
		before = " "
	}
	if n.OrderBy != nil {
		p.orderBy(before, n.OrderBy)
		before = " "
	}
	if n.Frame != nil {
		p.put(before)
		p.frame(n.Frame)
	}
	p.put(")")
}

func (p *printer) frame(n *Frame) {
	word := "ROWS "
	if n.Range {
		word = "RANGE "
	}
	p.put(word)
	if n.End.Kind == FrameNone {
		p.bound(n.Start)
		return
	}
	p.put("BETWEEN ")
	p.bound(n.Start)
	p.put(" AND ")
	p.bound(n.End)
}

func (p *printer) bound(b Bound) {
	switch b.Kind {
	case FrameNone:
	case CurrentRow:
		p.put("CURRENT ROW")
	case UnboundedPreceding:
		p.put("UNBOUNDED PRECEDING")
	case UnboundedFollowing:
		p.put("UNBOUNDED FOLLOWING")
	case Preceding:
		p.expr(b.N, levelSum)
		p.put(" PRECEDING")
	case Following:
		p.expr(b.N, levelSum)
		p.put(" FOLLOWING")
	}
}
