package materialize

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// hogql plans a HogQL query.
func (p *Plan) hogql(q *query.HogQL, env compiler.Env, o Options) error {
	if q.Query == "" {
		return refuse("Query is empty or invalid.")
	}
	tree, err := hogql.Parse(q.Query)
	if err != nil {
		return err
	}
	if err := checkPlaces(q, tree); err != nil {
		return err
	}
	taken := identifiers(tree)
	s, ok := tree.(*hogql.Select)
	var origins map[string]hogql.Expr
	if ok && len(s.With) > 0 {
		s, origins = lift(s, taken)
		tree = s
	}
	uses, left, err := usages(q, tree)
	if err != nil {
		return err
	}
	for _, u := range uses {
		u.shown = origin(origins, u.column)
	}
	if set, isSet := tree.(*hogql.SetQuery); isSet {
		return p.union(q, set, env, o)
	}
	if !ok {
		return refuse("Query is empty or invalid.")
	}
	b := &builder{plan: p, node: q, env: env, sel: s, uses: uses, left: left, taken: taken}
	if err := b.check(); err != nil {
		return err
	}
	b.nameKeys()
	if err := b.buckets(o.Buckets); err != nil {
		return err
	}
	grouped := b.aggregated() && len(uses) > 0
	r := &reader{builder: b, again: grouped && (b.ranged() || s.GroupBy == nil), single: grouped && s.GroupBy == nil && !b.ranged()}
	if err := r.build(); err != nil {
		return err
	}
	if len(q.Variables) > 0 {
		r.listAggregates()
	}
	for _, u := range uses {
		p.Required = append(p.Required, u.codes...)
	}
	slices.Sort(p.Required)
	p.Required = slices.Compact(p.Required)
	p.rangePairs(uses)
	p.direct = b.direct()
	p.show(o)
	return nil
}

// show sets the texts of the query that a run reads.
func (p *Plan) show(o Options) {
	p.Execution = hogql.Print(p.read)
	p.Display = hogql.Print(renamed(p.read, p.name, o.Endpoint))
}

// renamed returns a query over one table with that table renamed.
func renamed(s *hogql.Select, from, to string) hogql.Query {
	r := hogql.Rewriter{
		Expr: func(e hogql.Expr) hogql.Expr {
			f, ok := e.(*hogql.Field)
			if !ok || len(f.Chain) != 2 || f.Chain[0].Text != from {
				return e
			}
			return field(to, f.Chain[1].Text)
		},
		Table: func(t hogql.Table) hogql.Table {
			if _, ok := t.(*hogql.TableName); ok {
				return &hogql.TableName{Chain: []hogql.Name{{Text: to}}}
			}
			return t
		},
	}
	return r.RewriteQuery(s)
}

func (p *Plan) rangePairs(uses []*usage) {
	for _, u := range uses {
		if u.bucket == "" {
			continue
		}
		column := columnName(u.shown)
		i := slices.IndexFunc(p.RangePairs, func(r RangePair) bool { return r.Column == column })
		if i < 0 {
			i = len(p.RangePairs)
			p.RangePairs = append(p.RangePairs, RangePair{Column: column, BucketFn: u.bucket})
		}
		for _, name := range u.codes {
			if !slices.Contains(p.RangePairs[i].Variables, name) {
				p.RangePairs[i].Variables = append(p.RangePairs[i].Variables, name)
			}
		}
	}
}

// builder builds the two queries of a plan.
type builder struct {
	plan *Plan
	node query.Node
	env  compiler.Env
	sel  *hogql.Select
	uses []*usage
	left []hogql.Expr // the conditions that stay in the query
	// taken are all names that the query uses.
	taken map[string]bool
}

// ranged reports whether a run may ask for rows with several values of a column.
func (b *builder) ranged() bool {
	return slices.ContainsFunc(b.uses, func(u *usage) bool { return u.op != hogql.Equals })
}

// identifiers returns all names in a query.
func identifiers(q hogql.Query) map[string]bool {
	names := map[string]bool{}
	add := func(list ...hogql.Name) {
		for _, n := range list {
			names[n.Text] = true
		}
	}
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			if f, ok := e.(*hogql.Field); ok {
				add(f.Chain...)
			}
			if a, ok := e.(*hogql.Alias); ok {
				add(a.Name)
			}
			if m, ok := e.(*hogql.Member); ok {
				add(m.Name)
			}
			return !is[*hogql.Placeholder](e)
		},
		Table: func(t hogql.Table) bool {
			if n, ok := t.(*hogql.TableName); ok {
				add(n.Chain...)
				add(n.Alias)
				add(n.Columns...)
			}
			if d, ok := t.(*hogql.Derived); ok {
				add(d.Alias)
				add(d.Columns...)
			}
			if j, ok := t.(*hogql.Join); ok {
				add(j.Using...)
			}
			return true
		},
		Query: func(q hogql.Query) bool {
			if s, ok := q.(*hogql.Select); ok {
				for _, c := range s.With {
					add(c.Name)
				}
				if s.ArrayJoin != nil {
					for _, a := range s.ArrayJoin.Arrays {
						add(a.Name)
					}
				}
			}
			return true
		},
	}
	v.WalkQuery(q)
	return names
}

