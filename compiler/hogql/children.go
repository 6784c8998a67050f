package hogql

// ExprChildren applies the functions of r to the direct children of e, and returns e itself if none was replaced.
func (r *Rewriter) ExprChildren(e Expr) Expr {
	switch n := e.(type) {
	case *Const, *Field, *ColumnsMatching:
		return e
	case *Star:
		replace := mapped(n.Replace, r.alias)
		if same(replace, n.Replace) {
			return e
		}
		c := *n
		c.Replace = replace
		return &c
	case *Call:
		return r.call(n)
	case *Unary:
		if x := r.expr(n.X); x != n.X {
			return &Unary{Pos: n.Pos, Op: n.Op, X: x}
		}
	case *Binary:
		left, right := r.expr(n.Left), r.expr(n.Right)
		if left != n.Left || right != n.Right {
			return &Binary{Pos: n.Pos, Op: n.Op, Left: left, Right: right}
		}
	case *Compare:
		left, right := r.expr(n.Left), r.expr(n.Right)
		if left != n.Left || right != n.Right {
			return &Compare{Pos: n.Pos, Op: n.Op, Left: left, Right: right}
		}
	case *Logic:
		if args := mapped(n.Args, r.expr); !same(args, n.Args) {
			return &Logic{Pos: n.Pos, Or: n.Or, Args: args}
		}
	case *Between:
		x, low, high := r.expr(n.X), r.expr(n.Low), r.expr(n.High)
		if x != n.X || low != n.Low || high != n.High {
			return &Between{Pos: n.Pos, X: x, Low: low, High: high, Not: n.Not}
		}
	case *Case:
		x, whens := r.expr(n.X), mapped(n.Whens, r.when)
		otherwise := r.expr(n.Else)
		if x != n.X || !same(whens, n.Whens) || otherwise != n.Else {
			return &Case{Pos: n.Pos, X: x, Whens: whens, Else: otherwise}
		}
	case *Cast:
		if x := r.expr(n.X); x != n.X {
			return &Cast{Pos: n.Pos, X: x, Type: n.Type, TypePos: n.TypePos}
		}
	case *Tuple:
		if items := mapped(n.Items, r.expr); !same(items, n.Items) {
			return &Tuple{Pos: n.Pos, Items: items}
		}
	case *Array:
		if items := mapped(n.Items, r.expr); !same(items, n.Items) {
			return &Array{Pos: n.Pos, Items: items}
		}
	case *Dict:
		keys, values := mapped(n.Keys, r.expr), mapped(n.Values, r.expr)
		if !same(keys, n.Keys) || !same(values, n.Values) {
			return &Dict{Pos: n.Pos, Keys: keys, Values: values}
		}
	case *Lambda:
		if body := r.expr(n.Body); body != n.Body {
			return &Lambda{Pos: n.Pos, Params: n.Params, Body: body}
		}
	case *Index:
		x, index := r.expr(n.X), r.expr(n.Index)
		if x != n.X || index != n.Index {
			return &Index{Pos: n.Pos, X: x, Index: index, NullSafe: n.NullSafe}
		}
	case *Slice:
		x, from, to := r.expr(n.X), r.expr(n.From), r.expr(n.To)
		if x != n.X || from != n.From || to != n.To {
			return &Slice{Pos: n.Pos, X: x, From: from, To: to}
		}
	case *Element:
		if x := r.expr(n.X); x != n.X {
			return &Element{Pos: n.Pos, X: x, N: n.N, NullSafe: n.NullSafe}
		}
	case *Member:
		if x := r.expr(n.X); x != n.X {
			return &Member{Pos: n.Pos, X: x, Name: n.Name, NullSafe: n.NullSafe}
		}
	case *Interval:
		if x := r.expr(n.N); x != n.N {
			return &Interval{Pos: n.Pos, N: x, Unit: n.Unit}
		}
	case *Placeholder:
		if x := r.expr(n.X); x != n.X {
			return &Placeholder{Pos: n.Pos, X: x}
		}
	case *Subquery:
		if q := r.query(n.Query); q != n.Query {
			return &Subquery{Pos: n.Pos, Query: q}
		}
	case *Alias:
		return r.alias(n)
	}
	return e
}

