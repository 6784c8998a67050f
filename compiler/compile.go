// Package compiler turns query nodes into ClickHouse SQL. It is a pure library: no I/O, no clock, no shared state.
//
//	node ─▶ parse ─▶ bind ─▶ resolve ─▶ sql ─▶ text and parameters
//	        hogql    bind    resolve    sql
package compiler

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// Mode says what a query without LIMIT gives: see bind.Mode.
type Mode = bind.Mode

// The modes.
const (
	QueryRoute = bind.QueryRoute
	Pages      = bind.Pages
	Whole      = bind.Whole
)

// Env is the world that a query is compiled for.
type Env struct {
	// Database is the virtual schema of the project.
	Database *schema.Database
	// Now is the time of relative dates.
	Now time.Time
	// Variables are the project's insight variables: code name to default value.
	Variables map[string]any
	// MaxRows is the most rows that any query gives. Default: 50000
	MaxRows int
	// Mode says what a query without LIMIT gives.
	Mode Mode
	// TestAccounts is the condition that keeps the project's test accounts out of queries that ask for it; nil for none.
	TestAccounts *query.Condition
	// Actions are those of the project; nil for none.
	Actions *query.Actions
	// PathCleaning are the project's rules for the names of steps, for paths that ask for them.
	PathCleaning []query.PathCleaning
	// DisplayNames are the properties that name a person, the best first; nil for the usual ones.
	DisplayNames []string
	// PlainValues asks for breakdowns as endpoints show them: null and "Other" in place of PostHog's sentinels.
	PlainValues bool
	// AllValues asks for every value of the breakdowns of trends, whatever their limit is.
	AllValues bool
	// Expired is called about once a millisecond of work. An error ends the compile, which then returns it. It is how a caller bounds
	// processor time and stops when nobody waits any more: the compiler has no clock. Nil never ends a compile.
	Expired func() error

	spend *budget.Budget
}

// ErrTooSlow is for Expired to return for a compile that used up its time.
var ErrTooSlow error = diag.New(diag.QueryError, diag.Span{}, "Compiling the query took too long: simplify it, or split it up.")

// world is what insights are built for.
func (e *Env) world() *insight.World {
	return &insight.World{
		Database: e.Database, Now: e.Now, TestAccounts: e.TestAccounts, Actions: e.Actions, PathCleaning: e.PathCleaning, DisplayNames: e.DisplayNames,
		PlainValues: e.PlainValues, AllValues: e.AllValues, Spend: e.spend,
	}
}

// resolving is what names are resolved against.
func (e *Env) resolving() resolve.World {
	return resolve.World{Database: e.Database, Now: e.Now, Actions: e.world(), Spend: e.spend}
}

// Compiled is a query that is ready to run.
type Compiled struct {
	// SQL is the text for ClickHouse, with {name:Type} where Params go.
	SQL    string
	Params []sql.Param
	// HogQL is the query printed back, with its placeholders filled in and its limit.
	HogQL string
	// Reads is what the rows are made of. The tables of members of all cohorts count for no cohort.
	Reads resolve.Reads
	// EventsFrom is the time of the earliest events that the query reads; zero for all.
	EventsFrom time.Time
	// Columns are the names of the result's columns.
	Columns []string
	// Limit is the most rows to return. SQL asks for one more when Probe is set.
	Limit int
	Probe bool
	// Offset is the number of rows that SQL passes over, of a query whose own fields say so.
	Offset int
	// DefaultLimit reports whether the query has no LIMIT of its own, so that hasMore, limit and offset are reported.
	DefaultLimit bool
	// SetQuery reports whether the outermost level is a set operation, which has no pages.
	SetQuery bool
	// Pieces has the query in pieces of time; nil where the rows of one piece depend on those of another.
	Pieces *Pieces
	// Shape turns the rows into the answer of an insight; nil for queries whose rows are the answer. Its error is a *diag.Error
	// or a bug.
	Shape func(rows iter.Seq[[]byte]) (*insight.Answer, error)
	// Row turns a row of the result into a row of the answer, both JSON arrays; nil when they are the same.
	Row func(row []byte) ([]byte, error)
	// Types are those that columns have in the answer, where they differ from the result's.
	Types map[int]string
	// Missing reports whether a row of the answer is about an actor of whom nothing is known; nil for answers without actors.
	Missing func(row []byte) (bool, error)
}

// tree is a query as its kind builds it, over virtual tables, and what is known of its answer by then.
type tree struct {
	query hogql.Query
	// text is the HogQL query whose placeholders and limit have yet to be filled in; nil for trees that are whole.
	text   *query.HogQL
	pieces *insight.Pieces // nil for none
	answer Compiled
}

// Compile turns a query into SQL, within a budget of its own. Mistakes of its author are a *diag.Error or diag.Errors; any other
// error is what Expired returned, or a bug.
func Compile(q query.Node, env Env) (*Compiled, error) {
	compiled, _, err := CompileRemade(q, env, nil)
	return compiled, err
}

