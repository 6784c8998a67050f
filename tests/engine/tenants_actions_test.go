package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// hostileText is in the place of every text of an action: it would end a constant, a comment or a parameter where one is not bound.
// It ends with what markers begin with: an error may hold the query, with the names of its properties.
const hostileText = `') or 1 = 1 or team_id = 202 -- /* {p0:String} \' ` + "`\" zvm"

// tenantSteps are the steps of the tenant's actions. Their texts are what its events have, what nobody's have, and what the
// strangers' have; their expressions fail on the strangers' rows.
var tenantSteps = []struct{ step, properties string }{
	{`{"event": "1001"}`, `[]`},
	{`{"event": "1002", "url": "1%.example/"}`, `[{"type": "person", "key": "digits", "operator": "is_set"}]`},
	{`{"url": "^https", "url_matching": "regex"}`, `[{"type": "cohort", "key": "id", "value": 5}, {"type": "event", "key": "n", "operator": "lt", "value": 4}]`},
	{`{}`, `[{"type": "hogql", "key": "distinct_id::int >= 0 and event in (select event from events where properties.digits::int > 1002)"}]`},
	{`{}`, `[{"type": "group", "group_type_index": 0, "key": "digits", "value": "1000"}, {"type": "session", "key": "$session_duration", "operator": "gte", "value": 0}]`},
	{`{"url": "zvm", "url_matching": "contains"}`, `[]`},
	{`{}`, `[{"type": "element", "key": "selector", "value": "button"}, {"type": "element", "key": "text", "operator": "icontains", "value": "zvm"}]`},
	{`{}`, `[{"type": "hogql", "key": "matchesAction(1) or (properties.word as event) = '1001'"}, {"type": "hogql", "key": "(properties.mixed as event) is not null"}]`},
}

// newTenantActions are the tenant's actions: one for each of the steps, one of all, and one that is hostile in all of its texts.
func newTenantActions(t *testing.T) *query.Actions {
	t.Helper()
	var list []query.Action
	all := query.Action{ID: 100, Name: "all of them"}
	for i, text := range tenantSteps {
		step := readStep(t, text.step, text.properties)
		all.Steps = append(all.Steps, step)
		list = append(list, query.Action{ID: int64(i + 1), Name: fmt.Sprintf("action %d", i+1), Steps: []query.ActionStep{step}})
	}
	hostile := hostileText
	properties := fmt.Sprintf(`[{"type": "event", "key": %[1]q, "value": %[1]q}, {"type": "person", "key": %[1]q, "operator": "is_not", "value": %[1]q}]`, hostileText)
	list = append(list, all, query.Action{ID: 101, Name: hostileText, Steps: []query.ActionStep{
		{Event: hostile, URL: hostile, Properties: readStep(t, `{}`, properties).Properties},
		{Event: "$autocapture", Text: &hostile, TextMatching: query.Contains, Href: &hostile, TagName: &hostile, Selector: `[data-x="') or 1 = 1 --"] > .a\'b`},
		{URL: "1"},
	}})
	return query.NewActions(list)
}

func readStep(t *testing.T, step, properties string) query.ActionStep {
	t.Helper()
	var wire struct {
		Event       string         `json:"event"`
		URL         string         `json:"url"`
		URLMatching query.Matching `json:"url_matching"`
	}
	if err := json.Unmarshal([]byte(step), &wire); err != nil {
		t.Fatal(err)
	}
	filters, err := query.ParseActionProperties([]byte(properties))
	if err != nil {
		t.Fatalf("%s: %v", properties, err)
	}
	return query.ActionStep{Event: wire.Event, URL: wire.URL, URLMatching: wire.URLMatching, Properties: filters}
}

// tenantActions are the arguments of matchesAction that the generator picks from.
func tenantActions() []string {
	out := []string{"100", "101", "'all of them'", hogql.PrintExpr(&hogql.Const{Value: hostileText})}
	for i := range tenantSteps {
		out = append(out, fmt.Sprint(i+1))
	}
	return out
}

// TestFencesOfActions asks for each of the tenant's actions behind both fences and behind either of them: see TestFences.
func TestFencesOfActions(t *testing.T) {
	all := newTenants(t)
	g := newLibrary(t, all.db).generator(1)
	tally := &tally{refused: map[string]int{}, failed: map[string]int{}}
	for _, action := range tenantActions() {
		for _, shape := range []string{
			"select uuid, matchesAction(%[1]s), not matchesAction(%[1]s) from events",
			"select count(), countIf(matchesAction(%[1]s)) from events e where matchesAction(%[1]s)",
			"select e.uuid from events e join persons p on p.id = e.person_id where matchesAction(%[1]s)",
			"select distinct_id from events group by distinct_id having countIf(matchesAction(%[1]s)) > 0",
		} {
			for way := range uint64(3) {
				all.examine(t, g, fmt.Sprintf(shape, action), way, tally)
			}
		}
	}
	if len(tally.refused) > 0 || tally.errors.Load() > 0 {
		t.Error(tally)
	}
}
