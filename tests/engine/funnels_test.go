package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// The events that random funnels are asked of: so many projects from funnelProject on, each with so many sets of people
// that have nothing in common.
const (
	funnelProject  = 401
	funnelProjects = 6
	funnelSets     = 16
	funnelPeople   = 3 // of each set
)

// funnelQuery is a random funnel, in the words of the wire. A plain Go evaluator answers it too.
type funnelQuery struct {
	viz, order      string
	steps           []funnelStep
	exclusions      []funnelStep
	window          int64  // microseconds, whole seconds
	attribution     string // "" without breakdown
	attributionStep int
	breakdown       string // browser, or the number of the set
	limit           int
	actor           string // "" people, group or hogql
	from, to, bins  int
	interval        string
	lower, upper    time.Time
}

func (q *funnelQuery) node() map[string]any {
	step := func(s funnelStep) map[string]any {
		one := map[string]any{"kind": "EventsNode", "event": nil}
		if s.event != "" {
			one["event"] = s.event
		}
		if s.flag != "" {
			one["properties"] = []any{map[string]any{"type": "event", "key": "flag", "operator": "exact", "value": s.flag}}
		}
		if s.math != "" {
			one["math"] = s.math
		}
		if s.optional {
			one["optionalInFunnel"] = true
		}
		return one
	}
	var series, exclusions []any
	for _, s := range q.steps {
		series = append(series, step(s))
	}
	for _, s := range q.exclusions {
		one := step(s)
		one["funnelFromStep"], one["funnelToStep"] = s.from, s.to
		exclusions = append(exclusions, one)
	}
	filter := map[string]any{
		"funnelVizType": q.viz, "funnelOrderType": q.order, "funnelWindowInterval": q.window / 1_000_000, "funnelWindowIntervalUnit": "second",
		"exclusions": exclusions,
	}
	node := map[string]any{
		"kind": "FunnelsQuery", "series": series, "funnelsFilter": filter, "interval": q.interval,
		"dateRange": map[string]any{"date_from": q.lower.Format(time.RFC3339Nano), "date_to": q.upper.Format(time.RFC3339Nano), "explicitDate": true},
	}
	if q.viz != "steps" {
		filter["funnelFromStep"], filter["funnelToStep"] = q.from, q.to
	}
	if q.bins > 0 {
		filter["binCount"] = q.bins
	}
	switch q.actor {
	case "group":
		node["aggregation_group_type_index"] = 0
	case "hogql":
		filter["funnelAggregateByHogQL"] = "properties.flag"
	}
	switch q.breakdown {
	case "":
	case "set":
		node["breakdownFilter"] = map[string]any{"breakdown": "set", "breakdown_type": "event"}
	default:
		node["breakdownFilter"] = map[string]any{"breakdown": q.breakdown, "breakdown_type": "event", "breakdown_limit": q.limit}
		filter["breakdownAttributionType"], filter["breakdownAttributionValue"] = q.attribution, q.attributionStep
	}
	return node
}

