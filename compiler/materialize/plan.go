// Package materialize plans how the rows of an endpoint are stored in a table (contract: clients.md, section 6): which query fills it, and
// what a run reads from it. It is pure; its callers make the tables.
//
// A run that reads the table returns what the query itself would have returned when the table was filled. Conditions on variables are taken out of
// the query, and the columns that they use are stored beside its own, so that a run can apply the conditions to the rows. A query for
// which that would give different rows is refused.
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

// Options are the settings of a version other than its query.
type Options struct {
	// Endpoint is the name of the endpoint, Version the number of the version.
	Endpoint string
	Version  int
	// Buckets sets the units to which the columns of range variables are truncated: a name of BucketNames by column name. By default, columns of
	// times are truncated to days.
	Buckets map[string]string
	// Optional are the breakdowns that a run may leave out.
	Optional []string
}

// Plan is how the rows of a version are stored and read. It is immutable and safe for concurrent use.
type Plan struct {
	// Required are the sorted names of the variables that a run must give. The table has no use for others.
	Required []string
	// Transformed is the HogQL of the query that fills the table.
	Transformed string
	// Execution is the HogQL of the query that a run reads, with {variables.x} left in it. Display is the same with the name of the endpoint
	// instead of the table's.
	Execution, Display string
	// RangePairs are the columns that are truncated to a unit of time.
	RangePairs []RangePair
	// Aggregates are the columns that are aggregates, for queries with variables.
	Aggregates []Aggregate

	// Fill is the query that fills the table, compiled at the time of planning. Its columns are named schema.KeptColumnName of 0, 1, …
	Fill *compiler.Compiled
	// Columns is the number of columns of the table, not counting the project column.
	Columns int
	// Keys are the names of the columns by which runs look up rows; none if all rows are read.
	Keys []string
	// Mark identifies the plan of a table: a table filled by a plan with another mark does not fit this one. It leaves out values that follow from the
	// project, such as those in the steps of its actions.
	Mark string

	node   query.Node
	read   *hogql.Select // over the table, with its placeholders
	direct hogql.Query   // what a run returns, over the tables of events
	name   string        // the name of the table in read
	fields []schema.KeptColumn
	split  []split   // the breakdowns that are variables
	cut    *bind.Cut // for a query that is a set; nil for others
}

// RangePair is a column bounded by variables, with its unit of time.
type RangePair struct {
	Column    string   `json:"column"`
	Variables []string `json:"variables"`
	BucketFn  string   `json:"bucket_fn"`
}

// Aggregate is a column that is an aggregate, with the function that merges its stored values; nil if they are never merged.
type Aggregate struct {
	Expression    string  `json:"expression"`
	ReaggregateFn *string `json:"reaggregate_fn"`
}

// Refusal is the reason why a query cannot be materialized, worded for the author of the endpoint.
type Refusal struct{ Reason string } //nolint:errname // It is what the author is told, not a failure.

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// unsupported returns a refusal because of a query's variables.
func unsupported(format string, args ...any) error {
	return refuse("Variables not supported: "+format, args...)
}

// New plans the table of a version. The error is a *Refusal if the query cannot be materialized; otherwise it comes from env.Expired, or is a bug.
func New(n query.Node, env compiler.Env, o Options) (planned *Plan, err error) {
	defer compiler.RecoverBug(&err)
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

// numbers matches the numbers in SQL.
var numbers = regexp.MustCompile(`[0-9]+`)

// meaning is part of the marks of all plans. Raise it with a change of what tables hold that is only in the values of their query, which marks leave
// out: another zone or mode of a function.
const meaning = 1

// mark hashes the query that fills the table and how it is read. Values are left out, because they follow from the version, the time and what the query
// depends on in the project. The project's time zone and first day of the week are included, because times are truncated by them, and so is the time from
// which the project keeps events, and whether the table has every value of the breakdowns: in the SQL, that is only a number.
func (p *Plan) mark(db *schema.Database) string {
	sql := numbers.ReplaceAllLiteralString(p.Fill.SQL, "0")
	text := fmt.Sprintf("%d\n%s\n%v\n%s\n%s %d", meaning, sql, fieldsText(p.fields), p.Execution, db.Zone(), db.WeekStart)
	if !db.EventsFrom.IsZero() {
		text += " " + db.EventsFrom.String()
	}
	if len(p.split) > 0 {
		text += " every value"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func fieldsText(fields []schema.KeptColumn) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = "{" + f.Name + " " + typeText(f.Type) + "}"
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// typeText returns a type as text, with its zone, and with the type of its elements, to which it has a pointer.
func typeText(t hogql.Type) string {
	elem := "<nil>"
	if t.Elem != nil {
		elem = typeText(*t.Elem)
	}
	return fmt.Sprintf("{%v %s %t %s}", t.Kind, t.Zone, t.Nullable, elem)
}

// Run is a run that reads the table.
type Run struct {
	// Table is the name of the table in ClickHouse: see schema.NewKept.
	Table string
	// Filled is when the query that filled the table was compiled: relative dates in answers count from it.
	Filled time.Time
	// Values are the values of the variables, by name: texts, json.Numbers, booleans, lists of them.
	Values map[string]any
}

// Serves reports whether the table can answer a run with these variable values. All required variables must be given.
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

// ErrNotServed is returned by Read for values for which Serves returns false.
var ErrNotServed = errors.New("the table of the endpoint does not have what the run asks for")

// Read compiles the query that a run reads, for env.Mode. Mistakes are those of compiler.Compile.
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

// Direct returns the HogQL of what a run returns, without the table: the query, with the times in the bounds of range variables truncated. It is
// empty for insights.
func (p *Plan) Direct() string {
	if p.direct == nil {
		return ""
	}
	return hogql.Print(p.direct)
}

// bound returns a query with values for its variables.
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
