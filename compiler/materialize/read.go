package materialize

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// reader builds the query that reads the table, and the columns of the table along with it.
//
// If a run reads whole rows of the query, the table has the columns of the query, followed by what else is needed: sort keys, and the columns of
// conditions. If it merges aggregates (again), the table only has their parts: the keys of GROUP BY and the aggregates, from which the read
// computes its columns.
type reader struct {
	*builder
	again  bool
	single bool // there is one group, even without rows

	own   []hogql.Expr   // the columns of the query, unchanged
	added []hogql.Expr   // the columns after them
	known map[string]int // the indexes of these by their text
	texts []string       // of the select list, without aliases; empty for expressions that mean something else elsewhere
	refs  map[int][]*ref // the uses of added columns in the read, by index
	keys  []key          // of GROUP BY, if the read groups again
	out   []hogql.Expr   // the columns of the read, if it computes them
	names []string       // and their names

	written int // nodes of expressions
}

// ref is the use of a table column, whose name is known once the query that fills the table is compiled.
type ref = hogql.Field

// key is a key of GROUP BY, with its index among the added columns.
type key struct {
	x     hogql.Expr
	text  string
	name  string // its alias
	place int
}

// use returns an expression that reads an added column.
func (r *reader) use(place int) hogql.Expr {
	f := field(r.plan.name, "")
	r.refs[place] = append(r.refs[place], f)
	return f
}

// text returns the text that identifies an expression with the alias name wherever it is written. It is empty for an expression that uses a column
// of the same name: elsewhere, that name means the alias.
func (r *reader) text(x hogql.Expr, name string) string {
	if f, ok := x.(*hogql.Field); name != "" && (!ok || len(f.Chain) > 1) && names(x, func(n string) bool { return n == name }) {
		return ""
	}
	return hogql.PrintExpr(x)
}

// names reports whether an expression contains a name that passes a test.
func names(e hogql.Expr, test func(string) bool) bool {
	found := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		f, ok := e.(*hogql.Field)
		found = found || ok && test(f.Chain[0].Text)
		return !found
	})
	return found
}

// keep adds a column to the table, unless it has it, and returns its index among the added columns. A column without a name gets the given one.
func (r *reader) keep(e hogql.Expr, name string) int {
	x, own := unnamed(e)
	text := r.text(x, own)
	if place, ok := r.known[text]; ok && text != "" {
		return place
	}
	if own == "" && name != "" {
		e = alias(x, r.free(name))
	}
	r.known[text] = len(r.added)
	r.added = append(r.added, e)
	return len(r.added) - 1
}

// item returns the expression of the select list that a name or number in another clause refers to; nil for none.
func (r *reader) item(e hogql.Expr) (place int, x hogql.Expr) {
	if c, ok := e.(*hogql.Const); ok {
		if n, ok := c.Value.(int64); ok && n >= 1 && n <= int64(len(r.sel.Columns)) {
			x, _ := unnamed(r.sel.Columns[n-1])
			return int(n) - 1, x
		}
		return -1, nil
	}
	f, isField := e.(*hogql.Field)
	for i, c := range r.sel.Columns {
		x, name := unnamed(c)
		if isField && len(f.Chain) == 1 && name != "" && name == f.Chain[0].Text {
			return i, x
		}
	}
	if i := slices.Index(r.texts, hogql.PrintExpr(e)); i >= 0 {
		x, _ := unnamed(r.sel.Columns[i])
		return i, x
	}
	return -1, nil
}

// spread reports whether the select list has columns that are not listed individually.
func (r *reader) spread() bool {
	return slices.ContainsFunc(r.sel.Columns, func(e hogql.Expr) bool { return is[*hogql.Star](e) || spreads(e) })
}

// compute builds the columns of a read that merges aggregates.
func (r *reader) compute() error {
	if r.spread() {
		return unsupported("SELECT * is not supported together with aggregates: name the columns")
	}
	if g := r.sel.GroupBy; g != nil {
		for _, e := range g.Keys {
			k := key{x: e}
			if i, x := r.item(e); x != nil {
				k.x = x
				_, k.name = unnamed(r.sel.Columns[i])
			}
			k.text = r.text(k.x, k.name)
			if holdsAggregate(k.x) {
				return unsupported("GROUP BY of an aggregate is not supported")
			}
			named := k.x
			if k.name != "" {
				named = alias(k.x, k.name)
			}
			k.place = r.keep(named, r.plain(k.x, "group"))
			r.keys = append(r.keys, k)
		}
	}
	for _, c := range r.sel.Columns { // selected aggregates keep their names
		x, name := unnamed(c)
		if a, ok := x.(*hogql.Call); ok && isAggregate(a) && name != "" {
			if _, err := r.aggregate(a, name); err != nil {
				return err
			}
		}
	}
	for _, c := range r.sel.Columns {
		x, name := unnamed(c)
		if r.isKey(name) { // its expression may mean something else here
			x = field(name)
		}
		over, err := r.over(x, 0)
		if err != nil {
			return err
		}
		if name == "" {
			name = outputName(x)
		}
		r.out, r.names = append(r.out, over), append(r.names, name)
	}
	return nil
}

