package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// pathsProject is the first of the projects with the events that random paths are asked of.
const pathsProject = 340

// pathQuery is a random PathsQuery, in the words of the wire. A plain Go evaluator answers it too.
type pathQuery struct {
	zone, from, to       string
	include, exclude     []string
	expression, filtered bool
	start, end           string
	groupings            []string
	cleaning             [][2]string // regex and alias
	steps, edges         int
	minWeight, maxWeight int
	// The keys of the steps whose actors are asked for.
	startKey, endKey, dropoffKey string
}

// pathExpression names a step by a property; NULL counts as ” in ||.
const pathExpression = "properties.n || '!'"

func (q *pathQuery) node() map[string]any {
	filter := map[string]any{
		"includeEventTypes": q.include, "excludeEvents": q.exclude, "startPoint": q.start, "endPoint": q.end, "pathGroupings": q.groupings,
		"stepLimit": q.steps, "edgeLimit": q.edges, "minEdgeWeight": q.minWeight, "maxEdgeWeight": q.maxWeight,
	}
	if q.expression {
		filter["pathsHogQLExpression"] = pathExpression
	}
	for name, key := range map[string]string{"pathStartKey": q.startKey, "pathEndKey": q.endKey, "pathDropoffKey": q.dropoffKey} {
		if key != "" {
			filter[name] = key
		}
	}
	var rules []any
	for _, rule := range q.cleaning {
		rules = append(rules, map[string]any{"regex": rule[0], "alias": rule[1]})
	}
	filter["localPathCleaningFilters"] = rules
	node := map[string]any{"kind": "PathsQuery", "dateRange": map[string]any{"date_from": q.from, "date_to": q.to}, "pathsFilter": filter}
	if q.filtered {
		node["properties"] = []any{map[string]any{"type": "event", "key": "n", "operator": "exact", "value": "1"}}
	}
	return node
}

// pathEdge is an item of the answer.
type pathEdge struct {
	Source  string  `json:"source"`
	Target  string  `json:"target"`
	Value   int     `json:"value"`
	Average float64 `json:"average_conversion_time"`
}

// TestPathsAgainstPlainGo asks random paths of the engine, and computes each a second time in plain Go.
func TestPathsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9)) // the same every time
	sets, count := 5, rounds(t, 101)
	found := 0
	for set := range sets {
		project := int64(pathsProject + set)
		events := randomPathEvents(random)
		importEvents(t, project, events)
		for i := range count {
			q := randomPath(random)
			raw, err := json.Marshal(q.node())
			if err != nil {
				t.Fatal(err)
			}
			want := q.evaluate(events)
			found += len(want)
			t.Run(fmt.Sprintf("%d-%d", set, i), func(t *testing.T) {
				t.Parallel()
				compiled, rows := runNode(t, &trendQuery{zone: q.zone}, project, raw)
				answer, err := compiled.Shape(rows.all)
				if err != nil {
					t.Fatal(err)
				}
				var got []pathEdge
				if err := json.Unmarshal(answer.Results, &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
					t.Errorf("%s in %s\n%s\nresults (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
				}
			})
		}
	}
	if found < 3*sets*count {
		t.Errorf("only %d edges are found: the events are too few to tell", found)
	}
}

// TestPathActorsAgainstPlainGo asks who took steps of random paths, and finds the same people, by the same events, in plain Go.
func TestPathActorsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 9)) // the same every time
	const project = pathsProject - 1
	events := randomPathEvents(random)
	importEvents(t, project, events)
	count := rounds(t, 60)
	found := 0
	for i := range count {
		q := randomPath(random)
		q.minWeight, q.maxWeight, q.edges = 0, 0, 100
		all := q.evaluate(events)
		if len(all) == 0 {
			continue
		}
		edge := all[random.IntN(len(all))]
		switch random.IntN(5) {
		case 0:
			q.startKey = edge.Source
		case 1:
			q.endKey = edge.Source
		case 2:
			q.startKey, q.endKey = edge.Source, edge.Target
		case 3:
			q.startKey, q.endKey, q.dropoffKey = edge.Source, edge.Target, edge.Target
		default: // everybody
		}
		want := q.actors(events)
		found += len(want)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			source := map[string]any{"kind": "InsightActorsQuery", "includeRecordings": true, "source": q.node()}
			raw, err := json.Marshal(map[string]any{"kind": "ActorsQuery", "select": []string{"actor", "event_count", "matching_events"}, "source": source})
			if err != nil {
				t.Fatal(err)
			}
			compiled, rows := runNode(t, &trendQuery{zone: q.zone}, project, raw)
			got := map[string][]string{}
			for row := range rows.all {
				person, uuids := readPathActor(t, compiled, row)
				if _, twice := got[person]; twice {
					t.Errorf("%s is there twice", person)
				}
				got[person] = uuids
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s in %s\n%s\nevents (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
			}
		})
	}
	if found < count {
		t.Errorf("only %d people are found: the events are too few to tell", found)
	}
}