// free returns an unused name, and marks it as used.
func (b *builder) free(name string) string { return freeName(b.taken, name) }

// freeName returns a name that is not taken, and takes it.
func freeName(taken map[string]bool, name string) string {
	out := name
	for n := 2; taken[out]; n++ {
		out = name + "_" + strconv.Itoa(n)
	}
	taken[out] = true
	return out
}

// nameKeys names the columns for conditions on variables: after the variable, unless something else in the query has that name.
func (b *builder) nameKeys() {
	for _, u := range b.uses {
		u.name = b.free(u.codes[0])
	}
}

// maxParts bounds the columns, the keys and the conditions on variables of a query.
const maxParts = 500

func tooManyParts() error {
	return refuse("The query has too many parts to be materialized: more than %d columns, keys, variables or conditions on these", maxParts)
}

// check refuses clauses whose rows depend on the conditions that are taken out.
func (b *builder) check() error {
	s := b.sel
	keys := len(s.OrderBy)
	if s.GroupBy != nil {
		keys += len(s.GroupBy.Keys)
	}
	if len(b.uses) > maxParts || len(s.Columns) > maxParts || keys > maxParts {
		return tooManyParts()
	}
	if s.LimitBy != nil && len(b.uses) > 0 {
		return unsupported("LIMIT BY is not supported together with variables")
	}
	for _, o := range s.OrderBy {
		if o.Fill != nil {
			return refuse("ORDER BY WITH FILL cannot be materialized")
		}
	}
	if g := s.GroupBy; g != nil && g.Totals {
		return refuse("GROUP BY WITH TOTALS cannot be materialized")
	}
	if len(b.uses) == 0 {
		return nil
	}
	if g := s.GroupBy; g != nil && g.Mode != hogql.GroupKeys {
		return unsupported("GROUP BY ALL, CUBE, ROLLUP and GROUPING SETS are not supported together with variables")
	}
	var exprs []hogql.Expr
	exprs = append(exprs, s.Columns...)
	for _, o := range s.OrderBy {
		exprs = append(exprs, o.X)
	}
	if s.Having != nil {
		exprs = append(exprs, s.Having)
	}
	for _, e := range exprs {
		if holdsWindow(e) {
			return unsupported("Window functions are not supported together with variables")
		}
		if holdsArrayJoin(e) {
			return unsupported("arrayJoin() is not supported together with variables: use ARRAY JOIN")
		}
	}
	return nil
}

// aggregated reports whether the rows of the query are groups.
func (b *builder) aggregated() bool {
	if b.sel.GroupBy != nil || b.sel.Having != nil && holdsAggregate(b.sel.Having) {
		return true
	}
	for _, o := range b.sel.OrderBy {
		if holdsAggregate(o.X) {
			return true
		}
	}
	return slices.ContainsFunc(b.sel.Columns, holdsAggregate)
}

// direct returns the query with the times in its bounds truncated.
func (b *builder) direct() hogql.Query {
	out := *b.sel
	conditions := slices.Clone(b.left)
	for _, u := range b.uses {
		conditions = append(conditions, u.condition(u.cut(u.column)))
	}
	out.Where = logic(conditions)
	return &out
}

// condition returns the condition on a column that holds the compared value.
func (u *usage) condition(column hogql.Expr) hogql.Expr {
	value := u.value
	if u.bucket != "" {
		args := []hogql.Expr{value}
		if u.zone != "" {
			args = append(args, &hogql.Const{Value: u.zone})
		}
		bucket := u.bucket
		if u.date {
			bucket = "toDate"
		}
		value = call(bucket, call("toDateTime", args...))
	}
	return &hogql.Compare{Op: u.op, Left: column, Right: value}
}

// cut truncates a time as it is stored in the table.
func (u *usage) cut(column hogql.Expr) hogql.Expr {
	if u.bucket == "" || u.date {
		return column
	}
	return call(u.bucket, column)
}

func call(name string, args ...hogql.Expr) hogql.Expr { return &hogql.Call{Name: name, Args: args} }

func field(chain ...string) *hogql.Field {
	f := &hogql.Field{}
	for _, name := range chain {
		f.Chain = append(f.Chain, hogql.Name{Text: name})
	}
	return f
}

func alias(x hogql.Expr, name string) *hogql.Alias {
	return &hogql.Alias{X: x, Name: hogql.Name{Text: name}}
}

// logic joins conditions by AND; nil if there are none.
func logic(conditions []hogql.Expr) hogql.Expr {
	switch len(conditions) {
	case 0:
		return nil
	case 1:
		return conditions[0]
	}
	return &hogql.Logic{Args: conditions}
}