// isKey reports whether an alias is a key of GROUP BY.
func (r *reader) isKey(name string) bool {
	return name != "" && slices.ContainsFunc(r.keys, func(k key) bool { return k.name == name })
}

// checkAliases refuses a table whose columns or conditions use an alias that the table does not have: there, the name would mean something
// else.
func (r *reader) checkAliases() error {
	missing := map[string]bool{}
	for _, c := range r.sel.Columns {
		if _, name := unnamed(c); name != "" {
			missing[name] = true
		}
	}
	for _, c := range r.added {
		_, name := unnamed(c)
		delete(missing, name)
	}
	for _, e := range slices.Concat(r.added, r.left) {
		x, _ := unnamed(e)
		if names(x, func(n string) bool { return missing[n] }) {
			return unsupported("An alias of what is computed of aggregates is used in '%s'", hogql.ShortText(x))
		}
	}
	return nil
}

// plain returns the name for a column without an alias; empty if it is a plain name already.
func (r *reader) plain(x hogql.Expr, otherwise string) string {
	if f, ok := x.(*hogql.Field); ok && len(f.Chain) == 1 {
		return ""
	}
	return otherwise
}

// outputName returns the name that a column without an alias has in answers.
func outputName(x hogql.Expr) string {
	f, ok := x.(*hogql.Field)
	if !ok {
		return hogql.FunctionForm(x)
	}
	for i := len(f.Chain) - 2; i >= 0; i-- {
		if f.Chain[i].Text == "properties" {
			var parts []string
			for _, n := range f.Chain[i+1:] {
				parts = append(parts, n.Text)
			}
			return strings.Join(parts, "__")
		}
	}
	last := f.Chain[len(f.Chain)-1]
	if last.Index { // an element of a tuple has no name
		return hogql.FunctionForm(x)
	}
	return last.Text
}

// The bounds on expressions over the table's columns, with aliases inlined: their depth, and their number of nodes.
const (
	maxNested  = 200
	maxWritten = 10_000
)

// over rewrites an expression in terms of the table's columns: the keys of GROUP BY and merged aggregates.
func (r *reader) over(e hogql.Expr, depth int) (hogql.Expr, error) {
	if r.written++; depth > maxNested || r.written > maxWritten {
		return nil, unsupported("The expressions beside aggregates are too large")
	}
	text := hogql.PrintExpr(e)
	for _, k := range r.keys {
		f, isField := e.(*hogql.Field)
		if k.text == text || k.name != "" && isField && len(f.Chain) == 1 && f.Chain[0].Text == k.name {
			return r.use(k.place), nil
		}
	}
	switch e := e.(type) {
	case *hogql.Const, *hogql.Placeholder:
		return e, nil
	case *hogql.Alias:
		return r.over(e.X, depth+1)
	case *hogql.Field:
		return r.overField(e, text, depth)
	case *hogql.Call:
		switch {
		case isAggregate(e):
			return r.aggregate(e, "")
		case isVolatile(e):
			return nil, unsupported("Function '%s' is not supported beside aggregates", e.Name)
		}
	case *hogql.Subquery, *hogql.Lambda, *hogql.Star, *hogql.ColumnsMatching:
		return nil, unsupported("Expression '%s' is not supported beside aggregates", hogql.ShortText(e))
	case *hogql.Unary, *hogql.Binary, *hogql.Compare, *hogql.Logic, *hogql.Between, *hogql.Case, *hogql.Cast, *hogql.Tuple, *hogql.Array, *hogql.Dict,
		*hogql.Index, *hogql.Slice, *hogql.Element, *hogql.Member, *hogql.Interval:
	}
	return r.overChildren(e, depth)
}

// overField rewrites a name that is not a key: it must be an alias of the select list.
func (r *reader) overField(f *hogql.Field, text string, depth int) (hogql.Expr, error) {
	for i, c := range r.sel.Columns {
		if x, name := unnamed(c); len(f.Chain) == 1 && name == f.Chain[0].Text && r.texts[i] != text {
			return r.over(x, depth+1)
		}
	}
	return nil, unsupported("Column '%s' is not one of those that the query is grouped by", text)
}

func (r *reader) overChildren(e hogql.Expr, depth int) (out hogql.Expr, err error) {
	below := hogql.Rewriter{Expr: func(child hogql.Expr) hogql.Expr {
		if err != nil {
			return child
		}
		var over hogql.Expr
		if over, err = r.over(child, depth+1); err != nil {
			return child
		}
		return over
	}}
	out = below.ExprChildren(e)
	return out, err
}

