package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// publishable is a query that an endpoint may have.
type publishable struct {
	raw     json.RawMessage // with its variables filled in
	columns []registry.Column
}

// same tells whether a stored query is this one, whatever the order of its keys.
func (p *publishable) same(current json.RawMessage) bool {
	equal, err := query.Equal(current, p.raw)
	return err == nil && equal
}

// checkEndpointQuery checks a query before it is published (contract section 5.2): it parses, its variables exist, its
// names resolve, and ClickHouse takes it. Its variables are filled in from the project's by their code names.
func (rq *request) checkEndpointQuery(raw json.RawMessage) (*publishable, error) {
	node, err := query.Parse(raw)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	var kind string
	if err := json.Unmarshal(fields["kind"], &kind); err != nil || kind != node.Kind() {
		return nil, validation("query", "invalid_input", "An endpoint takes the query itself, not a %s around it.", kind)
	}
	rq.text = node.Text()
	if q, ok := node.(*query.HogQL); ok {
		if node, err = rq.fillVariables(q, fields); err != nil {
			return nil, err
		}
	}
	if _, ok := node.(*query.Events); ok {
		return nil, validation("query", "invalid_input", "An endpoint cannot run an EventsQuery. Use a HogQLQuery over events.")
	}
	run := execution{rt: rq.rt, key: rq.key, project: rq.project, snap: rq.snap, plan: &plan{node: node, rows: compiler.QueryRoute}}
	compiled, err := run.compile(rq.r.Context(), time.Now())
	if err != nil {
		return nil, rq.queryMistake(err)
	}
	columns, err := rq.describe(&run, compiled)
	if err != nil {
		return nil, err
	}
	return &publishable{raw: appendJSON(nil, fields), columns: columns}, nil
}

// queryMistake says which field of the request a mistake in the query's text belongs to.
func (rq *request) queryMistake(err error) error {
	var mistake *diag.Error
	if !errors.As(err, &mistake) {
		return err
	}
	answer := toAPIError(err, rq.text)
	if mistake.Code == diag.SyntaxError {
		answer.Detail = "Invalid HogQL query: " + answer.Detail
	}
	answer.Attr = "query"
	return answer
}

// fillVariables writes the definitions of the variables that a query uses into its JSON, and leaves out the others.
func (rq *request) fillVariables(q *query.HogQL, fields map[string]json.RawMessage) (query.Node, error) {
	for _, v := range q.Variables {
		if rq.snap.VariableByID(rq.project.ID, v.VariableID) == nil {
			return nil, validation("query", "invalid_input", "Variable with id %s does not exist in this project.", v.VariableID)
		}
	}
	used, err := compiler.Variables(q.Text())
	if err != nil {
		return nil, rq.queryMistake(err)
	}
	var missing []string
	given := make(map[string]query.Variable, len(q.Variables))
	for _, v := range q.Variables {
		given[v.CodeName] = v
	}
	filled := *q
	filled.Variables = make(map[string]query.Variable, len(used))
	stored := make(map[string]map[string]any, len(used))
	for _, code := range used {
		def := rq.snap.VariableByCode(rq.project.ID, code)
		if def == nil {
			missing = append(missing, code)
			continue
		}
		v := given[code]
		v.VariableID, v.CodeName = def.ID, code
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
		return nil, validation("query", "invalid_input", "Query references undefined variable(s): %s. "+
			"Create them under insight_variables/ first.", strings.Join(missing, ", "))
	}
	delete(fields, "variables")
	if len(stored) > 0 {
		fields["variables"] = appendJSON(nil, stored)
	}
	return &filled, nil
}

// describe asks ClickHouse for the columns of a query. What ClickHouse refuses is refused here, before a customer's
// dashboard finds it; while ClickHouse is down the types stay unknown.
func (rq *request) describe(run *execution, compiled *compiler.Compiled) ([]registry.Column, error) {
	found, err := rq.rt.warehouse.client.Describe(rq.r.Context(), run.query(compiled, ""))
	var failure *clickhouse.Error
	switch {
	case errors.As(err, &failure) && failure.Kind == clickhouse.UserError:
		answer := engineError(failure)
		answer.Attr = "query"
		return nil, answer
	case isOutage(err):
		found = nil
	case err != nil:
		return nil, err
	}
	if compiled.Shape != nil {
		return nil, nil // the answer of an insight has no columns
	}
	columns := make([]registry.Column, len(compiled.Columns))
	for i, name := range compiled.Columns {
		columns[i] = registry.Column{Name: name, Type: "unknown"}
		if i < len(found) {
			columns[i].Type = wireType(found[i].Type)
		}
	}
	return columns, nil
}

// wireType names a ClickHouse type as records do: contract section 5.3.
func wireType(typ string) string {
	for {
		inner, ok := strings.CutPrefix(typ, "Nullable(")
		if !ok {
			if inner, ok = strings.CutPrefix(typ, "LowCardinality("); !ok {
				break
			}
		}
		typ = strings.TrimSuffix(inner, ")")
	}
	for _, t := range []struct{ prefix, name string }{
		{"Int", "integer"},
		{"UInt", "integer"},
		{"Float", "float"},
		{"Decimal", "float"},
		{"BFloat", "float"},
		{"Bool", "boolean"},
		{"DateTime", "datetime"},
		{"Date", "date"},
		{"Array", "array"},
		{"Tuple", "array"},
		{"Map", "json"},
		{"JSON", "json"},
		{"String", "string"},
		{"FixedString", "string"},
		{"UUID", "string"},
		{"Enum", "string"},
		{"IPv", "string"},
	} {
		if strings.HasPrefix(typ, t.prefix) && !strings.HasPrefix(typ, "Interval") {
			return t.name
		}
	}
	return "unknown"
}
