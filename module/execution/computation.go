package execution

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Computation computes one result. It outlives the request that began it, so it holds no part of that request.
type Computation struct {
	exec *Executor
	Caller
	query *Query
	// compiles counts the compiles of the request: there may be more than one.
	compiles *Compiles

	id       string        // of the background run that it belongs to; empty for none
	patience time.Duration // the longest it waits for its turn
	picked   atomic.Int64  // when ClickHouse was first sent the query, in Unix nanoseconds; 0 before
	counted  atomic.Bool   // one of its queries was counted on its quotas
	renews   bool          // a stored result is used again if a new one would be the same
	local    bool          // asks no other server
	policy   cache.Policy  // of the answer

	anew  bool               // uses nothing that was computed before
	world *registry.Snapshot // what the query was compiled with
}

// warehouse returns the warehouse with the project's rows.
func (x *Computation) warehouse() *warehouse.Warehouse { return x.exec.Shards.Of(x.Project.ID) }

// answer gets the result, from the cache or by running the query. A caller that shares another's computation does not share a refusal by the other's
// allowance, nor a stored result that is older than it accepts.
func (x *Computation) answer(ctx context.Context, policy cache.Policy) (cache.Answer, error) {
	x.policy, x.anew = policy, policy.Mode == cache.Recompute
	x.renews = x.renews && policy.Mode != cache.Recompute
	for {
		got, err := x.exec.Cache.Do(ctx, x.query.Key, policy, x.load)
		var refused *LimitError
		if errors.As(err, &refused) && refused.Owner != "" && !x.quotas().owns(refused.Owner) {
			continue
		}
		if err == nil && x.isStaleForCaller(got) {
			continue
		}
		if errors.Is(err, cache.ErrTooLarge) {
			err = &clickhouse.Error{Kind: clickhouse.TooLarge, Message: err.Error()}
		}
		if err == nil {
			x.query.meter(x.exec.Metrics).answer(got.Status)
		}
		return got, err
	}
}

// isStaleForCaller reports whether a shared answer, which came stored from another server, is fresh enough for the caller that began the computation but
// not for this one.
func (x *Computation) isStaleForCaller(got cache.Answer) bool {
	if got.Status != cache.Coalesced || !got.Entry.Fetched {
		return false
	}
	return x.anew || got.FreshFor == 0 && (x.policy.Lasting == nil || !x.policy.Lasting(got.Entry))
}

// load gets the result from the server that owns it, or else computes it.
func (x *Computation) load(ctx context.Context) (*cache.Entry, error) {
	if entry, ok, err := x.fromOwner(ctx); ok {
		return entry, err
	}
	return x.compute(ctx)
}

// compute reads the rows from the materialized table if there is one and it can be read, or else runs the query.
func (x *Computation) compute(ctx context.Context) (*cache.Entry, error) {
	if x.query.Stored != nil {
		entry, err := x.run(ctx, x.compileStored, x.query.Stored)
		if err == nil {
			x.query.meter(x.exec.Metrics).table(fromTable)
			return entry, nil
		}
		if !byTable(ctx, err) {
			return nil, err
		}
		x.reportTableFailure(err)
	}
	entry, err := x.run(ctx, x.compile, nil)
	if errors.Is(err, errOtherValues) {
		return x.run(ctx, x.compileForAll, nil)
	}
	return entry, err
}