// aggregate stores the values of an aggregate, and returns the expression that merges them.
func (r *reader) aggregate(c *hogql.Call, name string) (hogql.Expr, error) {
	if r.single {
		function, ok := mergeOfSingle(c)
		if !ok {
			return nil, unsupported("Aggregate function '%s' without GROUP BY is not supported together with variables", distinctName(c))
		}
		t, _ := mergeOf(c)
		return r.mergeCall(c, name, merge{function, t.matched}), nil
	}
	t, ok := mergeOf(c)
	if !ok {
		return nil, unsupported("Aggregate function '%s' cannot be re-aggregated for range variable materialization", distinctName(c))
	}
	return r.mergeCall(c, name, t), nil
}

func (r *reader) mergeCall(c *hogql.Call, name string, t merge) hogql.Expr {
	kept := hogql.Expr(c)
	if name != "" {
		kept = alias(c, name)
	}
	place := r.keep(kept, "aggregate")
	if t.matched == nil {
		return call(t.function, r.use(place))
	}
	counted := r.keep(call("countIf", t.matched), "matched")
	seen := &hogql.Compare{Op: hogql.Greater, Left: r.use(counted), Right: &hogql.Const{Value: int64(0)}}
	return call(t.function+"If", r.use(place), seen)
}

// order returns the ORDER BY of the read.
func (r *reader) order() ([]*hogql.Order, error) {
	if r.single {
		return nil, nil
	}
	out := make([]*hogql.Order, 0, len(r.sel.OrderBy))
	for _, o := range r.sel.OrderBy {
		x, err := r.sortedBy(o.X)
		if err != nil {
			return nil, err
		}
		out = append(out, &hogql.Order{X: x, Desc: o.Desc, Nulls: o.Nulls})
	}
	return out, nil
}

func (r *reader) sortedBy(e hogql.Expr) (hogql.Expr, error) {
	if c, ok := e.(*hogql.Const); ok {
		return c, nil
	}
	if i, x := r.item(e); x != nil && !r.spread() {
		return &hogql.Const{Value: int64(i + 1)}, nil
	}
	switch {
	case r.again:
		return r.over(e, 0)
	case r.sel.Distinct:
		return nil, refuse("SELECT DISTINCT with ORDER BY '%s', which is not selected, cannot be materialized", hogql.ShortText(e))
	}
	return r.use(r.keep(e, "order")), nil
}

// build builds both queries.
func (r *reader) build() error {
	fill, read := *r.sel, &hogql.Select{Distinct: r.sel.Distinct, Limit: r.sel.Limit}
	fill.Where = logic(r.left)
	r.refs, r.known = map[int][]*ref{}, map[string]int{}
	for _, c := range r.sel.Columns {
		x, name := unnamed(c)
		r.texts = append(r.texts, r.text(x, name))
	}
	if r.again {
		if err := r.compute(); err != nil {
			return err
		}
		fill.Distinct, fill.Having = false, nil
		if r.sel.Having != nil {
			having, err := r.over(r.sel.Having, 0)
			if err != nil {
				return err
			}
			read.Having = having
		}
		for _, k := range r.keys {
			if read.GroupBy == nil {
				read.GroupBy = &hogql.GroupBy{}
			}
			read.GroupBy.Keys = append(read.GroupBy.Keys, r.use(k.place))
		}
	} else {
		r.own = r.sel.Columns
	}
	var err error
	if read.OrderBy, err = r.order(); err != nil {
		return err
	}
	var places []int
	var conditions []hogql.Expr
	for _, u := range r.uses {
		place := r.keep(alias(u.cut(u.column), u.name), "")
		places = append(places, place)
		conditions = append(conditions, u.condition(r.use(place)))
	}
	read.Where = logic(conditions)
	if r.again {
		if err := r.checkAliases(); err != nil {
			return err
		}
	}
	r.groupKeys(&fill)
	r.bounds(&fill)
	fill.Columns = slices.Concat(r.own, r.added)
	return r.finish(&fill, read, places)
}

// groupKeys adds the columns of conditions to the GROUP BY of the query that fills the table.
func (r *reader) groupKeys(fill *hogql.Select) {
	if !r.aggregated() || len(r.uses) == 0 {
		return
	}
	group := &hogql.GroupBy{}
	if fill.GroupBy != nil {
		group.Keys = slices.Clone(fill.GroupBy.Keys)
	}
	for i := range r.keys {
		group.Keys[i] = r.keys[i].x // a number would refer to another column
		if _, name := unnamed(r.added[r.keys[i].place]); name != "" {
			group.Keys[i] = field(name)
		}
	}
	known := make(map[string]bool, len(group.Keys))
	for _, k := range group.Keys {
		known[hogql.PrintExpr(k)] = true
	}
	for _, k := range r.keys {
		known[k.text] = true
	}
	for _, u := range r.uses {
		column := u.cut(u.column)
		if text := hogql.PrintExpr(column); !known[text] {
			known[text] = true
			group.Keys = append(group.Keys, column)
		}
	}
	fill.GroupBy = group
}

