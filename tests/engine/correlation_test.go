package engine_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// correlationProject is the project of the events that random correlations are asked of.
const correlationProject = 431

// correlationQuery is a random FunnelCorrelationQuery, in the words of the wire. A plain Go evaluator answers it too.
type correlationQuery struct {
	funnel  *funnelQuery
	step    int // that the actors reached, from 1; 0 for none given
	about   string
	names   []string // of properties of actors, or of events
	exclude []string
}

func (q *correlationQuery) node() map[string]any {
	source := map[string]any{"kind": "FunnelsActorsQuery", "source": q.funnel.node()}
	if q.step > 0 {
		source["funnelStep"] = q.step
	}
	node := map[string]any{"kind": "FunnelCorrelationQuery", "source": source, "funnelCorrelationType": q.about}
	switch q.about {
	case "events":
		node["funnelCorrelationExcludeEventNames"] = q.exclude
	case "properties":
		node["funnelCorrelationNames"], node["funnelCorrelationExcludeNames"] = q.names, q.exclude
	default:
		node["funnelCorrelationEventNames"], node["funnelCorrelationEventExcludePropertyNames"] = q.names, q.exclude
	}
	return node
}

// correlationResults are the results.
type correlationResults struct {
	Events []correlationOdds `json:"events"`
	Skewed bool              `json:"skewed"`
}

type correlationOdds struct {
	Event struct {
		Event string `json:"event"`
	} `json:"event"`
	Success int     `json:"success_count"`
	Failure int     `json:"failure_count"`
	Ratio   float64 `json:"odds_ratio"`
	Type    string  `json:"correlation_type"`
}

// TestCorrelationsAgainstPlainGo asks random correlations of the engine, and computes each a second time in plain Go. Behind the numbers there
// are as many actors.
func TestCorrelationsAgainstPlainGo(t *testing.T) {
	var events []funnelEvent
	for set := range 3 { // of more people than a few
		for _, e := range randomJourneys(rand.New(rand.NewPCG(11, uint64(set)))) {
			e.person += set * funnelSets * funnelPeople
			e.uuid = fmt.Sprintf("00000000-0000-4000-8000-%012x", len(events))
			e.set = 0
			events = append(events, e)
		}
	}
	traits := importTraits(t, events) // before the events, which note what their people are
	importJourneys(t, correlationProject, events)
	found, behind, count := 0, 0, rounds(t, 90)
	for n := range count {
		random := rand.New(rand.NewPCG(uint64(n), 79))
		q := randomCorrelation(random)
		if q == nil {
			continue
		}
		raw, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		results, sql, err := runFunnel(t, raw, correlationProject, time.UTC)
		if errors.As(err, new(*diag.Error)) {
			continue // not a funnel
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", raw, err, sql)
		}
		var got correlationResults
		if err := json.Unmarshal(results, &got); err != nil {
			t.Fatal(err)
		}
		want := q.evaluate(events, traits)
		found += len(want.Events)
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%d: %s\n%s\nresults (-plain Go +engine):\n%s", n, raw, sql, diff)
			continue
		}
		if len(got.Events) > 0 && q.about != "event_with_properties" {
			behind += q.checkActors(t, &got.Events[random.IntN(len(got.Events))], raw)
		}
	}
	t.Logf("%d signs, %d actors", found, behind)
	if found*6 < count*5 || behind*9 < count*5 {
		t.Error("the events are too few to tell")
	}
}