// run compiles a query and runs it on ClickHouse. stored is the table that it reads; nil for none.
func (x *Computation) run(
	ctx context.Context, compile func(context.Context, time.Time) (*compiler.Compiled, error), stored *Stored,
) (*cache.Entry, error) {
	began := time.Now() // before looking at the data: the result has everything stored by then
	_, compiling := traced(ctx, "analytics.compile")
	compiled, err := compile(ctx, began)
	compiling(err)
	if err != nil {
		return nil, err
	}
	if err := x.query.checkPages(compiled); err != nil {
		return nil, err
	}
	done := &Details{
		ExecutionID: uuid.New(), HogQL: compiled.HogQL, SQL: compiled.SQL, Limit: compiled.Limit, Offset: compiled.Offset,
		OwnLimit: !compiled.DefaultLimit, Compile: time.Since(began), Marks: x.query.Marks,
		Zone: x.Project.Timezone,
	}
	if x.query.Endpoint != nil {
		done.Version = x.query.Version.Number
	}
	if stored != nil {
		done.Materialized = stored.AsOf
	}
	x.syncLog(ctx, compiled.Reads.Tables)
	at := &turn{of: x}
	defer at.leave()
	of := x.basisOf(ctx, compiled, began)
	if of != nil {
		if x.warehouse().Probes() {
			if err := at.take(ctx); err != nil {
				return nil, err
			}
		}
		if entry := x.unchanged(ctx, at, compiled, of, done, began); entry != nil {
			return entry, nil
		}
	}
	result, stitched, err := x.settle(ctx, at, compiled, done, began)
	if err != nil {
		return nil, err
	}
	if !stitched {
		if err := at.take(ctx); err != nil {
			return nil, err
		}
		if of != nil && !x.warehouse().Probes() { // it may have waited for the place
			if entry := x.unchanged(ctx, at, compiled, of, done, began); entry != nil {
				return entry, nil
			}
		}
		done.SQL = compiled.SQL
		if result, err = x.whole(ctx, at, compiled, stored, done); err != nil {
			return nil, err
		}
	}
	if !at.elsewhere {
		done.basis = of
	}
	if compiled.Shape != nil {
		if done.Insight, err = x.shape(compiled, result); err != nil {
			return nil, err
		}
		at.endAssembly()
		done.over = x.query.isOver(done.Insight, began)
		done.Warnings = x.warnings(ctx, at, done)
		return cache.NewEntry(&cache.Result{}, began, done, done.Size()), nil
	}
	if done.Missing, err = missing(compiled, result); err != nil {
		return nil, err
	}
	at.endAssembly()
	done.Columns = compiled.Columns
	done.Head = appendHead(nil, compiled, result.Columns())
	done.Warnings = x.warnings(ctx, at, done)
	return cache.NewEntry(result, began, done, done.Size()), nil
}

// whole runs the query in one piece.
func (x *Computation) whole(ctx context.Context, at *turn, compiled *compiler.Compiled, stored *Stored, done *Details) (*cache.Result, error) {
	if err := at.take(ctx); err != nil {
		return nil, err
	}
	rows := cache.NewBuilder(limitsOf(compiled))
	var result *cache.Result
	err := x.ask(ctx, at, compiled, stored, done, sink{rows, compiled.Row}, func() int64 {
		result = rows.Result()
		return result.Size()
	})
	return result, err
}

// limitsOf returns the limits of a query's rows.
func limitsOf(compiled *compiler.Compiled) cache.Limits {
	limits := cache.Limits{MaxBytes: MaxResultBytes}
	if compiled.Probe {
		limits.Keep = compiled.Limit
	}
	return limits
}

// ask runs a query on ClickHouse in the computation's turn, and counts and logs it. end returns the size of the result.
func (x *Computation) ask(
	ctx context.Context, at *turn, compiled *compiler.Compiled, stored *Stored, done *Details, to clickhouse.Sink, end func() int64,
) error {
	done.nextID()
	q := x.compiledQuery(compiled, done.ExecutionID.String(), stored)
	q.First = at.data.Host()
	defer x.exec.Runs.beginWork(x.query.Key)()
	asked := time.Now()
	x.picked.CompareAndSwap(0, asked.UnixNano())
	querying, queried := traced(ctx, "analytics.clickhouse", attribute.String("query_id", q.ID), attribute.Int64("project", x.Project.ID))
	earlier := done.Stats
	var err error
	done.Stats, err = x.warehouse().Query(querying, at.place, q, to)
	queried(err)
	x.query.meter(x.exec.Metrics).ran(done.Stats, time.Since(asked), err)
	size := int64(0)
	if err == nil {
		size = end()
	}
	x.log(q.ID, asked, done.Stats.Rows, size, err)
	at.elsewhere = at.elsewhere || done.Stats.Elsewhere
	done.Stats = addCosts(earlier, done.Stats)
	if err == nil && !x.exec.kindsUnchanged(ctx, x.Project.ID, compiled.Reads.Values) {
		return errOtherValues
	}
	return err
}

// turn holds the computation's place, which is taken when ClickHouse is first asked.
type turn struct {
	of    *Computation
	place *admission.Place // nil until taken
	// assembly is the place of an answer that is put together from kept pieces alone; nil if there is none.
	assembly *admission.Place
	data     *warehouse.Data // the last data looked at; nil if none
	// elsewhere is set when a host other than that of data answered. Its rows may be older or newer.
	elsewhere bool
}

// take waits for the place and counts a query, unless it did so before.
func (t *turn) take(ctx context.Context) error {
	if t.place != nil {
		return nil
	}
	_, waiting := traced(ctx, "analytics.wait")
	place, err := t.of.Admit(ctx, cache.Awaited(ctx), time.Now())
	waiting(err)
	t.place = place
	return err
}

