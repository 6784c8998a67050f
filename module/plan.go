package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// plan is a request that was understood: which result it wants, and how to compute that when it is not there. Plans are
// immutable and shared by all requests that look the same.
type plan struct {
	key   cache.Key
	fresh time.Duration
	mode  cache.Mode
	node  query.Node
	rows  compiler.Mode
	text  string // of the query, for the positions of its mistakes

	// The page that is wanted; limit is negative for all rows of the result.
	offset, limit int
	paged, debug  bool
	format        format
	page          cache.PageKey
	ref           cache.Ref // the snapshot that a cursor names; zero for the result of key as it stands
	example       bool      // for a document: whatever would let the reader go on leads nowhere
	attachment    []string  // of a file: its Content-Disposition

	// Of the query route and of insights, see setRefresh; zero for endpoints.
	refresh    refreshMode
	lazy, keep time.Duration
	lasting    func(*cache.Entry) bool
	// The names that the caller gave the query: it can be asked about and cancelled by clientID, and has label in the query
	// log. Either may be empty.
	clientID, label string
	shows           shown // of the query route: what its answers have beside the rows

	endpoint *registry.Endpoint // nil on the query route
	version  *registry.Version
	marks    string   // the values of the run's variables
	fixed    string   // the variables that the key of the run fixes
	notices  *notices // nil for a version that nothing is announced of

	counted atomic.Pointer[meter]      // see meter
	logged  atomic.Pointer[runlog.Log] // see logRun
	next    atomic.Pointer[nextHeader] // see setFileHeaders
}

// size is about what a plan takes in memory, in bytes.
func (p *plan) size() int { return 2*len(p.text) + 2*len(p.marks) + len(p.shows.modifiers) + 1024 }

// setPage fixes which page of the result the plan shows, and in what form: all that a body depends on beside the result.
func (p *plan) setPage() {
	form := "query"
	if p.endpoint != nil {
		form = fmt.Sprintf("run paged=%t debug=%t format=%s", p.paged, p.debug, p.format)
	}
	p.page = cache.PageKey{Offset: p.offset, Limit: p.limit, Variant: fmt.Sprintf("%s fresh=%s", form, p.fresh)}
}

// maxRows is the most rows that one result holds: contract section 8.
const maxRows = 50_000

// planMemory is what the memo of plans may hold, in bytes of requests.
const planMemory = 16 << 20

// outcome is what a result carries beside its rows; cached answers show it again.
type outcome struct {
	executionID uuid.UUID
	hogql       string
	sql         string
	limit       int
	offset      int      // rows that the query passes over
	ownLimit    bool     // the query has a LIMIT of its own
	columns     []string // names
	head        []byte   // columns and types as JSON members
	compile     time.Duration
	stats       clickhouse.Stats
	insight     *insightAnswer // of an insight, in the place of rows; else nil
	over        bool           // its range had ended: computed again it would be the same
	missing     *int           // how many rows are about actors of whom nothing is known; nil for answers without actors
	version     int            // of the endpoint; 0 on the query route
	marks       string         // of an endpoint: the values of the variables
	warnings    []byte         // a JSON array; nil for none
}

// size is about what an outcome takes in memory, in bytes.
func (o *outcome) size() int {
	return len(o.hogql) + len(o.sql) + len(o.head) + len(o.marks) + len(o.warnings) + o.insight.size() + 256
}

// policy is what the plan asks of the cache.
func (p *plan) policy(now time.Time) cache.Policy {
	return cache.Policy{Fresh: p.fresh, Mode: p.mode, Now: now, Lasting: p.lasting, Keep: p.keep, Refs: p.paged}
}

// answer gets the result of a plan, from the cache or by running it while the caller waits.
func (rq *request) answer(p *plan) (cache.Answer, error) {
	policy := p.policy(rq.start)
	if p.ref != (cache.Ref{}) {
		return rq.pinned(p, policy)
	}
	if got, ok := rq.rt.cache.Get(p.key, policy); ok {
		p.meter(rq.rt.metrics).answers[got.Status].Inc()
		return got, nil
	}
	rq.text = p.text
	ctx, done := rq.following(p)
	defer done()
	x := rq.execution(p)
	got, err := x.answer(ctx, policy)
	rq.showQuotas(x, got.Status, err)
	return got, err
}