// unnamed returns an expression of the select list without its alias.
func unnamed(e hogql.Expr) (x hogql.Expr, name string) {
	if a, ok := e.(*hogql.Alias); ok {
		return a.X, a.Name.Text
	}
	return e, ""
}

// columnsOf compiles a query, and returns its columns.
func (b *builder) columnsOf(s hogql.Query) (*compiler.Compiled, []schema.KeptColumn, error) {
	compiled, types, err := compiler.CompileRemade(b.node, b.env, func(hogql.Query) (hogql.Query, error) { return s, nil })
	if err != nil {
		return nil, nil, err
	}
	columns := make([]schema.KeptColumn, len(types))
	for i := range types {
		columns[i] = schema.KeptColumn{Name: compiled.Columns[i], Type: types[i]}
	}
	return compiled, columns, nil
}

// BucketNames are the units to which the times in a column can be truncated, shortest first.
var BucketNames = []string{"minute", "fifteen_minutes", "hour", "day", "week", "month"}

var bucketFunctions = map[string]string{
	"minute": "toStartOfMinute", "fifteen_minutes": "toStartOfFifteenMinutes", "hour": "toStartOfHour",
	"day": "toStartOfDay", "week": "toStartOfWeek", "month": "toStartOfMonth",
}

const defaultBucket = "day"

// buckets determines to which unit the columns of range variables are truncated.
func (b *builder) buckets(overrides map[string]string) error {
	for _, column := range slices.Sorted(maps.Keys(overrides)) {
		if bucketFunctions[overrides[column]] == "" {
			return refuse("Unsupported bucket override '%s'. Supported: %s", overrides[column], "['"+strings.Join(BucketNames, "', '")+"']")
		}
	}
	type candidate struct {
		use    *usage
		bucket string
		asked  bool
	}
	var all []candidate
	probe := &hogql.Select{With: b.sel.With, Recursive: b.sel.Recursive, From: b.sel.From, ArrayJoin: b.sel.ArrayJoin}
	for _, u := range b.uses {
		c := candidate{use: u}
		if name := columnName(u.shown); name != "" && isRange(u.op) {
			if c.bucket, c.asked = overrides[name]; !c.asked && !isProperty(u.shown) {
				c.bucket = defaultBucket
			}
		}
		if c.bucket == "" && u.op != hogql.Equals {
			continue
		}
		all = append(all, c)
		probe.Columns = append(probe.Columns, alias(b.defined(u.column), fmt.Sprintf("probe_%d", len(all))))
	}
	if len(all) == 0 {
		return nil
	}
	_, columns, err := b.columnsOf(probe)
	if err != nil {
		return err
	}
	for i, c := range all {
		kind := columns[i].Type.Kind
		switch {
		case c.bucket == "":
			if kind == hogql.Float { // 0 and -0 are equal, but are two keys of GROUP BY
				c.use.column = &hogql.Binary{Op: hogql.Plus, Left: c.use.column, Right: &hogql.Const{Value: int64(0)}}
			}
		case kind == hogql.DateTime, kind == hogql.Date && wholeDays(c.bucket):
			c.use.bucket, c.use.zone = bucketFunctions[c.bucket], columns[i].Type.Zone
			c.use.date = kind == hogql.Date && c.bucket == "day"
		case c.asked && kind == hogql.Date:
			return unsupported("Column '%s' is a date, which cannot be kept by %s", columnName(c.use.shown), c.bucket)
		case c.asked:
			return unsupported("Column '%s' is not a time, and cannot be kept by %s", columnName(c.use.shown), c.bucket)
		}
	}
	return nil
}

// defined returns the expression of a column alias, or e itself.
func (b *builder) defined(e hogql.Expr) hogql.Expr {
	f, ok := e.(*hogql.Field)
	if !ok || len(f.Chain) != 1 {
		return e
	}
	for _, c := range b.sel.Columns {
		if x, name := unnamed(c); name == f.Chain[0].Text {
			return x
		}
	}
	return e
}

func wholeDays(bucket string) bool { return bucket == "day" || bucket == "week" || bucket == "month" }

func isRange(op hogql.CompareOp) bool {
	return op == hogql.Less || op == hogql.LessOrEquals || op == hogql.Greater || op == hogql.GreaterOrEquals
}

// columnName returns the name of a plain column, as in bucket_overrides and range_pairs; empty for any other expression.
func columnName(e hogql.Expr) string {
	f, ok := e.(*hogql.Field)
	if !ok {
		return ""
	}
	parts := make([]string, len(f.Chain))
	for i, n := range f.Chain {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}

func isProperty(e hogql.Expr) bool {
	f, ok := e.(*hogql.Field)
	return ok && slices.ContainsFunc(f.Chain, func(n hogql.Name) bool { return n.Text == "properties" })
}