// TestFunnelsAgainstPlainGo asks random funnels of the engine, and computes each a second time in plain Go.
func TestFunnelsAgainstPlainGo(t *testing.T) {
	count, seed := rounds(t, 2000), firstSeed(t)
	projects := make([][]funnelEvent, funnelProjects)
	for i := range projects {
		projects[i] = randomJourneys(rand.New(rand.NewPCG(3, uint64(i))))
		importJourneys(t, funnelProject+i, projects[i])
	}
	var asked atomic.Int64
	for worker := range 2 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for n := uint64(seed + worker); int(asked.Load()) < count; n += 2 {
				random := rand.New(rand.NewPCG(n, 77))
				i := random.IntN(funnelProjects)
				asked.Add(int64(askFunnel(t, randomFunnel(random), funnelProject+i, projects[i], n)))
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d funnels", asked.Load()) })
}

// TestExclusionsAgainstPlainGo asks more of the funnels in which an event is of one step or exclusion and exclusions guard moves from the
// first on, which have a shorter way to find out who is spoiled, and of some with other exclusions beside them.
func TestExclusionsAgainstPlainGo(t *testing.T) {
	count, seed := rounds(t, 400), firstSeed(t)
	const project = funnelProject + funnelProjects + 1
	events := randomJourneys(rand.New(rand.NewPCG(8, 8)))
	importJourneys(t, project, events)
	names := []string{"a", "b", "c", "d"}
	asked, shorter := 0, 0
	for n := uint64(seed); asked < count; n++ {
		random := rand.New(rand.NewPCG(n, 79))
		q := randomFunnel(random)
		q.order, q.viz, q.steps, q.actor = "ordered", []string{"steps", "steps", "time_to_convert"}[random.IntN(3)], nil, ""
		if q.breakdown = []string{"set", ""}[random.IntN(2)]; q.viz != "steps" {
			q.breakdown = ""
		}
		for k := range 2 + random.IntN(len(names)-1) {
			q.steps = append(q.steps, funnelStep{event: names[k], optional: k > 0 && q.viz == "steps" && random.IntN(4) == 0})
		}
		if random.IntN(6) == 0 { // so many steps, which nobody reaches, and so long a time, that 64 bits do not hold an event
			q.window = 3_000_000_000 * 1_000_000
			for k := range 6 {
				q.steps = append(q.steps, funnelStep{event: fmt.Sprintf("unseen %d", k)})
			}
		}
		last := len(q.steps) - 1
		q.from, q.to, q.attribution = 0, last, ""
		q.exclusions = []funnelStep{{event: "x", to: 1 + random.IntN(last)}}
		if last+1 < len(names) && random.IntN(4) == 0 {
			from := random.IntN(last)
			q.exclusions = append(q.exclusions, funnelStep{event: names[last+1], from: from, to: from + 1})
		} else {
			shorter++
		}
		asked += askFunnel(t, q, project, events, n)
	}
	if shorter == 0 {
		t.Error("no funnel had one exclusion")
	}
	t.Logf("%d funnels", asked)
}

// TestCrowdsAgainstPlainGo compares funnels of people with hundreds of events, most of them simultaneous or at one moment.
func TestCrowdsAgainstPlainGo(t *testing.T) {
	count, seed := rounds(t, 400), firstSeed(t)
	const project = funnelProject + funnelProjects + 2
	events := crowdedJourneys(rand.New(rand.NewPCG(9, 9)))
	importJourneys(t, project, events)
	asked := 0
	for n := uint64(seed); asked < count; n++ {
		random := rand.New(rand.NewPCG(n, 80))
		q := randomFunnel(random)
		q.order = []string{"ordered", "strict", "unordered", "unordered"}[random.IntN(4)]
		q.actor, q.breakdown, q.attribution = "", "set", ""
		if q.viz == "time_to_convert" {
			q.breakdown = ""
		}
		asked += askFunnel(t, q, project, events, n)
	}
	t.Logf("%d funnels", asked)
}

// crowdedJourneys makes people with more events than one block of a fold has. Each has some names more often than others.
func crowdedJourneys(r *rand.Rand) []funnelEvent {
	var out []funnelEvent
	for person := range funnelSets {
		at := funnelStart.UnixMicro() + int64(r.IntN(60))*60_000_000
		pauses := [][]int64{{0}, {0, 0, 1, 20_000}, {1_000}, {30_000, 50_000}, {0, 10_000, 30_000, 50_000, 50_001, 1_000_000}}[person%5]
		for range 300 + r.IntN(900) {
			if r.IntN(150) == 0 {
				at += []int64{60_000, 2_000_000, 10_000_000}[r.IntN(3)]
			}
			at += pauses[r.IntN(len(pauses))]
			names := []string{"a", "b", "c", "d", "x"}
			out = append(out, funnelEvent{
				uuid: fmt.Sprintf("00000000-0000-4000-8001-%012x", len(out)), name: names[min(r.IntN(len(names)), r.IntN(len(names)))],
				flag: []string{"y", "n", ""}[min(r.IntN(3), r.IntN(3))], set: person, person: person, at: at,
			})
			if r.IntN(100) == 0 {
				out[len(out)-1].name = "x"
			}
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// askFunnel compares one answer, and reports how many funnels it was made of: a breakdown by the sets is one of each.
func askFunnel(t *testing.T, q *funnelQuery, project int, events []funnelEvent, seed uint64) (funnels int) {
	t.Helper()
	raw, err := json.Marshal(q.node())
	if err != nil {
		t.Fatal(err)
	}
	results, sql, err := runFunnel(t, raw, project, q.lower.Location())
	if errors.As(err, new(*diag.Error)) {
		return 0 // not a funnel
	}
	if err != nil {
		t.Fatalf("seed %d: %s: %v\n%s", seed, raw, err, sql)
	}
	near := cmp.Options{cmpopts.EquateApprox(1e-9, 1e-6), cmpopts.EquateEmpty()}
	fail := func(want, got any, options ...cmp.Option) {
		if diff := cmp.Diff(want, got, append(options, near...)...); diff != "" {
			t.Errorf("seed %d: %s\n%s\nresults (-plain Go +engine):\n%s", seed, raw, sql, diff)
		}
	}
	sets := []int{0}
	everyone := slices.Clone(events)
	if q.breakdown == "set" {
		sets = nil
		for set := range funnelSets {
			sets = append(sets, set)
		}
	} else {
		for i := range everyone {
			everyone[i].set = 0
		}
	}
	switch q.viz {
	case "steps":
		got := readFunnelRows(t, results, len(q.steps), q.breakdown != "")
		for _, set := range sets {
			want := q.plainSteps(everyone, set)
			if q.breakdown == "set" {
				for i := range want {
					want[i].Value = []string{fmt.Sprint(set)}
				}
				fail(want, rowsOf(got, fmt.Sprint(set)))
				continue
			}
			fail(want, got, cmpopts.SortSlices(func(a, b funnelRow) bool { return fmt.Sprint(a.Value) < fmt.Sprint(b.Value) }))
		}
	case "time_to_convert":
		sets = sets[:1]
		for i := range everyone {
			everyone[i].set = 0
		}
		var got struct {
			Bins    [][2]float64 `json:"bins"`
			Average *float64     `json:"average_conversion_time"`
		}
		if err := json.Unmarshal(results, &got); err != nil {
			t.Fatal(err)
		}
		bins, average := q.plainTimes(everyone, 0)
		fail(bins, got.Bins)
		if got.Average != nil || average != 0 {
			fail(&average, got.Average)
		}
	case "trends":
		var got []funnelCurve
		if err := json.Unmarshal(results, &got); err != nil {
			t.Fatal(err)
		}
		byValue := cmpopts.SortSlices(func(a, b funnelCurve) bool { return fmt.Sprint(a.Value) < fmt.Sprint(b.Value) })
		for _, set := range sets {
			want := q.plainTrends(everyone, set)
			if q.breakdown == "set" {
				want = slices.DeleteFunc(want, func(c funnelCurve) bool { return !slices.ContainsFunc(c.Data, func(d float64) bool { return d > 0 }) })
				for i := range want {
					want[i].Value = []string{fmt.Sprint(set)}
				}
				shown := slices.DeleteFunc(slices.Clone(got), func(c funnelCurve) bool {
					return !slices.Contains(c.Value, fmt.Sprint(set)) || !slices.ContainsFunc(c.Data, func(d float64) bool { return d > 0 })
				})
				fail(want, shown)
				continue
			}
			fail(want, got, byValue)
		}
	}
	return len(sets)
}

func rowsOf(rows []funnelRow, value string) []funnelRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r funnelRow) bool { return !slices.Contains(r.Value, value) })
}

// runFunnel gives the results of a funnel, and the SQL that it became.
func runFunnel(t *testing.T, raw []byte, project int, zone *time.Location) (results []byte, sql string, err error) {
	t.Helper()
	compiled, err := compileFunnel(raw, project, zone)
	if err != nil {
		return nil, "", err
	}
	rows, err := rowsOfFunnel(t, compiled, project)
	if err != nil {
		return nil, compiled.SQL, err
	}
	answer, err := compiled.Shape(rows.all)
	if err != nil {
		return nil, compiled.SQL, err
	}
	return answer.Results, compiled.SQL, nil
}

// runRows gives the rows of a query, and the SQL that it became.
func runRows(t *testing.T, raw []byte, project int, zone *time.Location) (rows rowCollector, sql string, err error) {
	t.Helper()
	compiled, err := compileFunnel(raw, project, zone)
	if err != nil {
		return nil, "", err
	}
	rows, err = rowsOfFunnel(t, compiled, project)
	return rows, compiled.SQL, err
}

func compileFunnel(raw []byte, project int, zone *time.Location) (*compiler.Compiled, error) {
	node, err := compiler.Parse(raw)
	if err != nil {
		return nil, err
	}
	db := &schema.Database{Project: int64(project), Location: zone, Layout: schema.NativeLayout(), Properties: schema.PropertyTypes{}}
	return compiler.Compile(node, compiler.Env{Database: db, Now: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)})
}