// CompileRemade is Compile for the tree that remake makes of a query's own, before its placeholders are filled in; nil leaves that as it is.
// It also gives the types of the columns, as far as the compiler knows them. Errors of remake are returned as they are.
func CompileRemade(q query.Node, env Env, remake func(hogql.Query) (hogql.Query, error)) (compiled *Compiled, types []hogql.Type, err error) {
	defer recoverBug(&err)
	env.spend = budget.New(env.Expired)
	env.Database = modified(env.Database, query.ModifiersOf(q))
	kind := KindOf(q)
	if !kind.HasRows() {
		return nil, nil, diag.Field(diag.InvalidInput, "", "A %s gives no rows", q.Kind())
	}
	t, err := kind.build(q, env)
	if err != nil {
		return nil, nil, err
	}
	if remake != nil {
		if t.query, err = remake(t.query); err != nil {
			return nil, nil, err
		}
	}
	found, err := analyze(t, env, false) // bind and resolve
	if err != nil {
		return nil, nil, err
	}
	text, params, err := sql.Print(found.resolved, env.Database, env.spend)
	if err != nil {
		return nil, nil, err
	}
	if remake != nil {
		types = found.types()
	}
	compiled = found.compiled(t, text, params, env)
	if remake == nil {
		compiled.Pieces = found.pieces(q, t, env)
	}
	return compiled, types, nil
}

// types are those of the columns of the result.
func (found *analysis) types() []hogql.Type {
	out := make([]hogql.Type, len(found.outputs))
	for i := range found.outputs {
		out[i] = found.outputs[i].Type
	}
	return out
}

// compiled is the answer of Compile.
func (found *analysis) compiled(t tree, text string, params []sql.Param, env Env) *Compiled {
	out := new(Compiled)
	*out = t.answer
	out.Reads, out.EventsFrom = found.reads, env.Database.EventsFrom
	out.SQL, out.Params, out.HogQL = text, params, hogql.PrintWithin(found.limited, env.spend)
	if t.text != nil {
		out.Limit, out.Probe, out.DefaultLimit, out.SetQuery = found.cut.Limit, found.cut.Probe, found.cut.Default, found.cut.Set
	}
	if out.Columns == nil {
		out.Columns = make([]string, len(found.outputs))
		for i, output := range found.outputs {
			out.Columns[i] = output.Name
		}
	}
	return out
}

// recoverBug turns a panic of a stage, and the end of the budget, into an error. Panics of the Go runtime are bugs too, and no query may end the
// process; but those keep their type, so that the log has it.
func recoverBug(err *error) {
	switch r := recover().(type) {
	case nil:
	case budget.Stop:
		*err = r.Err
	case error:
		*err = fmt.Errorf("BUG: compiling: %w", r)
	default:
		*err = fmt.Errorf("BUG: compiling: %v", r)
	}
}

func buildHogQL(n query.Node, env Env) (tree, error) {
	q := n.(*query.HogQL)
	parsed, err := hogql.ParseWithin(q.Query, env.spend)
	return tree{query: parsed, text: q}, err
}

// valuesOf collects what the placeholders of a query stand for.
func valuesOf(q *query.HogQL, env Env) (bind.Values, error) {
	if _, both := q.Values["filters"]; both && q.Filters != nil {
		return bind.Values{}, diag.Field(diag.QueryError, "values.filters",
			"The query has 'filters' both in its values and as its filters")
	}
	v := bind.Values{
		Values:   q.Values,
		Known:    func(code string) bool { _, ok := env.Variables[code]; return ok },
		Types:    env.Database.Properties,
		Cohorts:  env.Database.Cohorts,
		Now:      env.Now,
		Location: env.Database.Location,
		Clean:    insight.Cleaner(env.PathCleaning),
		Spend:    env.spend,
	}
	if len(q.Variables) > 0 {
		v.Variables = make(map[string]bind.Variable, len(q.Variables))
	}
	if v.Location == nil {
		v.Location = time.UTC
	}
	for _, given := range q.Variables {
		value := given.Value
		if !given.HasValue {
			value = env.Variables[given.CodeName]
		}
		v.Variables[given.CodeName] = bind.Variable{Value: value, IsNull: given.IsNull}
	}
	if f := q.Filters; f != nil {
		v.Filters = &bind.Filters{DateFrom: f.DateFrom, DateTo: f.DateTo, Properties: f.Properties}
		if f.FilterTestAccounts && env.TestAccounts != nil {
			for _, c := range env.TestAccounts.All {
				v.Filters.TestAccounts = append(v.Filters.TestAccounts, bind.Placed{Property: *c.Filter, At: c.At})
			}
		}
	}
	return v, nil
}

// Variables lists the code names of the insight variables that a HogQL text uses, sorted. Its error is that of the text's
// syntax, diag.Errors.
func Variables(text string) ([]string, error) {
	q, err := hogql.Parse(text)
	if err != nil {
		return nil, err
	}
	return bind.Variables(q), nil
}

// Mistakes gives the mistakes of a query's author that err holds, none when it is a bug.
func Mistakes(err error) diag.Errors {
	if all, ok := errors.AsType[diag.Errors](err); ok {
		return all
	}
	if one, ok := errors.AsType[*diag.Error](err); ok {
		return diag.Errors{one}
	}
	return nil
}