// importTraits gives people and groups properties, and returns those by who has them. JSON is what they are, text how they are shown.
func importTraits(t *testing.T, events []funnelEvent) map[string]map[string]any {
	t.Helper()
	plans := []any{"pro", "free", "pro", 7, true, nil, "é::x", strings.Repeat("long", 200)}
	traits := map[string]map[string]any{}
	var lines strings.Builder
	for i := range events {
		person := fmt.Sprint(events[i].person)
		if traits[person] != nil {
			continue
		}
		traits[person] = map[string]any{"plan": plans[events[i].person%len(plans)], "a.b": fmt.Sprint(events[i].person % 3)}
		if events[i].person%5 > 0 {
			traits[person]["rare"] = fmt.Sprint(events[i].person / 2) // of two people
		}
		fmt.Fprintf(&lines, `{"type":"person","distinct_ids":["p%s"],"properties":%s}`+"\n", person, marshal(t, traits[person]))
	}
	for i, group := range []string{"g1", "g2"} { // nothing is known of g3
		traits[group] = map[string]any{"plan": plans[i]}
		fmt.Fprintf(&lines, `{"type":"group","group_type":"organization","group_type_index":0,"group_key":%q,"properties":%s}`+"\n", group, marshal(t, traits[group]))
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: correlationProject, Now: time.Now()}, ingesttest.Lines(lines.String()))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
	return traits
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func randomCorrelation(r *rand.Rand) *correlationQuery {
	f := randomFunnel(r)
	if f.viz != "steps" || f.actor == "hogql" || f.breakdown == "set" {
		return nil
	}
	f.steps = f.steps[:min(len(f.steps), 2+r.IntN(2))] // so that some come to the end
	for i := range f.exclusions {
		f.exclusions[i].from, f.exclusions[i].to = 0, len(f.steps)-1
	}
	f.attributionStep = min(f.attributionStep, len(f.steps)-1)
	q := &correlationQuery{funnel: f, step: r.IntN(3), about: []string{"events", "events", "properties", "event_with_properties"}[r.IntN(4)]}
	switch q.about {
	case "events":
		q.exclude = [][]string{nil, {"x"}, {"none", "d"}}[r.IntN(3)]
	case "properties":
		q.names = [][]string{{"plan"}, {"plan", "a.b", "nothing", "plan"}, {"$all"}, {"$all"}}[r.IntN(4)]
		q.exclude = [][]string{nil, {"plan"}}[r.IntN(2)]
	default:
		q.names = [][]string{{"x", "d"}, {"a", "b", "c", "d", "x"}}[r.IntN(2)]
		q.exclude = [][]string{nil, {"flag", "set"}}[r.IntN(2)]
	}
	return q
}

// passage is the way of an actor through a funnel.
type passage struct {
	actor          string
	entered, ended int64
	converted      bool
}

func (q *correlationQuery) passages(events []funnelEvent) []passage {
	var out []passage
	last := len(q.funnel.steps)
	for actor, journey := range q.funnel.actorsOf(events, 0) {
		for _, r := range q.funnel.runsOf(journey) {
			times := q.funnel.outcome(&r)
			if times == nil || times[max(q.step, 1)] == 0 {
				continue
			}
			p := passage{actor, times[1], times[last], times[last] > 0}
			if !p.converted {
				p.ended = p.entered + q.funnel.window
			}
			out = append(out, p)
		}
	}
	return out
}

// who gives the actor of an event.
func (q *correlationQuery) who(e *funnelEvent) string {
	if q.funnel.actor == "group" {
		return e.group
	}
	return fmt.Sprint(e.person)
}

// signs are what an actor did, or is, by their names.
func (q *correlationQuery) signs(p *passage, events []funnelEvent, traits map[string]map[string]any) []string {
	if q.about == "properties" {
		return q.traits(p.actor, traits)
	}
	var out []string
	for i := range events {
		e := &events[i]
		isStep := slices.ContainsFunc(q.funnel.steps, func(s funnelStep) bool { return s.event == e.name })
		inRange := e.at >= q.funnel.lower.UnixMicro() && e.at <= q.funnel.upper.UnixMicro()
		if q.who(e) != p.actor || isStep || !inRange || e.at <= p.entered || e.at >= p.ended {
			continue
		}
		if q.about == "events" {
			if !slices.Contains(q.exclude, e.name) {
				out = append(out, e.name)
			}
			continue
		}
		if !slices.Contains(q.names, e.name) {
			continue
		}
		for name, value := range map[string]string{"flag": e.flag, "browser": e.browser, "$group_0": e.group, "set": fmt.Sprint(e.set)} {
			if value != "" && !slices.Contains(q.exclude, name) {
				out = append(out, e.name+"::"+name+"::"+value)
			}
		}
		// n is another number for each event, so no two actors have one.
	}
	return out
}

