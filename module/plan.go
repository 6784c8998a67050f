package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
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
	page          cache.PageKey

	endpoint *registry.Endpoint // nil on the query route
	version  *registry.Version
}

// size is about what a plan takes in memory, in bytes.
func (p *plan) size() int { return 2*len(p.text) + 1024 }

// setPage fixes which page of the result the plan shows, and in what form: all that a body depends on beside the result.
func (p *plan) setPage() {
	form := "query"
	if p.endpoint != nil {
		form = fmt.Sprintf("run paged=%t debug=%t", p.paged, p.debug)
	}
	p.page = cache.PageKey{Offset: p.offset, Limit: p.limit, Variant: fmt.Sprintf("%s fresh=%s", form, p.fresh)}
}

// maxRows is the most rows that one result holds: contract section 8.
const maxRows = 50_000

// planMemory is what the memo of plans may hold, in bytes of requests.
const planMemory = 16 << 20

// outcome is what a result carries beside its rows; cached answers show it again.
type outcome struct {
	executionID string
	hogql       string
	sql         string
	limit       int
	offset      int    // rows that the query passes over
	ownLimit    bool   // the query has a LIMIT of its own
	head        []byte // columns and types as JSON members
	compile     time.Duration
	stats       clickhouse.Stats
	insight     *insightAnswer // of an insight, in the place of rows; else nil
}

// size is about what an outcome takes in memory, in bytes.
func (o *outcome) size() int { return len(o.hogql) + len(o.sql) + len(o.head) + o.insight.size() + 256 }

// answer gets the result of a plan, from the cache or by running it. A caller that shares another's computation does not
// share the refusal of the other's allowance.
func (rq *request) answer(p *plan) (cache.Answer, error) {
	policy := cache.Policy{Fresh: p.fresh, Mode: p.mode, Now: rq.start}
	if got, ok := rq.rt.cache.Get(p.key, policy); ok {
		return got, nil
	}
	rq.text = p.text
	run := execution{rt: rq.rt, key: rq.key, project: rq.project, snap: rq.snap, plan: p}
	for {
		got, err := rq.rt.cache.Do(rq.r.Context(), p.key, policy, run.load)
		var refused *rateError
		if errors.As(err, &refused) && refused.key != rq.key.ID {
			continue
		}
		if errors.Is(err, cache.ErrTooLarge) {
			err = &clickhouse.Error{Kind: clickhouse.TooLarge, Message: err.Error()}
		}
		return got, err
	}
}

// execution is one run of a plan. It outlives the request that began it, so it holds no part of that.
type execution struct {
	rt      *runtime
	key     *registry.Key
	project *registry.Project
	snap    *registry.Snapshot
	plan    *plan
}

// load compiles the plan and runs it on ClickHouse.
func (x *execution) load(ctx context.Context) (*cache.Entry, error) {
	began := time.Now()
	compiled, err := x.compile(ctx, began)
	if err != nil {
		return nil, err
	}
	if x.plan.paged && compiled.SetQuery {
		return nil, validation("limit", "invalid_input", "Pagination is not supported for UNION queries. "+
			"Wrap the UNION in a subquery: SELECT * FROM (SELECT ... UNION ALL SELECT ...)")
	}
	done := &outcome{
		executionID: uuid.NewString(), hogql: compiled.HogQL, sql: compiled.SQL, limit: compiled.Limit, offset: compiled.Offset,
		ownLimit: !compiled.DefaultLimit, compile: time.Since(began),
	}
	release, err := x.rt.limits.admit(ctx, x.key, time.Now())
	if err != nil {
		return nil, err
	}
	defer release()
	limits := cache.Limits{MaxBytes: maxResultBytes}
	if compiled.Probe {
		limits.Keep = compiled.Limit
	}
	rows := cache.NewBuilder(limits)
	done.stats, err = x.rt.warehouse.client.Query(ctx, x.query(compiled, done.executionID), sink{rows, compiled.Row})
	if err != nil {
		return nil, err
	}
	result := rows.Result()
	if compiled.Shape != nil {
		if done.insight, err = x.shape(compiled, result); err != nil {
			return nil, err
		}
		return cache.NewEntry(&cache.Result{}, began, done, done.size()), nil
	}
	done.head = x.appendHead(nil, compiled.Columns, result.Columns())
	return cache.NewEntry(result, began, done, done.size()), nil
}

func (x *execution) compile(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	db, err := x.rt.database(ctx, x.snap.Schema(x.project.ID))
	if err != nil {
		return nil, err
	}
	return compiler.Compile(x.plan.node, compiler.Env{
		Database: db, Now: now, Variables: x.snap.VariableDefaults(x.project.ID), MaxRows: maxRows, Mode: x.plan.rows,
	})
}

// query is the compiled plan as ClickHouse gets it. Its comment tells an operator who asked; it holds no value of a client.
func (x *execution) query(c *compiler.Compiled, id string) clickhouse.Query {
	comment := map[string]any{"product": "caddy-analytics", "project": x.project.ID, "key": x.key.ID}
	if x.plan.endpoint != nil {
		comment["endpoint"], comment["version"] = x.plan.endpoint.Name, x.plan.version.Number
	}
	return clickhouse.Query{SQL: c.SQL, Params: params(c), Project: x.project.ID, ID: id, Comment: string(appendJSON(nil, comment))}
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

// appendHead appends the columns and types of an answer. Those of an EventsQuery are bare: contract section 1.6.
func (x *execution) appendHead(dst []byte, names []string, columns []cache.Column) []byte {
	if _, ok := x.plan.node.(*query.Events); !ok {
		return appendColumns(dst, names, columns)
	}
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = c.Type
	}
	dst = appendJSON(append(dst, `"columns":`...), names)
	return appendJSON(append(dst, `,"types":`...), types)
}

// appendColumns appends the members "columns" and "types" of an answer.
func appendColumns(dst []byte, names []string, columns []cache.Column) []byte {
	types := make([][2]string, len(columns))
	for i, c := range columns {
		types[i] = [2]string{names[i], c.Type}
	}
	dst = append(dst, `"columns":`...)
	dst = appendJSON(dst, names)
	dst = append(dst, `,"types":`...)
	return appendJSON(dst, types)
}

// appendJSON appends v as JSON. Nothing of it is meant for the inside of HTML, so < > and & stay readable. Encoding cannot
// fail: v holds only what this package put there.
func appendJSON(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("BUG: encoding part of an answer: " + err.Error())
	}
	return buf.Bytes()[:buf.Len()-1] // without the line feed that Encode ends with
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999Z07:00")
	return append(dst, '"')
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
