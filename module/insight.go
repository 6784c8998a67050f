package module

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// insightAnswer is what an insight answers, made once of its rows and kept in their place.
type insightAnswer struct {
	results     []byte // a JSON array
	rest        []byte // the other members that the kind has: hasMore
	noError     string // the member error of a run without one: contract section 1.5
	dates       []byte // resolved_date_range and what belongs to it
	nextRefresh time.Duration
	until       time.Time // the end of its range; zero when it has none
	reversed    bool      // its range ends before it begins
}

func (a *insightAnswer) size() int {
	if a == nil {
		return 0
	}
	return len(a.results) + len(a.rest) + len(a.dates)
}

// shape makes the answer of an insight of its rows.
func (x *execution) shape(compiled *compiler.Compiled, rows *cache.Result) (*insightAnswer, error) {
	answer, err := compiled.Shape(rows.Rows())
	if err != nil {
		return nil, err
	}
	out := &insightAnswer{results: answer.Results, nextRefresh: refreshAfter(x.plan.node, answer), noError: `,"error":null`}
	if _, ok := x.plan.node.(*query.Trends); ok {
		out.noError = `,"error":""`
	}
	if x.plan.endpoint != nil {
		out.results = withoutSentinels(answer.Results)
	}
	if answer.HasMore != nil {
		out.rest = jsontext.AppendBool(append(out.rest, `,"hasMore":`...), *answer.HasMore)
	}
	out.dates = appendRange(append(out.dates, `,"resolved_date_range":`...), answer.Range)
	if answer.Range != nil {
		out.until = answer.Range.To
		out.reversed = answer.Range.To.Before(answer.Range.From)
	}
	if answer.Previous != nil {
		out.dates = appendRange(append(out.dates, `,"resolved_compare_date_range":`...), answer.Previous)
	}
	return out, nil
}

func appendRange(dst []byte, r *insight.Span) []byte {
	if r == nil {
		return append(dst, "null"...)
	}
	const form = "2006-01-02T15:04:05.999999Z07:00"
	return jsontext.Append(dst, map[string]string{"date_from": r.From.Format(form), "date_to": r.To.Format(form)})
}

// refreshAfter is how long after a run a client should leave the refresh button alone: contract section 1.3.
func refreshAfter(node query.Node, answer *insight.Answer) time.Duration {
	short := answer.Range != nil && answer.Range.To.Sub(answer.Range.From) <= 7*24*time.Hour
	if interval(node) == query.Hour || short {
		return 3 * time.Minute
	}
	return 15 * time.Minute
}

// nextRefresh is the same for any kind.
func (o *outcome) nextRefresh() time.Duration {
	if o.insight != nil {
		return o.insight.nextRefresh
	}
	return clientRefresh
}

// interval is that of an insight, or the period of a retention; empty for kinds that have none.
func interval(node query.Node) query.Interval {
	if n, ok := node.(*query.Retention); ok {
		return n.Period
	}
	if n, ok := node.(query.Insight); ok {
		if parts := n.Parts(); parts.Interval != nil {
			return *parts.Interval
		}
	}
	return ""
}

// overrideFilters puts a request's filters_override over an insight: contract section 2.4.
func overrideFilters(node query.Node, raw json.RawMessage) (query.Node, error) {
	if len(raw) == 0 || isNull(raw) {
		return node, nil
	}
	n, ok := node.(query.Insight)
	if !ok {
		return nil, validation("filters_override", "invalid_input", "filters_override is not supported for %s; put filters into the query.", node.Kind())
	}
	overrides, err := query.ParseOverrides(raw)
	if err != nil {
		return nil, err // a mistake of the request, told as it is
	}
	return overrides.Apply(n), nil
}

// overrideRun is the same for a run: contract sections 5.4 and 5.7. The mark tells runs with different overrides apart.
func overrideRun(node query.Node, raw json.RawMessage) (out query.Node, mark string, err error) {
	if len(raw) == 0 || isNull(raw) {
		return node, "", nil
	}
	n, ok := node.(query.Insight)
	if !ok {
		return nil, "", validation("filters_override", "invalid_input", "Not allowed for HogQL endpoints. Use variables instead.")
	}
	overrides, err := query.ParseRunOverrides(raw)
	if err != nil {
		return nil, "", err // a mistake of the request, told as it is
	}
	applied := overrides.Apply(n)
	return applied, string(applied.Canonical()), nil
}

// bindInsight puts the variables of a run into an insight: contract section 5.5.
func bindInsight(n query.Insight, given map[string]json.RawMessage) (query.Node, string, error) {
	if len(given) == 0 {
		return n, "", nil
	}
	names := query.VariableNames(n)
	unknown := slices.DeleteFunc(slices.Collect(maps.Keys(given)), func(name string) bool { return slices.Contains(names, name) })
	if len(unknown) > 0 {
		return nil, "", unknownVariables(unknown)
	}
	values := make(map[string]any, len(given))
	for name, raw := range given {
		value, err := decodeValue(raw)
		if err != nil {
			return nil, "", validation("variables", "invalid_input", "Variable %s: %s", name, err)
		}
		values[name] = value
	}
	bound, err := query.Bind(n, values)
	if err != nil {
		return nil, "", err // a mistake of the request, told as it is
	}
	return bound, string(jsontext.Append(nil, values)), nil
}

// renderInsight writes the members that an answer of an insight begins with.
func renderInsight(dst []byte, done *outcome) []byte {
	dst = append(dst, `{"results":`...)
	dst = append(dst, done.insight.results...)
	dst = append(dst, done.insight.rest...)
	return append(dst, done.insight.noError...)
}

// withoutSentinels replaces what stands for missing values and for the rest, in the answers of endpoints: contract section 5.4.
func withoutSentinels(results []byte) []byte {
	var rows []json.RawMessage
	if json.Unmarshal(results, &rows) == nil && len(rows) > 0 && rows[0][0] == '[' { // lists of items, as of a funnel's values
		for i := range rows {
			rows[i] = withoutSentinels(rows[i])
		}
		return jsontext.Append(nil, rows)
	}
	var items []map[string]json.RawMessage
	if json.Unmarshal(results, &items) != nil {
		return results // of a kind whose items are no objects
	}
	changed := false
	for _, item := range items {
		var label string
		if raw, ok := item["label"]; ok && json.Unmarshal(raw, &label) == nil && strings.Contains(label, "$$_posthog_breakdown_") {
			label = strings.ReplaceAll(strings.ReplaceAll(label, insight.NullValue, "null"), insight.OtherValue, "Other")
			item["label"], changed = jsontext.Append(nil, label), true
		}
		for _, name := range []string{"breakdown", "breakdown_value"} {
			var value any
			if raw, ok := item[name]; ok && json.Unmarshal(raw, &value) == nil {
				item[name], changed = jsontext.Append(nil, withoutSentinel(value)), true
			}
		}
	}
	if !changed {
		return results
	}
	return jsontext.Append(nil, items)
}

func withoutSentinel(value any) any {
	switch v := value.(type) {
	case string:
		switch v {
		case insight.NullValue, "":
			return nil
		case insight.OtherValue:
			return "Other"
		}
	case []any:
		for i := range v {
			v[i] = withoutSentinel(v[i])
		}
	}
	return value
}