func (q *correlationQuery) traits(actor string, traits map[string]map[string]any) []string {
	own := traits[actor]
	names := q.names
	if slices.Contains(names, "$all") {
		names = nil
		for name, value := range own {
			if value != nil {
				names = append(names, name)
			}
		}
	}
	var out []string
	for _, name := range names {
		if slices.Contains(q.exclude, name) {
			continue
		}
		text := ""
		if own[name] != nil {
			text = fmt.Sprint(own[name])
		}
		out = append(out, name+"::"+string([]rune(text)[:min(400, len([]rune(text)))]))
	}
	return out
}

// evaluate answers with what the contract says.
func (q *correlationQuery) evaluate(events []funnelEvent, traits map[string]map[string]any) correlationResults {
	type tally [2]map[string]bool // actors who did not convert, and those who did
	all := tally{{}, {}}
	bySign := map[string]*tally{}
	for _, p := range q.passages(events) {
		which := 0
		if p.converted {
			which = 1
		}
		all[which][p.actor] = true
		for _, sign := range q.signs(&p, events, traits) {
			if bySign[sign] == nil {
				bySign[sign] = &tally{{}, {}}
			}
			bySign[sign][which][p.actor] = true
		}
	}
	successes, failures := float64(len(all[1])), float64(len(all[0]))
	if successes == 0 || failures == 0 {
		return correlationResults{Skewed: true}
	}
	var likely, unlikely []correlationOdds
	for sign, tally := range bySign {
		o := correlationOdds{Success: len(tally[1]), Failure: len(tally[0])}
		o.Event.Event = sign
		s, f := float64(o.Success), float64(o.Failure)
		if s+f < min(25, 0.02*(successes+failures)) || q.about == "event_with_properties" && s+f <= 2 {
			continue
		}
		o.Ratio = (s + 1) * (failures - f + 1) / ((successes - s + 1) * (f + 1))
		if o.Type = "failure"; o.Ratio > 1 {
			o.Type = "success"
			likely = append(likely, o)
		} else {
			unlikely = append(unlikely, o)
		}
	}
	slices.SortFunc(likely, func(a, b correlationOdds) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), strings.Compare(a.Event.Event, b.Event.Event))
	})
	slices.SortFunc(unlikely, func(a, b correlationOdds) int {
		return cmp.Or(cmp.Compare(a.Ratio, b.Ratio), strings.Compare(a.Event.Event, b.Event.Event))
	})
	return correlationResults{
		Events: slices.Concat(likely[:min(10, len(likely))], unlikely[:min(10, len(unlikely))]),
		Skewed: successes/failures > 10 || failures/successes > 10,
	}
}

// checkActors asks for the actors behind the numbers of a sign, and reports how many there are.
func (q *correlationQuery) checkActors(t *testing.T, o *correlationOdds, source []byte) int {
	t.Helper()
	for which, want := range map[bool]int{true: o.Success, false: o.Failure} {
		node := map[string]any{"kind": "FunnelCorrelationActorsQuery", "source": json.RawMessage(source), "funnelCorrelationPersonConverted": which}
		if q.about == "properties" {
			name, value, _ := strings.Cut(o.Event.Event, "::")
			if value == "" || q.funnel.actor == "group" || len(value) >= 400 {
				return 0 // a filter on an empty value has no effect, and one on a group needs its index
			}
			node["funnelCorrelationPropertyValues"] = []any{map[string]any{"type": "person", "key": name, "value": value, "operator": "exact"}}
		} else {
			node["funnelCorrelationPersonEntity"] = map[string]any{"kind": "EventsNode", "event": o.Event.Event}
		}
		raw := marshal(t, node)
		rows, sql, err := runRows(t, raw, correlationProject, time.UTC)
		if err != nil {
			t.Fatalf("%s: %v\n%s", raw, err, sql)
		}
		if len(rows) != min(want, 101) {
			t.Errorf("%s\n%s\ngives %d actors, want %d", raw, sql, len(rows), want)
		}
	}
	return o.Success + o.Failure
}
