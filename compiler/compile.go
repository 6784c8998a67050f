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

// Mode says how a query without LIMIT is limited: see bind.Mode.
type Mode = bind.Mode

// The modes.
const (
	QueryRoute = bind.QueryRoute
	Pages      = bind.Pages
	Whole      = bind.Whole
)

// Env is the environment that a query is compiled in.
type Env struct {
	// Database is the virtual schema of the project.
	Database *schema.Database
	// Now is what relative dates count from.
	Now time.Time
	// Variables are the project's insight variables: code name to default value.
	Variables map[string]any
	// MaxRows is the most rows that any query returns. Default: 50000
	MaxRows int
	// Mode says how a query without LIMIT is limited.
	Mode Mode
	// TestAccounts is the condition that filters out the project's test accounts, for queries that ask for it; nil for none.
	TestAccounts *query.Condition
	// Actions are the project's actions; nil for none.
	Actions *query.Actions
	// PathCleaning are the project's rules for cleaning paths, for queries that ask for them.
	PathCleaning []query.PathCleaning
	// DisplayNames are the properties that a person's name is taken from, best first; nil for the default ones.
	DisplayNames []string
	// PlainValues asks for breakdown values as endpoints show them: null and "Other" in place of PostHog's sentinels.
	PlainValues bool
	// AllValues asks for every breakdown value of trends, ignoring their limit.
	AllValues bool
	// Expired is called about once per millisecond of work. If it returns an error, the compile stops and returns that error. Callers use it to
	// limit CPU time and to stop when the client is gone: the compiler itself has no clock. Nil means no limit.
	Expired func() error

	spend   *budget.Budget
	globals map[string]any // what names stand for that have no other meaning
}

// ErrTooSlow is what Expired returns for a compile that used up its time.
var ErrTooSlow error = diag.New(diag.QueryError, diag.Span{}, "Compiling the query took too long: simplify it, or split it up.")

// world returns what insights are built from.
func (e *Env) world() *insight.World {
	return &insight.World{
		Database: e.Database, Now: e.Now, TestAccounts: e.TestAccounts, Actions: e.Actions, PathCleaning: e.PathCleaning, DisplayNames: e.DisplayNames,
		PlainValues: e.PlainValues, AllValues: e.AllValues, Spend: e.spend,
	}
}

// resolving returns what names are resolved against.
func (e *Env) resolving() resolve.World {
	w := resolve.World{Database: e.Database, Now: e.Now, Actions: e.world(), Spend: e.spend}
	if len(e.globals) > 0 {
		w.Global = bind.Globals(e.globals, e.spend)
	}
	return w
}

// Param is a value that Compiled.SQL refers to: see sql.Param.
type Param = sql.Param

// Compiled is a query ready to run.
type Compiled struct {
	// SQL is the text for ClickHouse, with {name:Type} in place of Params.
	SQL    string
	Params []Param
	// HogQL is the query printed back, with placeholders filled in and limit set.
	HogQL string
	// Reads is the data that the rows depend on. Reading the members of all cohorts counts for no single cohort.
	Reads schema.Reads
	// EventsFrom is the earliest event time that the query reads; zero for all events.
	EventsFrom time.Time
	// Columns are the column names of the result.
	Columns []string
	// Limit is the most rows to return. With Probe, SQL asks for one more.
	Limit int
	Probe bool
	// Offset is the number of rows that SQL skips, for queries with an offset field.
	Offset int
	// DefaultLimit reports whether the query has no LIMIT of its own; then the answer has hasMore, limit and offset.
	DefaultLimit bool
	// SetQuery reports whether the outermost query is a set operation, which has no pages.
	SetQuery bool
	// Pieces is the query cut into pieces of time; nil if the rows of one piece depend on another.
	Pieces *Pieces
	// Shape turns the rows into the answer of an insight; nil if the rows are the answer. Its error is a *diag.Error or a bug.
	Shape func(rows iter.Seq[[]byte]) (*insight.Answer, error)
	// Row converts a row of the result to a row of the answer, both JSON arrays; nil if they are the same.
	Row func(row []byte) ([]byte, error)
	// Types are the column types in the answer, by index, where they differ from the result's.
	Types map[int]string
	// BareTypes reports whether the answer gives the column types without the names (contract: api.md, section 1.6).
	BareTypes bool
	// ByClock reports whether the clock decides what is shown.
	ByClock bool
	// Missing reports whether a row of the answer is about an unknown actor; nil for answers without actors.
	Missing func(row []byte) (bool, error)
}

// tree is a query over virtual tables, as its kind builds it, with what is already known about its answer.
type tree struct {
	query hogql.Query
	// text is the HogQL query whose placeholders and limit are still to be filled in; nil if there is nothing to fill in.
	text   *query.HogQL
	pieces *insight.Pieces // nil for none
	answer Compiled
}

// Compile compiles a query to SQL, within its own budget. Mistakes of the author are a *diag.Error or diag.Errors; any other error comes from
// Expired, or is a bug.
func Compile(q query.Node, env Env) (*Compiled, error) {
	compiled, _, err := CompileRemade(q, env, nil)
	return compiled, err
}

// CompileRemade is Compile for the tree that remake returns for the query's tree, before placeholders are filled in; a nil remake changes
// nothing. It also returns the column types, as far as the compiler knows them. Errors of remake are returned unchanged.
func CompileRemade(q query.Node, env Env, remake func(hogql.Query) (hogql.Query, error)) (compiled *Compiled, types []hogql.Type, err error) {
	defer RecoverBug(&err)
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

// types returns the column types of the result.
func (found *analysis) types() []hogql.Type {
	out := make([]hogql.Type, len(found.outputs))
	for i := range found.outputs {
		out[i] = found.outputs[i].Type
	}
	return out
}

// compiled assembles the result of Compile.
func (found *analysis) compiled(t tree, text string, params []Param, env Env) *Compiled {
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
	if t.text != nil && env.PlainValues {
		out.Row = insight.PlainRow(out.Columns)
	}
	return out
}

// RecoverBug turns a panic in a stage, or the end of the budget, into an error. Panics of the Go runtime are bugs too, and no query may end the
// process; they keep their type for the log. It must be deferred.
func RecoverBug(err *error) {
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

// valuesOf collects the values of a query's placeholders.
func valuesOf(q *query.HogQL, env Env) (bind.Values, error) {
	if _, both := q.Values["filters"]; both && q.Filters != nil {
		return bind.Values{}, diag.Field(diag.QueryError, "values.filters",
			"The query has 'filters' both in its values and as its filters")
	}
	v := bind.Values{
		Values:    q.Values,
		Known:     func(code string) bool { _, ok := env.Variables[code]; return ok },
		Types:     env.Database.Properties,
		Cohorts:   env.Database.Cohorts,
		Now:       env.Now,
		Location:  env.Database.Location,
		WeekStart: env.Database.WeekStart,
		Clean:     insight.Cleaner(env.PathCleaning),
		Spend:     env.spend,
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

// Variables returns the sorted code names of the insight variables that a HogQL text uses. A syntax error is a diag.Errors.
func Variables(text string) ([]string, error) {
	q, err := hogql.Parse(text)
	if err != nil {
		return nil, err
	}
	return bind.Variables(q), nil
}

// Mistakes returns the author's mistakes in err, nil if err is a bug.
func Mistakes(err error) diag.Errors {
	if all, ok := errors.AsType[diag.Errors](err); ok {
		return all
	}
	if one, ok := errors.AsType[*diag.Error](err); ok {
		return diag.Errors{one}
	}
	return nil
}