func (rq *request) execution(p *plan) *execution {
	return &execution{
		rt: rq.rt, key: rq.key, token: rq.token, project: rq.project, snap: rq.snap, plan: p, patience: rq.rt.limits.wait,
		compiles: rq.compiles(),
	}
}

// meter is where the plan is counted: looked up once.
func (p *plan) meter(m *metrics) *meter {
	if known := p.counted.Load(); known != nil {
		return known
	}
	var name string
	if p.endpoint != nil {
		name = p.endpoint.Name
	}
	found := m.of(p.key.Project(), name)
	p.counted.Store(found)
	return found
}

// execution is one run of a plan. It outlives the request that began it, so it holds no part of that.
type execution struct {
	rt      *runtime
	key     *registry.Key
	token   *browserToken // nil when a key was sent
	project *registry.Project
	snap    *registry.Snapshot
	plan    *plan
	// compiles are those of the request: it may compile more than once.
	compiles *compiles

	id       string        // of the background run that it is for; empty for none
	patience time.Duration // the longest that it waits for its turn
	picked   atomic.Int64  // when ClickHouse was given the query, in Unix nanoseconds; 0 before
	counted  atomic.Bool   // a query of it was counted on its quotas
}

// answer gets the result of the plan, from the cache or by running it. A caller that shares another's computation does not
// share the refusal of the other's allowance.
func (x *execution) answer(ctx context.Context, policy cache.Policy) (cache.Answer, error) {
	for {
		got, err := x.rt.cache.Do(ctx, x.plan.key, policy, x.load)
		var refused *rateError
		if errors.As(err, &refused) && !x.quotas().owns(refused.owner) {
			continue
		}
		if errors.Is(err, cache.ErrTooLarge) {
			err = &clickhouse.Error{Kind: clickhouse.TooLarge, Message: err.Error()}
		}
		if err == nil {
			x.plan.meter(x.rt.metrics).answers[got.Status].Inc()
		}
		return got, err
	}
}

// load compiles the plan and runs it on ClickHouse.
func (x *execution) load(ctx context.Context) (*cache.Entry, error) {
	began := time.Now()
	_, compiling := traced(ctx, "analytics.compile")
	compiled, err := x.compile(ctx, began)
	compiling(err)
	if err != nil {
		return nil, err
	}
	if err := checkPageable(x.plan, compiled); err != nil {
		return nil, err
	}
	done := &outcome{
		executionID: uuid.New(), hogql: compiled.HogQL, sql: compiled.SQL, limit: compiled.Limit, offset: compiled.Offset,
		ownLimit: !compiled.DefaultLimit, compile: time.Since(began), marks: x.plan.marks,
	}
	if x.plan.endpoint != nil {
		done.version = x.plan.version.Number
	}
	_, waiting := traced(ctx, "analytics.wait")
	place, err := x.admit(ctx, cache.Awaited(ctx), time.Now())
	waiting(err)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	limits := cache.Limits{MaxBytes: maxResultBytes}
	if compiled.Probe {
		limits.Keep = compiled.Limit
	}
	rows := cache.NewBuilder(limits)
	q := x.query(compiled, done.executionID.String())
	defer x.rt.runs.beginWork(x.plan.key)()
	asked := time.Now()
	x.picked.Store(asked.UnixNano())
	querying, queried := traced(ctx, "analytics.clickhouse", attribute.String("query_id", q.ID), attribute.Int64("project", x.project.ID))
	done.stats, err = x.rt.warehouse.Query(querying, place, q, sink{rows, compiled.Row})
	queried(err)
	x.plan.meter(x.rt.metrics).ran(done.stats, time.Since(asked), err)
	if err != nil {
		x.log(done, asked, 0, err)
		return nil, err
	}
	result := rows.Result()
	x.log(done, asked, result.Size(), nil)
	if compiled.Shape != nil {
		if done.insight, err = x.shape(compiled, result); err != nil {
			return nil, err
		}
		done.over = x.plan.isOver(done.insight, began)
		done.warnings = x.warnings(ctx, place, done)
		return cache.NewEntry(&cache.Result{}, began, done, done.size()), nil
	}
	if done.missing, err = missing(compiled, result); err != nil {
		return nil, err
	}
	done.columns = compiled.Columns
	done.head = x.appendHead(nil, compiled, result.Columns())
	done.warnings = x.warnings(ctx, place, done)
	return cache.NewEntry(result, began, done, done.size()), nil
}

