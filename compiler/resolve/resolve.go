// Package resolve decides what every name in a query means: text ─▶ parse ─▶ bind ─▶ [resolve] ─▶ print.
//
// The input is HogQL over virtual tables; the output is the resolved tree for the printer: columns of physical tables, ClickHouse's own function
// names, and the dialect's rules on NULL, time zones and properties made explicit. This is also where each scan of a physical table gets its
// project guard.
//
// The parts, in the order in which a query meets them:
//
//	select.go      the clauses of one SELECT, and sets of them; byname.go and totals.go hold BY NAME and WITH TOTALS
//	from.go        what is in FROM: tables, joins, subqueries, CTEs; recursive.go holds the CTEs that use themselves
//	table.go       one table of the schema: its guarded rows, grown column by column as they are used
//	formula.go     fields that are computed, and tables whose rows are groups of the rows of another
//	bounds.go      which part of time a group of rows has to be looked for in
//	sources.go     the other things in FROM, and where a name below one of them leads
//	scope.go       names in expressions: tables, columns, aliases, lambda parameters
//	star.go        *, t.* and COLUMNS('…')
//	expr.go        the other nodes of expressions
//	property.go    what is below a JSON document, wherever the document comes from
//	storage.go     how a property is read in each way of storing it
//	null.go        comparisons that never give NULL, AND and OR that fold; membership.go is about IN
//	zone.go        times in the project's zone
//	call.go        functions; ordered.go holds ORDER BY and FILTER in them, rule_*.go holds the rewrites of those that are more than another name
//	constant.go    arguments that name something of the engine: zones, types, character sets
//	action.go      events that match an action of the project
//	once.go        values that an expression needs twice
//	names.go       names that are printed
//	survey.go      what a query uses, for those who look at it
//	probe.go       which names can be written at a place, for those who write it
package resolve