func rowsOfFunnel(t *testing.T, compiled *compiler.Compiled, project int) (rows rowCollector, err error) {
	t.Helper()
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	_, err = client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: int64(project)}, &rows)
	return rows, err
}

// readFunnelRows reads the steps of an answer as rows.
func readFunnelRows(t *testing.T, results []byte, steps int, split bool) []funnelRow {
	t.Helper()
	type item struct {
		Count     float64  `json:"count"`
		Average   *float64 `json:"average_conversion_time"`
		Median    *float64 `json:"median_conversion_time"`
		Breakdown []string `json:"breakdown"`
	}
	var all [][]item
	if !split {
		all = make([][]item, 1)
	}
	into := any(&all)
	if !split {
		into = &all[0]
	}
	if err := json.Unmarshal(results, into); err != nil {
		t.Fatalf("%v in %s", err, results)
	}
	var out []funnelRow
	for _, items := range all {
		if len(items) == 0 {
			continue
		}
		row := funnelRow{Value: items[0].Breakdown, Counts: make([]float64, steps), Average: make([]float64, steps), Median: make([]float64, steps)}
		if !split {
			row.Value = []string{""}
		}
		for k, it := range items {
			row.Counts[k] = it.Count
			if it.Average != nil {
				row.Average[k] = *it.Average
			}
			if it.Median != nil {
				row.Median[k] = *it.Median
			}
		}
		out = append(out, row)
	}
	return out
}