// admit takes a place for a query, and counts it. The channel is closed once somebody waits for the query.
func (x *execution) admit(ctx context.Context, awaited <-chan struct{}, now time.Time) (*admission.Place, error) {
	place, err := x.rt.admit(ctx, x.quotas(), admission.Request{Project: x.project.ID, Awaited: awaited, Wait: x.patience}, now)
	if err != nil {
		x.plan.refused(x.rt.metrics, err)
		return nil, err
	}
	x.counted.Store(true)
	return place, nil
}

// checkPageable refuses pages of what has none.
func checkPageable(p *plan, compiled *compiler.Compiled) error {
	if p.paged && compiled.SetQuery {
		return validation("limit", "invalid_input", "Pagination is not supported for UNION queries. "+
			"Wrap the UNION in a subquery: SELECT * FROM (SELECT ... UNION ALL SELECT ...)")
	}
	return nil
}

func (x *execution) compile(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	db, err := x.rt.database(ctx, x.snap.Schema(x.project.ID))
	if err != nil {
		return nil, err
	}
	env := compilerEnv(x.snap, x.project.ID, db, now)
	env.Mode = x.plan.rows
	var compiled *compiler.Compiled
	err = x.compiles.do(ctx, func(expired func() error) error {
		env.Expired = expired
		compiled, err = compiler.Compile(x.plan.node, env)
		return err
	})
	if x.compiles.counted > 0 {
		x.counted.Store(true)
	}
	if x.key != nil { // a publication is no run of a plan
		x.plan.refused(x.rt.metrics, err)
	}
	return compiled, err
}

// query is the compiled plan as ClickHouse gets it. Its comment tells an operator who asked, and the id under which we know
// the query; of the client's it holds the label alone.
func (x *execution) query(c *compiler.Compiled, id string) clickhouse.Query {
	comment := map[string]any{"product": "caddy-analytics", "project": x.project.ID, "key": x.key.ID, "query_id": id}
	if x.plan.label != "" {
		comment["name"] = x.plan.label
	}
	if x.plan.endpoint != nil {
		comment["endpoint"], comment["version"] = x.plan.endpoint.Name, x.plan.version.Number
	}
	return clickhouse.Query{SQL: c.SQL, Params: params(c), Project: x.project.ID, ID: id, Comment: string(jsontext.Append(nil, comment))}
}

func params(c *compiler.Compiled) []clickhouse.Param {
	out := make([]clickhouse.Param, len(c.Params))
	for i, p := range c.Params {
		out[i] = clickhouse.Param(p)
	}
	return out
}

// sink puts what the executor delivers into a result.
type sink struct {
	rows *cache.Builder
	row  func([]byte) ([]byte, error) // makes a row of the answer; nil for rows that are
}

func (s sink) Columns(columns []clickhouse.Column) error {
	out := make([]cache.Column, len(columns))
	for i, c := range columns {
		out[i] = cache.Column(c)
	}
	return s.rows.Columns(out)
}

func (s sink) Row(row []byte) error {
	if s.row != nil {
		var err error
		if row, err = s.row(row); err != nil {
			return err
		}
	}
	return s.rows.Row(row)
}

// missing counts the rows that are about an actor of whom nothing is known; nil for answers without actors.
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

// appendHead appends the columns and types of an answer. Those of lists of events and actors are bare: contract section 1.6.
func (x *execution) appendHead(dst []byte, compiled *compiler.Compiled, columns []cache.Column) []byte {
	if _, ok := x.plan.node.(*query.HogQL); ok {
		return appendColumns(dst, compiled.Columns, columns)
	}
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = cmp.Or(compiled.Types[i], columntype.Plain(c.Type))
	}
	dst = jsontext.Append(append(dst, `"columns":`...), compiled.Columns)
	return jsontext.Append(append(dst, `,"types":`...), types)
}

// appendColumns appends the members "columns" and "types" of an answer.
func appendColumns(dst []byte, names []string, columns []cache.Column) []byte {
	types := make([][2]string, len(columns))
	for i, c := range columns {
		types[i] = [2]string{names[i], columntype.Plain(c.Type)}
	}
	dst = append(dst, `"columns":`...)
	dst = jsontext.Append(dst, names)
	dst = append(dst, `,"types":`...)
	return jsontext.Append(dst, types)
}