// bounds leaves order and limit to the reads, unless they all read the same rows.
func (r *reader) bounds(fill *hogql.Select) {
	l := r.sel.Limit
	switch {
	case len(r.uses) > 0:
		fill.OrderBy, fill.Limit = nil, nil
	case fill.LimitBy != nil:
		fill.Limit = nil
	case l == nil || l.N == nil || l.Offset != nil || l.Percent:
		fill.OrderBy, fill.Limit = nil, nil
	}
}

// finish compiles the query that fills the table, and names the columns.
func (r *reader) finish(fill hogql.Query, read *hogql.Select, places []int) error {
	compiled, columns, err := r.columnsOf(fill)
	if err != nil {
		return err
	}
	p := r.plan
	if p.Fill, _, err = r.columnsOf(numbered(fill, len(columns))); err != nil {
		return err
	}
	own := len(columns) - len(r.added)
	if !r.again {
		r.names = compiled.Columns[:own]
	}
	if err := checkNames(r.names); err != nil {
		return err
	}
	uniqueNames(columns)
	if err := checkTypes(columns); err != nil {
		return err
	}
	for slices.Contains(r.names, p.name) || slices.ContainsFunc(columns, func(c schema.KeptColumn) bool { return c.Name == p.name }) {
		p.rename(r.refs, p.name+"_table")
	}
	for place, list := range r.refs {
		for _, f := range list {
			f.Chain[1].Text = columns[own+place].Name
		}
	}
	if !r.again {
		for i := range own {
			r.out = append(r.out, field(p.name, columns[i].Name))
		}
	}
	for i, x := range r.out {
		read.Columns = append(read.Columns, alias(x, r.names[i]))
	}
	read.From = &hogql.TableName{Chain: []hogql.Name{{Text: p.name}}}
	for _, equal := range []bool{true, false} { // equality first, so that the rows of a value lie together
		for i, place := range places {
			name := schema.KeptColumnName(own + place)
			if equal == (r.uses[i].op == hogql.Equals) && !slices.Contains(p.Keys, name) {
				p.Keys = append(p.Keys, name)
			}
		}
	}
	p.fields, p.read, p.Transformed = columns, read, hogql.Print(fill)
	return nil
}

// numbered wraps a query so that its columns have their names in the table.
func numbered(q hogql.Query, columns int) *hogql.Select {
	names := make([]hogql.Name, columns)
	for i := range names {
		names[i].Text = schema.KeptColumnName(i)
	}
	return &hogql.Select{Columns: []hogql.Expr{&hogql.Star{}}, From: &hogql.Derived{Query: q, Alias: hogql.Name{Text: "kept"}, Columns: names}}
}

// rename renames the table.
func (p *Plan) rename(refs map[int][]*ref, name string) {
	p.name = name
	for _, list := range refs {
		for _, f := range list {
			f.Chain[0].Text = name
		}
	}
}

// checkNames refuses invalid names for the columns of a read.
func checkNames(names []string) error {
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return refuse("Two columns are called '%s': give each a name of its own", name)
		case strings.EqualFold(name, schema.ProjectColumn):
			return refuse("A column cannot be called '%s'", name)
		}
	}
	return nil
}

// checkTypes refuses types that a table cannot store.
func checkTypes(columns []schema.KeptColumn) error {
	for _, c := range columns {
		if c.Type.Kind == hogql.Null || c.Type.Kind == hogql.IntervalKind {
			return refuse("Column '%s' cannot be kept in a table: it has no type of its own, or that of an interval", c.Name)
		}
	}
	return nil
}

// uniqueNames makes the names of the columns unique.
func uniqueNames(columns []schema.KeptColumn) {
	taken := map[string]bool{}
	for i := range columns {
		name := columns[i].Name
		for n := 2; taken[name]; n++ {
			name = columns[i].Name + "_" + strconv.Itoa(n)
		}
		taken[name], columns[i].Name = true, name
	}
}

// listAggregates lists the columns of the query that are aggregates.
func (r *reader) listAggregates() {
	for _, c := range r.sel.Columns {
		x, name := unnamed(c)
		a, ok := x.(*hogql.Call)
		if !ok || !isAggregate(a) {
			continue
		}
		if name == "" {
			name = hogql.PrintExpr(a)
		}
		listed := Aggregate{Expression: name}
		if t, ok := mergeOf(a); ok {
			listed.ReaggregateFn = &t.function
		}
		r.plan.Aggregates = append(r.plan.Aggregates, listed)
	}
}
