// Package materialize plans how the rows of an endpoint are kept in a table (contract: clients.md, section 6): which query fills it, and
// what a run reads from it. It is pure; the tables are made by who calls it.
//
// A run that reads the table gives what the query itself gave when the table was filled. Conditions on variables are taken out of the
// query, and the columns that they are about are kept beside its own, so that a run can apply the conditions to the rows. What that does
// not give the same rows for is refused.
//
//	node ─▶ [New] ─▶ Plan: Fill, once in a while ─▶ table        values ─▶ [Plan.Read] ─▶ SQL over the table
package materialize

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Options are what a version says beside its query.
type Options struct {
	// Endpoint is the name of the endpoint, Version the number of the version.
	Endpoint string
	Version  int
	// Buckets says by which part of time columns of range variables are kept: a name of BucketNames by the name of the column. A column
	// without an entry is kept by day when it holds times.
	Buckets map[string]string
	// Optional are the breakdowns that a run may leave out.
	Optional []string
}

// Plan is how the rows of a version are kept and read. It is immutable and safe for concurrent use.
type Plan struct {
	// Required are the variables that a run has to give, sorted. All others mean nothing to the table.
	Required []string
	// Transformed is the HogQL of what fills the table.
	Transformed string
	// Execution is the HogQL of what a run reads, with {variables.x} left in it. Display is the same, with the name of the endpoint in place
	// of that of the table.
	Execution, Display string
	// RangePairs are the columns that are kept by a part of time.
	RangePairs []RangePair
	// Aggregates are the columns that are aggregates, for queries with variables.
	Aggregates []Aggregate

	// Fill is the query whose rows the table holds, compiled for the moment of the plan: its columns are schema.KeptColumnName of 0, 1, …
	Fill *compiler.Compiled
	// Columns are how many columns the table has, beside that of the project.
	Columns int
	// Keys are the names of the columns that runs look rows up by; none when all rows are read.
	Keys []string
	// Mark tells tables apart: one that was filled by a plan with another mark does not fit this plan.
	Mark string

	node   query.Node
	read   *hogql.Select // over the table; its placeholders are left in
	direct hogql.Query   // what a run gives, over the tables of events
	name   string        // what read calls the table
	fields []schema.KeptColumn
	split  []split   // the breakdowns that are variables
	cut    *bind.Cut // of a query that is a set; nil for others
}

// RangePair is a column that variables bound by a part of time.
type RangePair struct {
	Column    string   `json:"column"`
	Variables []string `json:"variables"`
	BucketFn  string   `json:"bucket_fn"`
}

// Aggregate is a column that is an aggregate, and the function that puts its kept values together; nil for one that is never put together.
type Aggregate struct {
	Expression    string  `json:"expression"`
	ReaggregateFn *string `json:"reaggregate_fn"`
}

// Refusal is why a query cannot be materialized. It is a text for the author of the endpoint.
type Refusal struct{ Reason string } //nolint:errname // It is what the author is told, not a failure.

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// unsupported is a refusal because of the variables of a query.
func unsupported(format string, args ...any) error {
	return refuse("Variables not supported: "+format, args...)
}

// New plans the table of a version. The error is a *Refusal when the query cannot be materialized, what env.Expired returned, or a bug.
func New(n query.Node, env compiler.Env, o Options) (*Plan, error) {
	if kind := compiler.KindOf(n); !kind.Materialized {
		supported := compiler.KindNames(func(k *compiler.Kind) bool { return k.Materialized })
		slices.Sort(supported)
		return nil, refuse("Query type '%s' cannot be materialized. Supported types: %s", n.Kind(), strings.Join(supported, ", "))
	}
	env.Mode = compiler.Whole
	p, err := plan(n, env, o)
	if mistakes := compiler.Mistakes(err); len(mistakes) > 0 {
		return nil, refuse("%s", mistakes[0].Detail)
	}
	if err != nil {
		return nil, err
	}
	p.Columns, p.Mark = len(p.fields), p.mark(env.Database)
	return p, nil
}

