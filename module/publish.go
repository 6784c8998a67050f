package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// publisher checks queries before they become versions of endpoints (contract section 5.2).
type publisher struct {
	rt      *runtime
	snap    *registry.Snapshot // whose variables count
	project *registry.Project
	// Takes the place in which ClickHouse is asked.
	admit func(context.Context) (*admission.Place, error)
	// compiles are those of the request: a query is compiled for several values of its variables.
	compiles *execution.Compiles
}

// checkQuery checks what the caller publishes, which counts as a query of theirs.
func (rq *request) checkQuery(raw json.RawMessage) (*publishable, error) {
	x := rq.rt.Computation(rq.Caller.Caller, &execution.Query{Key: cache.KeyParts{Project: rq.Project.ID}.Key()})
	p := &publisher{rt: rq.rt, snap: rq.Snapshot, project: rq.Project, compiles: rq.rt.CompilesOf(rq.Key, rq.Share, rq.Project.ID), admit: func(ctx context.Context) (*admission.Place, error) {
		return x.Admit(ctx, admission.Awaited, time.Now())
	}}
	checked, err := p.check(rq.r.Context(), raw, rq.Start)
	rq.showQuotas(x.ShownQuotas(0, err))
	return checked, err
}

// operatorsPublisher checks what the operator publishes. It counts on no rate, and waits behind the queries of the project that
// somebody waits for.
func (rt *runtime) operatorsPublisher(snap *registry.Snapshot, project *registry.Project) *publisher {
	return &publisher{rt: rt, snap: snap, project: project, compiles: rt.CompilesOf(nil, nil, project.ID), admit: func(ctx context.Context) (*admission.Place, error) {
		return rt.Places.Enter(ctx, admission.Request{Project: project.ID, Wait: rt.Limits.Wait, Uncounted: true})
	}}
}

// describeTimeout is the longest that ClickHouse is asked about one query that is published.
const describeTimeout = 5 * time.Second

// publishable is a query that an endpoint may have.
type publishable struct {
	node    query.Node
	raw     json.RawMessage // with its variables filled in
	columns []registry.Column
}

// same reports whether a stored query is this one, whatever the order of its keys.
func (p *publishable) same(current json.RawMessage) bool {
	equal, err := query.Equal(current, p.raw)
	return err == nil && equal
}

// check checks a query: it parses, its variables exist, its names resolve, and ClickHouse takes it. Its variables are filled
// in from the project's by their code names. The error may be that of a limit.
func (p *publisher) check(ctx context.Context, raw json.RawMessage, now time.Time) (*publishable, error) {
	checked, err := p.read(raw)
	if err != nil {
		return nil, err
	}
	d := describer{publisher: p}
	defer d.close()
	if checked.columns, err = d.columns(ctx, checked.node, now); err != nil {
		return nil, err
	}
	checked.columns = d.widen(ctx, checked.node, checked.columns, now)
	return checked, nil
}

// describer asks ClickHouse about one query that is published, with several values for its variables. It takes one place for that,
// when it first asks.
type describer struct {
	*publisher
	place *admission.Place
	until time.Time // when the place has been held for long enough
}

func (p *describer) enter(ctx context.Context) (err error) {
	if p.place == nil {
		p.place, err = p.admit(ctx)
		p.until = time.Now().Add(describeTimeout)
	}
	return err
}

func (p *describer) close() {
	if p.place != nil {
		p.place.Leave()
	}
}

// columns are those of a query as a run without variables has it. A variable without a value is NULL then; where NULL must not stand,
// every run has to give the variable, and the columns are those of a run that does.
func (p *describer) columns(ctx context.Context, node query.Node, now time.Time) ([]registry.Column, error) {
	columns, err := p.columnsOf(ctx, node, now)
	if err == nil || execution.IsRefusal(err) {
		return columns, err
	}
	if filled := p.filled(node, typicalValue); filled != nil {
		if typical, again := p.columnsOf(ctx, filled, now); again == nil {
			return typical, nil
		}
	}
	return nil, err
}

func (p *describer) columnsOf(ctx context.Context, node query.Node, now time.Time) ([]registry.Column, error) {
	compiled, err := p.compile(ctx, node, now)
	if err != nil {
		return nil, err
	}
	return p.describe(ctx, compiled)
}