// readPathActor reads a row of actor, event_count and matching_events: a person and the ids of its events.
func readPathActor(t *testing.T, compiled *compiler.Compiled, row []byte) (person string, uuids []string) {
	t.Helper()
	row, err := compiled.Row(row)
	if err != nil {
		t.Fatal(err)
	}
	var actor struct {
		DistinctIDs []string `json:"distinct_ids"`
	}
	var count int
	var matching [][]any
	if err := json.Unmarshal(row, &[]any{&actor, &count, &matching}); err != nil || len(actor.DistinctIDs) == 0 {
		t.Fatalf("%v in %s", err, row)
	}
	for _, event := range matching {
		uuid, _ := event[1].(string)
		uuids = append(uuids, uuid)
	}
	slices.Sort(uuids)
	if count != len(uuids) {
		t.Errorf("%d events match, and %d are given", count, len(uuids))
	}
	return personOf(t, actor.DistinctIDs[0]), uuids
}

func randomPathEvents(r *rand.Rand) []trendEvent {
	urls := []any{"/a", "/a", "/a/", "/b", "/b", "/c", "/", "", "/3?q=1", "/3?q=2", "/id-12/x", "/id-7/x", nil, 5}
	screens := []any{"s1", "s2", "s3/", nil}
	gaps := []time.Duration{time.Second, 20 * time.Second, 3 * time.Minute, 29*time.Minute + 59999999*time.Microsecond, 30 * time.Minute, 9 * time.Hour}
	clocks := map[string]time.Time{}
	var out []trendEvent
	for i := range 350 {
		id := r.IntN(12)
		person := fmt.Sprint(id % 11) // one has two ids; plan and ids are those of importEvents
		e := trendEvent{
			Event: []string{"$pageview", "$pageview", "$pageview", "$screen", "click", "signup", "$autocapture"}[r.IntN(7)], DistinctID: fmt.Sprintf("id%d", id),
			UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), person: person, Properties: map[string]any{"$session_id": fmt.Sprint("session", i%9)},
		}
		switch e.Event {
		case "$pageview":
			e.Properties["$current_url"] = urls[r.IntN(len(urls))]
		case "$screen":
			e.Properties["$screen_name"] = screens[r.IntN(len(screens))]
		}
		if n := r.IntN(3); n > 0 {
			e.Properties["n"] = fmt.Sprint(n)
		}
		if clocks[person].IsZero() {
			clocks[person] = time.Date(2024, 3, 1, r.IntN(24), r.IntN(60), 0, 0, time.UTC)
		}
		clocks[person] = clocks[person].Add(gaps[r.IntN(len(gaps))]) // no two events of a person at once: their order would be undefined
		e.Timestamp = clocks[person]
		out = append(out, e)
	}
	return out
}

func randomPath(r *rand.Rand) *pathQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	some := func(most int, words ...string) (out []string) {
		for _, i := range r.Perm(len(words))[:r.IntN(most+1)] {
			out = append(out, words[i])
		}
		return out
	}
	q := &pathQuery{
		zone: pick("UTC", "America/New_York", "Asia/Kolkata"), from: "2024-02-28", to: "2024-03-20",
		expression: r.IntN(3) == 0, filtered: r.IntN(6) == 0, steps: 1 + r.IntN(6), edges: 1 + r.IntN(40),
	}
	if r.IntN(3) == 0 {
		first := time.Date(2024, 3, 1+r.IntN(5), 0, 0, 0, 0, time.UTC)
		q.from, q.to = first.Format(time.DateOnly), first.AddDate(0, 0, r.IntN(6)).Format(time.DateOnly)
	}
	if r.IntN(2) == 0 {
		q.include = some(4, "$pageview", "$screen", "custom_event", "hogql")
	}
	if r.IntN(3) == 0 {
		q.exclude = some(3, "/a", "/b", "s1", "click", "$pageview", "$screen", "hogql", "")
	}
	points := []string{"/a", "/a/", "/b", "/", "s1", "s3/", "click", "$pageview", "/3*", "..."}
	if r.IntN(3) == 0 {
		q.start = pick(points...)
	}
	if r.IntN(3) == 0 {
		q.end = pick(points...)
	}
	if r.IntN(3) == 0 {
		q.groupings = some(3, "/3*", "/3?q=1", "/*x", "a", "i*k", "*", "s*", ".", "/[", "**1")
	}
	if r.IntN(3) == 0 {
		rules := [][2]string{{`\?.*`, ""}, {`/id-([0-9]+)/(x)`, `/\2/\1`}, {`^/$`, "/home"}, {`[ab]`, "z"}, {`(?i)CLICK`, "/a"}}
		for _, i := range r.Perm(len(rules))[:1+r.IntN(3)] {
			q.cleaning = append(q.cleaning, rules[i])
		}
	}
	if r.IntN(5) == 0 {
		q.minWeight = r.IntN(4)
	}
	if r.IntN(5) == 0 {
		q.maxWeight = q.minWeight + r.IntN(4)
	}
	return q
}

// all gives the rows one by one.
func (r rowCollector) all(yield func([]byte) bool) {
	for _, row := range r {
		if !yield([]byte(row)) {
			return
		}
	}
}