func plan(n query.Node, env compiler.Env, o Options) (*Plan, error) {
	p := &Plan{node: n, name: fmt.Sprintf("%s_v%d", o.Endpoint, o.Version), RangePairs: []RangePair{}, Aggregates: []Aggregate{}}
	q, isHogQL := n.(*query.HogQL)
	if !isHogQL {
		return p, p.insight(env, o)
	}
	return p, p.hogql(q, env, o)
}

// numbers are those in a text of SQL.
var numbers = regexp.MustCompile(`[0-9]+`)

// mark is the text of what fills the table, and of how it is read, in short. Values are no part of it, since they follow from the version and from
// the time, but the time zone and the week of the project are, by which times are cut. So is from when on the project keeps events.
func (p *Plan) mark(db *schema.Database) string {
	text := fmt.Sprintf("%s\n%v\n%s\n%s %d", numbers.ReplaceAllLiteralString(p.Fill.SQL, "0"), p.fields, p.Execution, db.Zone(), db.WeekStart)
	if !db.EventsFrom.IsZero() {
		text += " " + db.EventsFrom.String()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Run is a run that reads the table.
type Run struct {
	// Table is the name of the table in ClickHouse: see schema.NewKept.
	Table string
	// Filled is when the query that filled the table was compiled: relative dates of answers count from it.
	Filled time.Time
	// Values are those of the variables, by name: texts, json.Numbers, booleans, lists of them.
	Values map[string]any
}

// Serves reports whether the table has what a run with these values of variables asks for. The values of all required variables must be
// there.
func (p *Plan) Serves(values map[string]any) bool {
	for name, value := range values {
		if value == nil || !slices.Contains(p.Required, name) && !p.optional(name) {
			return false
		}
	}
	for _, name := range p.Required {
		if values[name] == nil {
			return false
		}
	}
	for i := range p.split {
		if value, given := values[p.split[i].name]; !given || !p.split[i].serves(value) {
			return false
		}
	}
	return true
}

func (p *Plan) optional(name string) bool {
	return slices.ContainsFunc(p.split, func(s split) bool { return s.name == name })
}

// ErrNotServed is the error of Read for values for which Serves does not hold.
var ErrNotServed = errors.New("the table of the endpoint does not have what the run asks for")

// Read compiles what a run reads, for env.Mode. Mistakes are as those of compiler.Compile.
func (p *Plan) Read(r Run, env compiler.Env) (*compiler.Compiled, error) {
	if !p.Serves(r.Values) {
		return nil, ErrNotServed
	}
	db := *env.Database
	db.Kept = schema.NewKept(p.name, r.Table, p.fields)
	env.Database = &db
	if q, isHogQL := p.node.(*query.HogQL); isHogQL {
		return p.readHogQL(bound(q, r.Values), env)
	}
	env.Now = r.Filled
	return p.readInsight(r, env)
}

func (p *Plan) readHogQL(q *query.HogQL, env compiler.Env) (*compiler.Compiled, error) {
	if p.cut != nil && env.Mode == compiler.Whole {
		return nil, ErrNotServed
	}
	compiled, _, err := compiler.CompileRemade(q, env, func(hogql.Query) (hogql.Query, error) { return p.read, nil })
	if err == nil && p.cut != nil {
		asSet(compiled, p.cut)
	}
	return compiled, err
}

// Direct is the HogQL of what a run gives, without the table: the query, with the bounds of range variables cut to their part of time. It is
// empty for insights.
func (p *Plan) Direct() string {
	if p.direct == nil {
		return ""
	}
	return hogql.Print(p.direct)
}

// bound is a query with values put into its variables.
func bound(q *query.HogQL, values map[string]any) *query.HogQL {
	out := *q
	out.Variables = make(map[string]query.Variable, len(q.Variables))
	for id, v := range q.Variables {
		if value, given := values[v.CodeName]; given {
			v.Value, v.HasValue, v.IsNull = value, value != nil, value == nil
		}
		out.Variables[id] = v
	}
	return &out
}