// funnelStart is about when all events are: an hour before midnight in the projects' zones.
var funnelStart = time.Date(2024, 3, 9, 23, 0, 0, 0, time.UTC)

// randomJourneys makes events that are close to one another, at the bounds of windows and of simultaneity.
func randomJourneys(r *rand.Rand) []funnelEvent {
	var out []funnelEvent
	steps := []int64{0, 0, 1, 10_000, 30_000, 50_000, 50_001, 60_000, 1_000_000, 1_000_000, 2_000_000, 5_000_000, 5_000_001, 7_000_000, 10_000_000, 40_000_000, 3_600_000_000}
	for person := range funnelSets * funnelPeople {
		at := funnelStart.UnixMicro() + int64(r.IntN(60))*60_000_000
		for range 2 + r.IntN(16) {
			at += steps[r.IntN(len(steps))]
			out = append(out, funnelEvent{
				uuid: fmt.Sprintf("00000000-0000-4000-8000-%012x", len(out)),
				name: []string{"a", "a", "b", "b", "c", "d", "x"}[r.IntN(7)], flag: []string{"y", "n", "n", ""}[r.IntN(4)],
				group: []string{"g1", "g2", "g3", ""}[r.IntN(4)], set: person / funnelPeople, person: person, at: at,
				// At one time there is one value, since nothing says which of several would be the first.
				browser: []string{"Chrome", "Safari", "Opera", ""}[(at/7+at/1_000_003+int64(person))%4],
			})
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func importJourneys(t *testing.T, project int, events []funnelEvent) {
	t.Helper()
	var lines strings.Builder
	for i, e := range events {
		properties := map[string]any{"set": fmt.Sprint(e.set), "n": i}
		for name, value := range map[string]string{"flag": e.flag, "browser": e.browser, "$group_0": e.group} {
			if value != "" {
				properties[name] = value
			}
		}
		raw, err := json.Marshal(map[string]any{
			"event": e.name, "uuid": e.uuid, "distinct_id": fmt.Sprintf("p%d", e.person), "timestamp": time.UnixMicro(e.at).UTC().Format(time.RFC3339Nano), "properties": properties,
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(raw, '\n'))
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: int64(project), Now: time.Now()}, ingesttest.Lines(lines.String()))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
}

func randomFunnel(r *rand.Rand) *funnelQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	zone := time.UTC
	q := &funnelQuery{
		viz: pick("steps", "steps", "steps", "trends", "time_to_convert"), order: pick("ordered", "ordered", "strict", "unordered"),
		window: []int64{1, 2, 5, 10, 12, 60, 4000}[r.IntN(7)] * 1_000_000, interval: pick("hour", "day"), limit: 1 + r.IntN(4),
		actor: pick("", "", "", "", "group", "hogql"),
		lower: funnelStart.Add(time.Duration(r.IntN(3)) * 20 * time.Minute).In(zone), upper: funnelStart.Add(time.Duration(2+r.IntN(30)) * time.Hour).In(zone),
	}
	n := 2 + r.IntN(4)
	apart := r.IntN(3) == 0
	for k := range n {
		s := funnelStep{event: pick("a", "b", "c", "d"), flag: pick("", "", "", "y", "n")}
		if apart {
			s = funnelStep{event: []string{"a", "b", "c", "d"}[k%4]}
		} else if r.IntN(8) == 0 {
			s.event = ""
		}
		s.optional = k > 0 && q.viz == "steps" && q.order != "unordered" && r.IntN(5) == 0
		if r.IntN(12) == 0 {
			s.math = pick("first_time_for_user", "first_time_for_user_with_filters")
		}
		q.steps = append(q.steps, s)
	}
	if apart {
		q.steps = q.steps[:min(n, 4)]
	}
	if q.viz != "trends" && r.IntN(20) == 0 { // so many bits, and so long a time, that 64 bits do not hold an event
		q.lower, q.steps = time.Date(1981, 1, 1, 0, 0, 0, 0, zone), append(q.steps, q.steps[1:]...)
		q.steps = append(q.steps, q.steps[1:]...)
	}
	for range []int{0, 0, 1, 1, 2}[r.IntN(5)] {
		x := funnelStep{event: pick("x", "x", "d", "c"), flag: pick("", "", "y"), to: len(q.steps) - 1}
		if q.order != "unordered" && r.IntN(2) == 0 {
			x.from = r.IntN(len(q.steps) - 1)
			x.to = x.from + 1 + r.IntN(len(q.steps)-1-x.from)
		}
		q.exclusions = append(q.exclusions, x)
	}
	q.from = r.IntN(len(q.steps) - 1)
	q.to = q.from + 1 + r.IntN(len(q.steps)-1-q.from)
	if r.IntN(2) == 0 {
		q.from, q.to = 0, len(q.steps)-1
	}
	if r.IntN(2) == 0 {
		q.bins = 1 + r.IntN(5)
	}
	switch {
	case q.viz == "time_to_convert":
	case r.IntN(2) == 0 && q.actor == "":
		q.breakdown = "set"
	case r.IntN(3) > 0:
		q.breakdown, q.attribution = "browser", pick("first_touch", "last_touch", "all_events", "step", "step")
		if q.order != "unordered" {
			q.attributionStep = r.IntN(len(q.steps))
		}
	}
	return q
}

// TestFunnelActors finds as many actors behind each step as the funnel counts there, and none twice.
func TestFunnelActors(t *testing.T) {
	events := randomJourneys(rand.New(rand.NewPCG(5, 5)))
	const project = funnelProject + funnelProjects
	importJourneys(t, project, events)
	asked := 0
	for n := uint64(0); asked < 10; n++ {
		q := randomFunnel(rand.New(rand.NewPCG(n, 78)))
		if q.viz != "steps" || q.actor != "" || q.breakdown == "set" || q.attribution == "all_events" || q.attribution == "step" {
			continue
		}
		node, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		results, _, err := runFunnel(t, node, project, time.UTC)
		if errors.As(err, new(*diag.Error)) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", node, err)
		}
		asked++
		for _, row := range readFunnelRows(t, results, len(q.steps), q.breakdown != "") {
			value := ""
			if q.breakdown != "" {
				value = fmt.Sprintf(`, "funnelStepBreakdown": %q`, row.Value[0])
			}
			for k := 1; k <= len(q.steps); k++ {
				checkFunnelActors(t, node, project, fmt.Sprintf(`"funnelStep": %d%s`, k, value), row.Counts[k-1])
				if before := q.requiredBefore(k); k > 1 && !q.steps[k-1].optional {
					checkFunnelActors(t, node, project, fmt.Sprintf(`"funnelStep": -%d%s`, k, value), row.Counts[before-1]-row.Counts[k-1])
				}
			}
		}
	}
}

// requiredBefore is the last step before k (from 1) that may not be passed over.
func (q *funnelQuery) requiredBefore(k int) int {
	for k--; k > 1 && q.steps[k-1].optional; k-- {
	}
	return k
}

func checkFunnelActors(t *testing.T, funnel []byte, project int, fields string, want float64) {
	t.Helper()
	raw := fmt.Sprintf(`{"kind": "FunnelsActorsQuery", %s, "source": %s}`, fields, funnel)
	rows, sql, err := runRows(t, []byte(raw), project, time.UTC)
	if err != nil {
		t.Fatalf("%s: %v\n%s", raw, err, sql)
	}
	slices.Sort(rows)
	if len(slices.Compact(rows)) != int(want) {
		t.Errorf("%s\n%d actors, want %v\n%s", raw, len(rows), want, sql)
	}
}