// read does what of check needs nothing but the registry.
func (p *publisher) read(raw json.RawMessage) (*publishable, error) {
	node, err := compiler.Parse(raw)
	if err != nil {
		return nil, api.ErrorOf(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	var kind string
	if err := json.Unmarshal(fields["kind"], &kind); err != nil || kind != node.Kind() {
		return nil, api.Invalid("query", "invalid_input", "An endpoint takes the query itself, not a %s around it.", kind)
	}
	hogql, isHogQL := node.(*query.HogQL)
	_, isInsight := node.(query.Insight)
	switch {
	case isHogQL:
		if node, err = p.fillVariables(hogql, fields); err != nil {
			return nil, err
		}
	case !isInsight:
		return nil, api.Invalid("query", "invalid_input", "An endpoint cannot run a query of kind %s. Use an insight or a HogQLQuery.", kind)
	}
	return &publishable{node: node, raw: jsontext.Append(nil, fields)}, nil
}

// queryMistake says which field of the request a mistake in the query's text belongs to.
func queryMistake(err error) error {
	var mistake *diag.Error
	if !errors.As(err, &mistake) {
		return err
	}
	answer := api.ErrorOf(err)
	if mistake.Code == diag.SyntaxError {
		answer.Detail = "Invalid HogQL query: " + answer.Detail
	}
	answer.Attr = "query"
	return answer
}

// fillVariables writes the definitions of the variables that a query uses into its JSON, and leaves out the others.
func (p *publisher) fillVariables(q *query.HogQL, fields map[string]json.RawMessage) (query.Node, error) {
	given := make(map[string]query.Variable, len(q.Variables))
	for _, id := range slices.Sorted(maps.Keys(q.Variables)) { // in order: of two with one code name the same counts each time
		v := q.Variables[id]
		if _, err := uuid.Parse(id); err != nil {
			return nil, api.Invalid("query", "invalid_input", "Variable ID(s) not valid UUIDs: %s.", id)
		}
		if p.snap.VariableByID(p.project.ID, definitions.CanonicalID(v.VariableID)) == nil {
			return nil, api.Invalid("query", "invalid_input", "Variable ID(s) not found: %s.", v.VariableID)
		}
		given[v.CodeName] = v
	}
	used, err := compiler.Variables(q.Text())
	if err != nil {
		return nil, queryMistake(&execution.QueryError{Text: q.Text(), Err: err})
	}
	var missing []string
	filled := *q
	filled.Variables = make(map[string]query.Variable, len(used))
	stored := make(map[string]map[string]any, len(used))
	for _, code := range used {
		def := p.snap.VariableByCode(p.project.ID, code)
		if def == nil {
			missing = append(missing, code)
			continue
		}
		v := given[code]
		v.VariableID, v.CodeName = def.ID, code
		if v.HasValue && !v.IsNull { // runs that leave the variable out use it as it is
			if v.Value, err = api.CheckVariable(def, api.OnlyItem(def, v.Value)); err != nil {
				return nil, api.Invalid("query", "invalid_input", "Variable %s: %s", code, err)
			}
		}
		filled.Variables[def.ID] = v
		stored[def.ID] = map[string]any{"variableId": def.ID, "code_name": code}
		if v.HasValue {
			stored[def.ID]["value"] = v.Value
		}
		if v.IsNull {
			stored[def.ID]["isNull"] = true
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, api.Invalid("query", "invalid_input", "Query references undefined variable(s): %s. "+
			"See insight_variables/, where variables are made.", strings.Join(missing, ", "))
	}
	delete(fields, "variables")
	if len(stored) > 0 {
		fields["variables"] = jsontext.Append(nil, stored)
	}
	return &filled, nil
}

// compile compiles a query as a run without variables would.
func (p *publisher) compile(ctx context.Context, node query.Node, now time.Time) (*compiler.Compiled, error) {
	compiled, err := p.rt.Compile(ctx, p.snap, p.compiles, &execution.Query{Node: node, Text: node.Text(), Rows: compiler.QueryRoute}, now)
	if err != nil {
		return nil, queryMistake(err)
	}
	return compiled, nil
}

// describe asks ClickHouse for the columns of a query. What ClickHouse refuses is refused here, before a customer's
// dashboard finds it; while ClickHouse is down, or when it takes too long, the types stay unknown.
func (p *describer) describe(ctx context.Context, compiled *compiler.Compiled) ([]registry.Column, error) {
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(ctx, p.until)
	defer cancel()
	comment := jsontext.Append(nil, map[string]any{"product": "caddy-analytics", "project": p.project.ID, "describe": true})
	found, err := p.rt.Warehouse.Describe(ctx, p.place, clickhouse.Query{
		SQL: compiled.SQL, Params: execution.Params(compiled), Project: p.project.ID, Comment: string(comment),
	})
	var failure *clickhouse.Error
	switch {
	case errors.As(err, &failure) && failure.ByQuery():
		answer := api.EngineError(failure)
		answer.Attr = "query"
		return nil, answer
	case execution.IsOutage(err), errors.Is(err, context.DeadlineExceeded):
		found = nil
	case err != nil:
		return nil, fmt.Errorf("describing a query: %w", err)
	}
	if compiled.Shape != nil {
		return nil, nil // the answer of an insight has no columns
	}
	columns := make([]registry.Column, len(compiled.Columns))
	for i, name := range compiled.Columns {
		columns[i] = registry.Column{Name: name, Type: columntype.Unknown}
		if i < len(found) {
			columns[i].Type, columns[i].ClickHouse = columntype.Wire(found[i].Type), found[i].Type
		}
	}
	return columns, nil
}

// checkOptionalBreakdowns checks optional_breakdown_properties: only breakdowns that the query has can be left out.
func checkOptionalBreakdowns(node query.Node, names []string) error {
	if len(names) == 0 {
		return nil
	}
	const attr = "optional_breakdown_properties"
	insight, ok := node.(query.Insight)
	if !ok || !compiler.KindOf(node).OptionalBreakdowns {
		supported := compiler.KindNames(func(k *compiler.Kind) bool { return k.OptionalBreakdowns })
		slices.Sort(supported)
		return api.Invalid(attr, "invalid_input", "Query kind '%s' does not support optional breakdowns. Supported: %s.", node.Kind(), strings.Join(supported, ", "))
	}
	known := slices.DeleteFunc(query.VariableNames(insight), func(name string) bool { return name == "date_from" || name == "date_to" })
	for _, name := range names {
		if !slices.Contains(known, name) {
			return api.Invalid(attr, "invalid_input", "Unknown breakdown property: '%s'. Known: [%s].", name, strings.Join(known, ", "))
		}
	}
	return nil
}