// takeSpare is take for our own questions: they count on no rate and do not wait for long.
func (t *turn) takeSpare(ctx context.Context) (err error) {
	if t.place == nil {
		t.place, err = t.of.exec.Places.Enter(ctx, admission.Request{Project: t.of.Project.ID, Awaited: cache.Awaited(ctx), Wait: namesWait})
	}
	return err
}

// assemble waits for the project's turn on the processors, unless the computation has its place.
func (t *turn) assemble(ctx context.Context) (err error) {
	if t.place == nil {
		if t.assembly, err = TakeAssemblyPlace(ctx, t.of.Project.ID); err != nil {
			t.of.query.refused(t.of.exec.Metrics, err)
		}
	}
	return err
}

func (t *turn) endAssembly() {
	if t.assembly != nil {
		t.assembly.Leave()
		t.assembly = nil
	}
}

func (t *turn) leave() {
	t.endAssembly()
	if t.place != nil {
		t.place.Leave()
	}
}

// Admit takes a place for a query and counts it. awaited is closed once somebody waits for the query.
func (x *Computation) Admit(ctx context.Context, awaited <-chan struct{}, now time.Time) (*admission.Place, error) {
	place, err := x.exec.admit(ctx, x.quotas(), admission.Request{Project: x.Project.ID, Awaited: awaited, Wait: x.patience}, now)
	if err != nil {
		x.query.refused(x.exec.Metrics, err)
		return nil, err
	}
	x.counted.Store(true)
	return place, nil
}

// compiledQuery returns the compiled query as sent to ClickHouse. Its comment tells an operator who asked and the id that the query has here; of the
// client's own text it holds only the label.
func (x *Computation) compiledQuery(c *compiler.Compiled, id string, stored *Stored) clickhouse.Query {
	comment := map[string]any{"query_id": id}
	if x.Key != nil {
		comment["key"] = x.Key.ID
	}
	if x.query.Label != "" {
		comment["name"] = x.query.Label
	}
	if x.query.Endpoint != nil {
		comment["endpoint"], comment["version"] = x.query.Endpoint.Name, x.query.Version.Number
	}
	q := QueryOf(c, x.Project.ID, Comment(x.Project.ID, comment))
	q.ID = id
	if stored != nil {
		q.Tables = []string{stored.Table.Name()}
	}
	return q
}

// Comment returns the comment of a query of a project, which tells an operator what it is for. It adds to the fields, which hold no text of a client but names.
func Comment(project int64, fields map[string]any) string {
	fields["product"], fields["project"] = "caddy-analytics", project
	return string(jsontext.Append(nil, fields))
}

// QueryOf returns a project's compiled query as sent to ClickHouse, with a comment in JSON; empty for none.
func QueryOf(c *compiler.Compiled, project int64, comment string) clickhouse.Query {
	return clickhouse.Query{SQL: c.SQL, Params: params(c), Project: project, Comment: comment, EventsFrom: c.EventsFrom}
}

// params returns the values of a compiled query as sent to ClickHouse.
func params(c *compiler.Compiled) []clickhouse.Param {
	out := make([]clickhouse.Param, len(c.Params))
	for i, p := range c.Params {
		out[i] = clickhouse.Param(p)
	}
	return out
}

// sink puts the rows that ClickHouse delivers into a result.
type sink struct {
	rows *cache.Builder
	row  func([]byte) ([]byte, error) // turns a row into one of the answer; nil to keep rows as they are
}

// Columns notes the columns of the result.
func (s sink) Columns(columns []clickhouse.Column) error {
	out := make([]cache.Column, len(columns))
	for i, c := range columns {
		out[i] = cache.Column(c)
	}
	return s.rows.Columns(out)
}

// Row keeps a row.
func (s sink) Row(row []byte) error {
	if s.row != nil {
		var err error
		if row, err = s.row(row); err != nil {
			return err
		}
	}
	return s.rows.Row(row)
}

// Restart implements clickhouse.Restarter.
func (s sink) Restart() bool {
	s.rows.Reset()
	return true
}

// missing counts the rows about an actor of whom nothing is known; nil for answers without actors.
func missing(compiled *compiler.Compiled, rows *cache.Result) (*int, error) {
	if compiled.Missing == nil {
		return nil, nil
	}
	n := 0
	for row := range rows.Rows() {
		unknown, err := compiled.Missing(row)
		if err != nil {
			return nil, err
		}
		if unknown {
			n++
		}
	}
	return &n, nil
}