func (r *Rewriter) call(n *Call) Expr {
	params, args := mapped(n.Params, r.expr), mapped(n.Args, r.expr)
	order, filter, over := mapped(n.OrderBy, r.order), r.expr(n.Filter), r.window(n.Over)
	if same(params, n.Params) && same(args, n.Args) && same(order, n.OrderBy) && filter == n.Filter && over == n.Over {
		return n
	}
	c := *n
	c.Params, c.Args, c.OrderBy, c.Filter, c.Over = params, args, order, filter, over
	return &c
}

func (r *Rewriter) alias(n *Alias) *Alias {
	if x := r.expr(n.X); x != n.X {
		return &Alias{Pos: n.Pos, X: x, Name: n.Name}
	}
	return n
}

func (r *Rewriter) when(w When) When { return When{If: r.expr(w.If), Then: r.expr(w.Then)} }

// QueryChildren applies the functions of r to the direct children of q, and returns q itself if none was replaced.
func (r *Rewriter) QueryChildren(q Query) Query {
	switch n := q.(type) {
	case *Select:
		return r.selectChildren(n)
	case *SetQuery:
		with, members := mapped(n.With, r.cte), mapped(n.Members, r.query)
		order, limit := mapped(n.OrderBy, r.order), r.limit(n.Limit)
		if same(with, n.With) && same(members, n.Members) && same(order, n.OrderBy) && limit == n.Limit {
			return q
		}
		c := *n
		c.With, c.Members, c.OrderBy, c.Limit = with, members, order, limit
		return &c
	case *QueryPlaceholder:
		if x := r.expr(n.X); x != n.X {
			return &QueryPlaceholder{Pos: n.Pos, X: x}
		}
	}
	return q
}

func (r *Rewriter) selectChildren(n *Select) Query {
	c := *n
	c.With = mapped(n.With, r.cte)
	c.From = r.table(n.From)
	c.ArrayJoin = r.arrayJoin(n.ArrayJoin)
	c.Columns = mapped(n.Columns, r.expr)
	c.Prewhere = r.expr(n.Prewhere)
	c.Where = r.expr(n.Where)
	c.GroupBy = r.groupBy(n.GroupBy)
	c.Having = r.expr(n.Having)
	c.Windows = mapped(n.Windows, r.namedWindow)
	c.OrderBy = mapped(n.OrderBy, r.order)
	c.Interpolate = r.interpolate(n.Interpolate)
	c.LimitBy = r.limitBy(n.LimitBy)
	c.Limit = r.limit(n.Limit)
	if same(c.With, n.With) && c.From == n.From && c.ArrayJoin == n.ArrayJoin && same(c.Columns, n.Columns) &&
		c.Prewhere == n.Prewhere && c.Where == n.Where && c.GroupBy == n.GroupBy && c.Having == n.Having &&
		same(c.Windows, n.Windows) && same(c.OrderBy, n.OrderBy) && c.Interpolate == n.Interpolate &&
		c.LimitBy == n.LimitBy && c.Limit == n.Limit {
		return n
	}
	out := c // a copy, so that an unchanged query costs no allocation
	return &out
}

// TableChildren applies the functions of r to the direct children of t, and returns t itself if none was replaced.
func (r *Rewriter) TableChildren(t Table) Table {
	switch n := t.(type) {
	case *TableName:
		if s := r.sample(n.Sample); s != n.Sample {
			c := *n
			c.Sample = s
			return &c
		}
	case *TableFunc:
		if args := mapped(n.Args, r.expr); !same(args, n.Args) {
			c := *n
			c.Args = args
			return &c
		}
	case *Derived:
		if q := r.query(n.Query); q != n.Query {
			c := *n
			c.Query = q
			return &c
		}
	case *TablePlaceholder:
		if x := r.expr(n.X); x != n.X {
			return &TablePlaceholder{Pos: n.Pos, X: x, Alias: n.Alias}
		}
	case *Join:
		left, right, on := r.table(n.Left), r.table(n.Right), r.expr(n.On)
		if left != n.Left || right != n.Right || on != n.On {
			c := *n
			c.Left, c.Right, c.On = left, right, on
			return &c
		}
	}
	return t
}

func (r *Rewriter) cte(n *CTE) *CTE {
	q, x := r.query(n.Query), r.expr(n.X)
	if q == n.Query && x == n.X {
		return n
	}
	c := *n
	c.Query, c.X = q, x
	return &c
}

func (r *Rewriter) arrayJoin(n *ArrayJoin) *ArrayJoin {
	if n == nil {
		return nil
	}
	if arrays := mapped(n.Arrays, r.alias); !same(arrays, n.Arrays) {
		return &ArrayJoin{Pos: n.Pos, Left: n.Left, Arrays: arrays}
	}
	return n
}

