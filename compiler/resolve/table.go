package resolve

import (
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// tableSource is a table of the schema in FROM, or one that was joined to it because a query uses its fields.
//
// A SELECT's only table, without joined ones, is scanned directly. Any other becomes a subquery, so that no condition or join around it can bypass
// its guard: rows is the SELECT that reads the physical table with the guard, merges its versions if the table has them, and returns only the
// columns used. When a lazy join is used, whole joins rows with the tables that it leads to, and takes the place of rows in FROM.
type tableSource struct {
	r      *resolver
	table  *schema.Table
	name   string // in the query
	alias  string // in the resolved tree
	direct bool

	placed *resolved.Derived // the entry of FROM, unless the table is scanned directly
	rows   *growingSelect
	whole  *growingSelect
	joins  map[string]*tableSource
	joined names        // of the tables below whole
	parent *tableSource // of a lazily joined table
	group  int          // the group type that rows are restricted to; -1 for all
	of     *grouped     // the table whose rows are grouped; nil for a table whose rows are stored
	// overrides reports whether the rows only override fields of another table's rows.
	overrides bool
	// inside reports whether a formula of the table is being resolved: columns are then read where it is.
	inside bool
	// untyped reports whether properties are read as text, whatever their declared types.
	untyped bool
}

// growingSelect is a SELECT to which columns are added when they are used.
type growingSelect struct {
	r     *resolver
	tree  *resolved.Select
	names names
	byKey smallMap[*resolved.Column] // as seen by the outer query, in column order
}

// newTable returns the source for a table that a query names.
func (s *scope) newTable(t *schema.Table, name string) *tableSource {
	return &tableSource{r: s.r, table: t, name: name, alias: s.uniqueTable(name), group: -1}
}

func (t *tableSource) called() string { return t.name }

func (t *tableSource) find(name string) (place, bool) {
	f, ok := t.r.db.Field(t.table, name)
	return place{name: name, table: t, field: f}, ok
}

func (t *tableSource) columns() []place {
	var out []place
	for f := range t.r.db.Star(t.table) {
		out = append(out, place{name: f.Name, table: t, field: f})
	}
	return out
}

func (t *tableSource) each(yield func(string) bool) {
	for name := range t.r.db.FieldNames(t.table) {
		if !yield(name) {
			return
		}
	}
}

// from returns the entry of FROM for the table.
func (t *tableSource) from(sample *resolved.Sample) resolved.Table {
	if t.table.Grouping != nil {
		t.placed = &resolved.Derived{Query: t.grouping(), Alias: t.alias}
		return t.placed
	}
	scan := t.scan()
	scan.Sample = sample
	if t.direct {
		return scan
	}
	t.placed = &resolved.Derived{Query: t.read(scan), Alias: t.alias}
	return t.placed
}

// scan returns the scan of the physical table, with its guard.
func (t *tableSource) scan() *resolved.Scan {
	name := t.scanned()
	project := &resolved.Column{Table: name, Name: schema.ProjectColumn, Type: intType}
	guard := native(boolType, hogql.Span{}, "equals", project, literal(t.r.db.Project))
	t.r.reads.Tables = append(t.r.reads.Tables, t.table.Physical)
	switch t.table.Physical {
	case physical.Overrides:
		t.r.reads.Overrides = t.r.reads.Overrides || !t.overrides
	case physical.Persons:
		t.r.reads.Persons++
	}
	return &resolved.Scan{Table: t.table.Physical, Alias: name, Guard: t.kept(guard)}
}

// kept restricts a scan of events to those that the project keeps, and a scan of the query log to the time that logs are kept: ClickHouse removes older
// rows only when it merges.
func (t *tableSource) kept(guard resolved.Expr) resolved.Expr {
	var field string
	var from time.Time
	switch t.table.Physical {
	case physical.Events:
		field, from = "timestamp", t.r.db.EventsFrom
	case physical.QueryLog:
		field, from = "event_time", physical.LogsFrom(t.r.now)
	}
	if from.IsZero() {
		return guard
	}
	return &resolved.Logic{Args: []resolved.Expr{guard, native(boolType, hogql.Span{}, "greaterOrEquals", t.raw(field), literal(from))}}
}

// read builds rows: the SELECT that reads the scan, and merges versions if the table has them.
func (t *tableSource) read(scan *resolved.Scan) *resolved.Select {
	physical := t.table.Physical
	tree := &resolved.Select{From: scan}
	t.rows = t.r.newGrowingSelect(tree)
	if t.group >= 0 {
		tree.Where = native(boolType, hogql.Span{}, "equals", t.raw("index"), literal(int64(t.group)))
	}
	m := t.table.Merge
	if m == nil {
		return tree
	}
	tree.GroupBy = &resolved.GroupBy{}
	for _, key := range m.Keys {
		tree.GroupBy.Keys = append(tree.GroupBy.Keys, t.raw(key))
	}
	if m.Current != "" {
		tree.Where = t.current(scan, m)
	}
	var having []resolved.Expr
	if m.Sign != "" {
		sum := native(intType, hogql.Span{}, "sum", &resolved.Column{Table: physical, Name: m.Sign, Type: intType})
		having = append(having, native(boolType, hogql.Span{}, "greater", sum, literal(int64(0))))
	}
	having = append(having, t.present(m)...)
	switch len(having) {
	case 0:
	case 1:
		tree.Having = having[0]
	default:
		tree.Having = &resolved.Logic{Args: having}
	}
	return tree
}

// present returns the conditions that a row exists according to its latest version. If none of their columns may be NULL, a single argMax is enough.
func (t *tableSource) present(m *schema.Merge) []resolved.Expr {
	if m.Deleted == "" {
		return nil
	}
	test := func(name string, e resolved.Expr, with any) resolved.Expr {
		return native(boolType, hogql.Span{}, name, e, literal(with))
	}
	deleted := &resolved.Column{Table: t.table.Physical, Name: m.Deleted, Type: boolType}
	if m.NotAhead == "" {
		return []resolved.Expr{test("equals", t.latest(deleted), int64(0))}
	}
	at, tomorrow := t.raw(m.NotAhead), physical.CreatedBefore(t.r.now)
	if at.Type.MayBeNull() {
		return []resolved.Expr{test("equals", t.latest(deleted), int64(0)), test("less", t.latest(at), tomorrow)}
	}
	return []resolved.Expr{t.latest(&resolved.Logic{Args: []resolved.Expr{test("equals", deleted, int64(0)), test("less", at, tomorrow)}})}
}

// current returns the condition that a row has the current version of its cohort: the one named for it, or the newest for a cohort that another
// product computes.
func (t *tableSource) current(scan *resolved.Scan, m *schema.Merge) resolved.Expr {
	key := t.raw(m.Current)
	version := &resolved.Column{Table: t.table.Physical, Name: m.Version, Type: intType}
	pair := &resolved.Tuple{Items: []resolved.Expr{key, version}}
	named := t.named(pair)
	if !t.r.db.Cohorts.Open() {
		return named
	}
	newest := native(boolType, hogql.Span{}, "in", pair, &resolved.Subquery{Query: t.newest(scan, key, version)})
	var ours []resolved.Expr
	for _, id := range t.r.db.Cohorts.Computed() {
		ours = append(ours, literal(id))
	}
	if len(ours) == 0 {
		return newest
	}
	t.r.spend.Nodes(len(ours))
	theirs := native(boolType, hogql.Span{}, "notIn", key, &resolved.Tuple{Items: ours})
	return &resolved.Logic{Or: true, Args: []resolved.Expr{named, &resolved.Logic{Args: []resolved.Expr{theirs, newest}}}}
}

// named returns the condition that a cohort and a version are one of the known pairs.
func (t *tableSource) named(pair *resolved.Tuple) resolved.Expr {
	var pairs []resolved.Expr
	for _, of := range t.r.db.Cohorts.Current() {
		pairs = append(pairs, &resolved.Tuple{Items: []resolved.Expr{literal(of[0]), literal(of[1])}})
	}
	if len(pairs) == 0 {
		return truthOf(false, hogql.Span{})
	}
	t.r.spend.Nodes(3 * len(pairs))
	return native(boolType, hogql.Span{}, "in", pair, &resolved.Tuple{Items: pairs})
}

// newest returns the newest version for each key.
func (t *tableSource) newest(scan *resolved.Scan, key, version *resolved.Column) *resolved.Select {
	again := *scan
	return &resolved.Select{
		From: &again, GroupBy: &resolved.GroupBy{Keys: []resolved.Expr{key}},
		Columns: []resolved.Expr{named(key, "key"), named(native(intType, hogql.Span{}, "max", version), "version")},
	}
}

// newGrowingSelect returns a SELECT to which columns are added later.
func (r *resolver) newGrowingSelect(tree *resolved.Select) *growingSelect {
	r.countTables(1, tree.Pos)
	r.growing = append(r.growing, tree)
	return &growingSelect{r: r, tree: tree}
}

// raw returns the physical column of a field, as in the scan.
func (t *tableSource) raw(field string) *resolved.Column {
	f, _ := t.r.db.Field(t.table, field)
	return &resolved.Column{Table: t.scanned(), Name: f.PhysicalName(), Type: t.r.db.FieldType(t.table, f)}
}

// scanned returns the name of the physical table where its columns are read.
func (t *tableSource) scanned() string {
	if t.direct {
		return t.alias
	}
	return t.table.Physical
}

// latest returns the value of an expression in the latest version of a row. NULL must count as a value, but argMax skips it. So whether there is a value
// is aggregated separately from the value: inside a tuple NULL would count too, but ClickHouse then allocates memory for each row, and takes
// several times as long.
func (t *tableSource) latest(e resolved.Expr) resolved.Expr {
	typ := typeOf(e)
	switch {
	case !typ.MayBeNull():
		return t.argMax(typ, e)
	case splits(typ.Kind):
		first, again := e, e
		if !isLeaf(e) {
			a := named(e, t.rows.names.unique("value"))
			first, again = a, &resolved.AliasRef{Pos: e.At(), Name: a.Name, Type: typ}
		}
		value := typ
		value.Nullable = false
		missing := t.argMax(boolType, native(boolType, hogql.Span{}, "isNull", first))
		return native(typ, hogql.Span{}, "if", missing, literal(nil), t.argMax(value, native(value, hogql.Span{}, "assumeNotNull", again)))
	}
	row := t.argMax(hogql.Type{Kind: hogql.TupleKind}, &resolved.Tuple{Items: []resolved.Expr{e}})
	return native(typ, hogql.Span{}, "tupleElement", row, literal(int64(1)))
}

// argMax calls the function of that name over the versions of a row.
func (t *tableSource) argMax(typ hogql.Type, e resolved.Expr) resolved.Expr {
	version := &resolved.Column{Table: t.table.Physical, Name: t.table.Merge.Version, Type: intType}
	return native(typ, hogql.Span{}, "argMax", e, version)
}

// splits reports whether ClickHouse has both a nullable and a non-nullable type of the kind.
func splits(k hogql.Kind) bool {
	switch k { //nolint:exhaustive // the others may not have both
	case hogql.String, hogql.Int, hogql.Float, hogql.Bool, hogql.UUID, hogql.Date, hogql.DateTime:
		return true
	}
	return false
}

// column returns a value computed from columns of the physical table, for use where the source is. key identifies the value, name is the preferred name
// of a column for it, and made builds it, given the name of the scan in its columns. f is the field that the value comes from.
func (t *tableSource) column(f *schema.Field, key, name string, made func(scanned string) resolved.Expr) resolved.Expr {
	if t.direct {
		return made(t.alias)
	}
	return t.outside(key, t.row(f, key, name, made))
}

// row adds such a value to rows as a column.
func (t *tableSource) row(f *schema.Field, key, name string, made func(scanned string) resolved.Expr) *resolved.Column {
	return t.rows.column(key, name, t.alias, func() resolved.Expr {
		e := made(t.table.Physical)
		if m := t.table.Merge; m != nil && !slices.Contains(m.Keys, f.Name) {
			return t.latest(e)
		}
		return e
	})
}

// rowField adds a field, as stored, to rows as a column.
func (t *tableSource) rowField(name string) *resolved.Column {
	f, _ := t.r.db.Field(t.table, name)
	if f.Formula != nil {
		return t.ofGroup(f)
	}
	return t.row(f, f.Key(), name, func(string) resolved.Expr { return t.raw(name) })
}

// shownField adds a field, as stored, to the table's entry of FROM as a column.
func (t *tableSource) shownField(name string) *resolved.Column {
	c := t.rowField(name)
	if t.whole == nil {
		return c
	}
	f, _ := t.r.db.Field(t.table, name)
	return t.whole.column(f.Key(), c.Name, t.alias, func() resolved.Expr { return c })
}

// outside passes a column of rows up to where the source is.
func (t *tableSource) outside(key string, c *resolved.Column) *resolved.Column {
	if t.inside {
		return c
	}
	if t.whole != nil {
		c = t.whole.column(key, c.Name, t.alias, func() resolved.Expr { return c })
	}
	return t.liftColumn(key, c)
}

// liftColumn passes a column of the source up to the table that it was joined to, and so on to the first.
func (t *tableSource) liftColumn(key string, c *resolved.Column) *resolved.Column {
	if t.parent == nil {
		return c
	}
	key = t.alias + "\x00" + key
	lifted := t.parent.whole.column(key, t.alias+"__"+c.Name, t.parent.alias, func() resolved.Expr { return c })
	return t.parent.liftColumn(key, lifted)
}

// column adds a column to the SELECT unless it has it, and returns it as seen by the outer query.
func (g *growingSelect) column(key, name, alias string, made func() resolved.Expr) *resolved.Column {
	if c := g.existing(key); c != nil {
		return c
	}
	g.r.spend.Columns(1)
	e := made()
	name = g.names.unique(name)
	g.tree.Columns = append(g.tree.Columns, named(e, name))
	if len(g.tree.Columns) > budget.MaxGrown && !g.r.overgrown {
		g.r.overgrown = true
		g.r.mistake(e.At(), "The query reads more than %d columns and properties of one joined table.", budget.MaxGrown)
	}
	c := &resolved.Column{Table: alias, Name: name, Type: typeOf(e)}
	g.byKey.put(key, c)
	return c
}

// existing returns the column with a key; nil if there is none.
func (g *growingSelect) existing(key string) *resolved.Column {
	if c := g.byKey.at(key); c != nil {
		return *c
	}
	return nil
}

// join returns the source that a lazy join leads to. The join is built on first use.
func (t *tableSource) join(j *schema.LazyJoin) *tableSource {
	if child := t.joins[j.Name]; child != nil {
		return child
	}
	if t.direct {
		panic("BUG: a lazy join of a table that is scanned directly")
	}
	if t.whole == nil {
		t.stack()
	}
	table, ok := t.r.db.Table(j.Table)
	if !ok {
		panic("BUG: a lazy join of an unknown table " + j.Table)
	}
	local := t.joinKey(j.Local)
	alias := t.joined.unique(j.Name)
	child := &tableSource{r: t.r, table: table, name: j.Name, alias: alias, group: j.Group, overrides: j.Overrides}
	right := child.from(nil)
	t.r.countTables(1, hogql.Span{})
	out := &resolved.Join{
		Kind: hogql.LeftJoin, Left: t.whole.tree.From, Right: right,
		On: native(boolType, hogql.Span{}, "equals", local, child.rowField(j.Foreign)),
	}
	switch {
	case j.Inner:
		out.Kind = hogql.InnerJoin
	case j.Unique:
		out.Strictness = hogql.JoinAny // at most one partner: ClickHouse need not search for a second
	}
	t.whole.tree.From = out
	child.parent = t
	if t.joins == nil {
		t.joins = map[string]*tableSource{}
	}
	t.joins[j.Name] = child
	return child
}

// stack puts whole around rows; columns already in use are passed through.
func (t *tableSource) stack() {
	inner := &resolved.Derived{Query: t.placed.Query, Alias: t.placed.Alias}
	t.joined.unique(t.alias)
	tree := &resolved.Select{From: inner}
	t.whole = t.r.newGrowingSelect(tree)
	t.placed.Query = tree
	for _, made := range t.rows.byKey.entries {
		key, c := made.key, made.value
		t.whole.column(key, c.Name, t.alias, func() resolved.Expr { return c })
	}
}

// mayJoin reports whether the clauses of a SELECT may use a field of the table that needs a lazy join.
func (s *scope) mayJoin(sel *hogql.Select, t *tableSource) bool {
	found := false
	seen, around := map[*environment]bool{}, s.env
	var actions []*matching
	var v hogql.Visitor
	v.Expr = func(e hogql.Expr) bool {
		s.r.spend.Work(1)
		if f, ok := e.(*hogql.Field); ok {
			if env := s.r.find(around, f.Chain[0].Text); env != nil && env.value != nil && !seen[env] {
				seen[env] = true
				outside := around
				around = env.outer // what its names mean
				v.WalkExpr(env.value)
				around = outside
			}
			if len(f.Chain) > 1 && (f.Chain[0].Text == t.name || f.Chain[0].Text == schema.MatchedEvents) {
				found = found || t.needsJoin(f.Chain[1:])
			}
			found = found || t.needsJoin(f.Chain)
		}
		if m := s.r.matchingOf(e); m != nil && m.condition != nil && !slices.Contains(actions, m) {
			actions = append(actions, m)
			v.WalkExpr(m.condition)
		}
		found = found || namesVirtual(e) || isSpread(e) && t.starNeedsJoin()
		return !found && !isWritten[*hogql.Subquery](e)
	}
	for _, c := range sel.Columns {
		if isWritten[*hogql.Star](c) || isWritten[*hogql.ColumnsMatching](c) {
			found = found || t.starNeedsJoin()
		}
	}
	own := *sel
	own.With, own.From = nil, nil
	v.Query = func(q hogql.Query) bool { return q == &own }
	v.WalkQuery(&own)
	return found
}

// starNeedsJoin reports whether one of the columns of * is more than a column of the scan.
func (t *tableSource) starNeedsJoin() bool {
	for f := range t.r.db.Star(t.table) {
		if t.fieldNeedsJoin(f) {
			return true
		}
	}
	return false
}

// namesVirtual reports whether an expression may read a virtual field as a property.
func namesVirtual(e hogql.Expr) bool {
	if f, ok := e.(*hogql.Field); ok {
		return strings.HasPrefix(f.Chain[len(f.Chain)-1].Text, virtualPrefix)
	}
	_, key, ok := access(e)
	return ok && strings.HasPrefix(key.Text, virtualPrefix)
}

// needsJoin reports whether a chain of names below the table needs a lazy join.
func (t *tableSource) needsJoin(chain []hogql.Name) bool {
	f, ok := t.r.db.Field(t.table, chain[0].Text)
	switch {
	case !ok:
		return false
	case f.Fields != nil && len(chain) > 1:
		below, ok := t.r.db.Below(t.table, f, chain[1].Text)
		return ok && t.fieldNeedsJoin(below)
	}
	return t.fieldNeedsJoin(f)
}

// fieldNeedsJoin reports whether a field is more than a column of the scan.
func (t *tableSource) fieldNeedsJoin(f *schema.Field) bool {
	if f.Same == "" {
		return f.Join != nil || f.Override != nil || f.Formula != nil
	}
	head, _, _ := strings.Cut(f.Same, ".")
	return t.needsJoin([]hogql.Name{{Text: head}})
}