// appendHead appends the columns and types of an answer.
func appendHead(dst []byte, compiled *compiler.Compiled, columns []cache.Column) []byte {
	if !compiled.BareTypes {
		return AppendColumns(dst, compiled.Columns, columns)
	}
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = cmp.Or(compiled.Types[i], columntype.Plain(c.Type))
	}
	dst = jsontext.Append(append(dst, `"columns":`...), compiled.Columns)
	return jsontext.Append(append(dst, `,"types":`...), types)
}

// AppendColumns appends the members "columns" and "types" of an answer.
func AppendColumns(dst []byte, names []string, columns []cache.Column) []byte {
	types := make([][2]string, len(columns))
	for i, c := range columns {
		types[i] = [2]string{names[i], columntype.Plain(c.Type)}
	}
	dst = append(dst, `"columns":`...)
	dst = jsontext.Append(dst, names)
	dst = append(dst, `,"types":`...)
	return jsontext.Append(dst, types)
}

// NewComputation returns a computation for a caller that waits for it.
func (e *Executor) NewComputation(c *Caller, q *Query) *Computation {
	return &Computation{exec: e, Caller: *c, query: q, patience: e.Limits.Wait, renews: true, compiles: e.CompilesOf(c)}
}

// ErrSetQuery refuses pages of a query that combines several queries.
var ErrSetQuery = errors.New("pages of a UNION")

// checkPages refuses pages of a query that can't have any.
func (q *Query) checkPages(compiled *compiler.Compiled) error {
	if q.Paged && compiled.SetQuery {
		return ErrSetQuery
	}
	return nil
}

// compile compiles the query in its turn, assuming the kinds of values that properties have had so far.
func (x *Computation) compile(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	return x.compileFor(ctx, now, x.exec.valuesOf(x.Project.ID))
}

// compileForAll compiles the query in its turn, for any values that properties may have.
func (x *Computation) compileForAll(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	return x.compileFor(ctx, now, nil)
}

func (x *Computation) compileFor(ctx context.Context, now time.Time, values *knownValues) (*compiler.Compiled, error) {
	x.world = x.Snapshot
	compiled, err := x.exec.compileFor(ctx, x.Snapshot, x.compiles, x.query, now, values)
	if err == nil {
		compiled, err = x.withMembers(ctx, compiled, now, values)
	}
	if x.compiles.counted > 0 {
		x.counted.Store(true)
	}
	x.query.refused(x.exec.Metrics, err)
	return compiled, err
}

// withMembers makes sure that the cohorts which the query reads have members. It compiles the query again if some had none.
func (x *Computation) withMembers(
	ctx context.Context, compiled *compiler.Compiled, now time.Time, values *knownValues,
) (*compiler.Compiled, error) {
	if len(compiled.Reads.Cohorts) == 0 || x.exec.Cohorts == nil {
		return compiled, nil
	}
	later, err := x.exec.Cohorts.Used(ctx, x.Project.ID, compiled.Reads.Cohorts)
	switch {
	case len(compiler.Mistakes(err)) > 0:
		return nil, &QueryError{Text: x.query.Text, Err: err}
	case err != nil || later == nil:
		return compiled, err
	}
	x.world = later
	return x.exec.compileFor(ctx, later, x.compiles, x.query, now, values)
}

// QueryError is the reason why a query can't be compiled, with the query's text, which the positions of mistakes refer to.
type QueryError struct {
	Text string
	Err  error
}

// Error returns what is wrong.
func (e *QueryError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong without the text.
func (e *QueryError) Unwrap() error { return e.Err }

// Describe reports what a query is and what is wrong with it. It takes its turn like any compile. denied returns why the caller may not read a held
// table; nil if it may.
func (e *Executor) Describe(
	ctx context.Context, c *Caller, asked *query.Metadata, denied func(table string) error,
) (*compiler.Metadata, error) {
	db, err := e.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil, err
	}
	described := *db
	described.Held = func(table string) ([][]any, error) { return nil, denied(table) } // only the columns are needed
	described.Readable = func(table string) bool { return denied(table) == nil }
	env := e.compilerEnv(c.Snapshot, c.Project.ID, &described, c.Start)
	return compileWith(ctx, e.CompilesOf(c), env, func(env compiler.Env) (*compiler.Metadata, error) {
		return compiler.Describe(asked, env)
	})
}