import (
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Output is one column of a query's result.
type Output struct {
	// Name is the name of the column for people (contract: hogql.md, section 1). Names may repeat.
	Name string
	Type hogql.Type
}

// maxDepth bounds the nesting of a query's nodes after its CTEs and macros are expanded. It is far above what people write, and keeps the stack
// small.
const maxDepth = 1_000

// World is what names are resolved against.
type World struct {
	// Database is the schema of the project.
	Database *schema.Database
	// Now is the time that rules with a clock use.
	Now time.Time
	// Actions are the project's actions; nil for none.
	Actions Actions
	// Global finds the names that have no other meaning; nil for none.
	Global Global
	// Spend is the budget of the compile, whose end is an error other than diag.Errors; nil for no limits.
	Spend *budget.Budget
}

// Global finds the constant that a chain of names stands for, and reports whether the first name is known. An error says what is wrong with the rest.
type Global func(chain []hogql.Name) (value any, found bool, err error)

func (w World) resolver() *resolver {
	return &resolver{db: w.Database, now: w.Now, zone: w.Database.Zone(), actions: w.Actions, global: w.Global, spend: w.Spend}
}

// Query resolves q against the schema of one project. It returns the resolved tree, its columns and what it reads, and does not modify q. The error is
// a diag.Errors with every mistake, not only the first.
func Query(q hogql.Query, w World) (out resolved.Query, columns []Output, reads schema.Reads, err error) {
	r := w.resolver()
	out, columns, err = run(q, r)
	slices.Sort(r.reads.Cohorts)
	slices.Sort(r.reads.Tables)
	r.reads.Cohorts, r.reads.Tables = slices.Compact(r.reads.Cohorts), slices.Compact(r.reads.Tables)
	r.reads.Values = r.relies
	return out, columns, r.reads, err
}

func run(q hogql.Query, r *resolver) (out resolved.Query, columns []Output, err error) {
	defer budget.Catch(&err)
	rel := r.query(q, nil)
	r.fillHeld()
	if err := r.mistakes.Err(); err != nil {
		return nil, nil, err
	}
	r.fillEmpty()
	outputs := make([]Output, 0, len(rel.columns))
	for _, c := range rel.columns {
		if !c.hidden {
			outputs = append(outputs, Output{Name: c.name, Type: c.typ})
		}
	}
	switch tree := rel.tree.(type) {
	case *resolved.Select:
		tree.With, tree.Recursive = r.ctes, r.recurs
	case *resolved.SetQuery:
		tree.With, tree.Recursive = r.ctes, r.recurs
	}
	return rel.tree, outputs, nil
}

// resolver is the state of one call of Query.
type resolver struct {
	db       *schema.Database
	now      time.Time
	zone     string
	spend    *budget.Budget
	mistakes diag.List
	survey   *survey // nil when not asked for
	probe    *probe  // nil when not asked for
	actions  Actions // nil for none
	global   Global  // nil for none
	matching []*matching
	reads    schema.Reads // not sorted yet
	held     heldTables
	relies   schema.PropertyValues // the kinds of values that properties are assumed to have had; nil for none

	// ctes are the used table CTEs of the whole query, under unique names. They are all defined at the top, so that ClickHouse's scope rules for
	// WITH do not matter.
	ctes   []*resolved.CTE
	recurs bool // one of them uses itself
	// openUses are the recursive CTEs that were read inside of themselves, once for each time.
	openUses []*cte
	// growing are the SELECTs of tables, to which columns are added while the queries around them are resolved.
	growing []*resolved.Select
	refs    names // of ctes

	depth     int
	deep      bool // nested too deep; noted once
	selects   int  // the number of SELECTs, counting everything in a CTE at each use
	crowded   bool // too many SELECTs; noted once
	tables    int  // the number of subqueries for tables and of joins, counted likewise
	laden     bool // too many of them; noted once
	overgrown bool // too many columns of one table; noted once
	// windowKeys counts the keys of windows, manyKeys reports whether there are too many; noted once
	windowKeys int
	manyKeys   bool
}

// relation is a resolved query with its columns.
type relation struct {
	tree    resolved.Query
	columns []*column
	scope   *scope      // of a SELECT
	members []*relation // of a set
	ops     []hogql.SetOp
	below   map[string]int // columns added for properties, by key
}

// column is one column of a query.
type column struct {
	name    string // for people, and for outer queries
	printed string // the alias that it has in ClickHouse
	typ     hogql.Type
	from    *property // the JSON document or property in the column; nil for any other column
	aliased bool      // named by AS
	hidden  bool      // added for an outer query
	quiet   bool      // not part of *
	read    bool      // of a held table: used by the query
}

// environment is a chain of CTEs, latest first.
type environment struct {
	outer *environment
	level *level
	at    int // its index in the level
	name  string
	table *cte       // a table CTE
	value hogql.Expr // a column CTE
}

// level is one WITH.
type level struct {
	outer *environment
	known smallMap[*environment] // by name
}

// cte is a table CTE; ref is its name in the resolved tree, set on first use.
type cte struct {
	rel    *relation
	names  *labels
	ref    string
	size   int  // how many SELECTs a use of it counts as
	tables int  // how many tables and joins
	open   bool // it is recursive, and currently being resolved
	used   bool // from outside of itself
}

// find returns the CTE with a name; nil if there is none.
func (r *resolver) find(env *environment, name string) *environment {
	for env != nil {
		r.spend.Work(1)
		if found := env.level.known.at(name); found != nil && (*found).at <= env.at {
			return *found
		}
		env = env.level.outer
	}
	return nil
}

func (r *resolver) mistake(at hogql.Span, format string, args ...any) {
	r.mistakes.Addf(diag.QueryError, at, format, args...)
}

// query resolves a query that sees the CTEs of env.
func (r *resolver) query(q hogql.Query, env *environment) *relation {
	if !r.enter(q.At()) {
		return nothing(q.At())
	}
	defer r.leave()
	switch q := q.(type) {
	case *hogql.Select:
		return r.selection(q, env)
	case *hogql.SetQuery:
		return r.set(q, env)
	case *hogql.QueryPlaceholder:
		r.mistake(q.Pos, "Unresolved placeholder: %s", hogql.ShortText(q.X))
	}
	return nothing(q.At())
}

// nothing returns the result for an invalid query.
func nothing(at hogql.Span) *relation { return &relation{tree: &resolved.Select{Pos: at}} }

// enter counts one level of nesting, and reports whether it is allowed.
func (r *resolver) enter(at hogql.Span) bool {
	r.spend.Nodes(1)
	r.depth++
	if r.depth <= maxDepth {
		return true
	}
	if !r.deep {
		r.deep = true
		r.mistake(at, "The query is too deeply nested: it grows deeper than %d levels once its common table expressions and macros are expanded.", maxDepth)
	}
	r.depth--
	return false
}

func (r *resolver) leave() { r.depth-- }

// count adds n SELECTs to the query's number.
func (r *resolver) count(n int, at hogql.Span) {
	r.selects = min(r.selects+n, budget.MaxSelects+1)
	if r.selects > budget.MaxSelects && !r.crowded {
		r.crowded = true
		r.mistake(at, "The query has more than %d SELECTs, each use of a CTE counted.", budget.MaxSelects)
	}
}

// countTables adds n subqueries that read a table, or joins, to the query's number.
func (r *resolver) countTables(n int, at hogql.Span) {
	r.tables = min(r.tables+n, budget.MaxTables+1)
	if r.tables > budget.MaxTables && !r.laden {
		r.laden = true
		r.mistake(at, "The query has more than %d tables and joins, each use of a CTE counted, and those that persons and groups need.", budget.MaxTables)
	}
}

// fillEmpty adds a column to each table of which no column is used: ClickHouse needs one.
func (r *resolver) fillEmpty() {
	for _, sel := range r.growing {
		if len(sel.Columns) == 0 {
			sel.Columns = []resolved.Expr{named(&resolved.Const{Value: int64(1)}, "one")}
		}
	}
}

// named gives an expression an alias.
func named(e resolved.Expr, alias string) *resolved.Alias {
	return &resolved.Alias{Pos: e.At(), X: e, Name: alias}
}