func (r *Rewriter) groupBy(n *GroupBy) *GroupBy {
	if n == nil {
		return nil
	}
	keys := mapped(n.Keys, r.expr)
	sets, changed := n.Sets, false
	for i, old := range n.Sets {
		set := mapped(old, r.expr)
		if same(set, old) {
			continue
		}
		if !changed {
			sets, changed = append([][]Expr(nil), n.Sets...), true
		}
		sets[i] = set
	}
	if same(keys, n.Keys) && !changed {
		return n
	}
	c := *n
	c.Keys, c.Sets = keys, sets
	return &c
}

func (r *Rewriter) interpolate(n *Interpolate) *Interpolate {
	if n == nil {
		return nil
	}
	columns := mapped(n.Columns, func(c *InterpolatedColumn) *InterpolatedColumn {
		if x := r.expr(c.X); x != c.X {
			return &InterpolatedColumn{Name: c.Name, X: x}
		}
		return c
	})
	if same(columns, n.Columns) {
		return n
	}
	return &Interpolate{Pos: n.Pos, Columns: columns}
}

func (r *Rewriter) order(n *Order) *Order {
	x, fill := r.expr(n.X), r.fill(n.Fill)
	if x == n.X && fill == n.Fill {
		return n
	}
	c := *n
	c.X, c.Fill = x, fill
	return &c
}

func (r *Rewriter) fill(n *Fill) *Fill {
	if n == nil {
		return nil
	}
	if c := (Fill{From: r.expr(n.From), To: r.expr(n.To), Step: r.expr(n.Step)}); c != *n {
		return &Fill{From: c.From, To: c.To, Step: c.Step}
	}
	return n
}

func (r *Rewriter) limit(n *Limit) *Limit {
	if n == nil {
		return nil
	}
	count, offset := r.expr(n.N), r.expr(n.Offset)
	if count == n.N && offset == n.Offset {
		return n
	}
	c := *n
	c.N, c.Offset = count, offset
	return &c
}

func (r *Rewriter) limitBy(n *LimitBy) *LimitBy {
	if n == nil {
		return nil
	}
	count, offset, keys := r.expr(n.N), r.expr(n.Offset), mapped(n.Keys, r.expr)
	if count == n.N && offset == n.Offset && same(keys, n.Keys) {
		return n
	}
	return &LimitBy{Pos: n.Pos, N: count, Offset: offset, Keys: keys}
}

func (r *Rewriter) sample(n *Sample) *Sample {
	if n == nil {
		return nil
	}
	ratio, offset := r.expr(n.Ratio), r.expr(n.Offset)
	if ratio == n.Ratio && offset == n.Offset {
		return n
	}
	return &Sample{Pos: n.Pos, Ratio: ratio, Offset: offset}
}

func (r *Rewriter) namedWindow(n *NamedWindow) *NamedWindow {
	if w := r.window(n.Window); w != n.Window {
		return &NamedWindow{Pos: n.Pos, Name: n.Name, Window: w}
	}
	return n
}

func (r *Rewriter) window(n *Window) *Window {
	if n == nil {
		return nil
	}
	partition, order, frame := mapped(n.PartitionBy, r.expr), mapped(n.OrderBy, r.order), r.frame(n.Frame)
	if same(partition, n.PartitionBy) && same(order, n.OrderBy) && frame == n.Frame {
		return n
	}
	c := *n
	c.PartitionBy, c.OrderBy, c.Frame = partition, order, frame
	return &c
}

func (r *Rewriter) frame(n *Frame) *Frame {
	if n == nil {
		return nil
	}
	start, end := r.expr(n.Start.N), r.expr(n.End.N)
	if start == n.Start.N && end == n.End.N {
		return n
	}
	c := *n
	c.Start.N, c.End.N = start, end
	return &c
}

// mapped returns the results of f for each element: list itself if f changes none, and nil for nil.
func mapped[T comparable](list []T, f func(T) T) []T {
	for i, old := range list {
		now := f(old)
		if now == old {
			continue
		}
		out := make([]T, len(list))
		copy(out, list[:i])
		out[i] = now
		for j := i + 1; j < len(list); j++ {
			out[j] = f(list[j])
		}
		return out
	}
	return list
}

// same reports whether mapped returned its list unchanged.
func same[T any](a, b []T) bool {
	return len(a) == 0 || &a[0] == &b[0]
}
