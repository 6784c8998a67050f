package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lifecycle is a literal implementation of contract lifecycle.md, section 4.
func (w *plainWorld) lifecycle(q plainQuery) [][]float64 {
	end := q.to
	if q.interval != "hour" {
		end = end.AddDate(0, 0, 1).Add(-time.Microsecond)
	}
	axis := w.axis(q.from, end, q.interval)
	place := map[time.Time]int{}
	out := make([][]float64, 4)
	for i := range out {
		out[i] = make([]float64, len(axis))
	}
	for i, b := range axis {
		place[b] = i
	}
	active := map[string]map[int]bool{}
	place[move(axis[0], q.interval, -1)] = -1
	for _, e := range w.events {
		i, inside := place[w.bucket(e.at, q.interval)]
		if actor := q.actor(e); inside && actor != "" && q.matches(e) && !e.personless {
			if active[actor] == nil {
				active[actor] = map[int]bool{}
			}
			active[actor][i] = true
		}
	}
	for actor, seen := range active {
		first := true
		for i := -1; i < len(axis); i++ {
			status := -1
			switch born := w.bucket(w.created[actor], q.interval); {
			case !seen[i] && i > -1 && seen[i-1]:
				out[3][i]--
			case !seen[i]:
			case i == -1:
				first = false
			case seen[i-1]:
				status = 1
			case first && born.Equal(axis[i]):
				status = 0
			default:
				status = 2
			}
			if status >= 0 {
				out[status][i]++
				first = false
			}
		}
	}
	return out
}

// TestLifecycleAgainstPlainGo compares answers with those of a plain evaluator, for random projects and queries.
func TestLifecycleAgainstPlainGo(t *testing.T) {
	for i, setting := range worlds {
		t.Run(setting.zone, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			w := makeWorld(t, rng, setting.zone, setting.monday)
			total := 0.0
			for range 70 {
				q := w.randomQuery(rng, "hour", "day", "day", "week", "month")
				node := q.node("LifecycleQuery")
				if q.groups {
					node["aggregation_group_type_index"] = 0
				}
				want := w.lifecycle(q)
				var got [][]float64
				for _, item := range results(t, w.client, node) {
					got = append(got, numbers(item["data"]))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%v (-plain +server):\n%s", node, diff)
				}
				for _, status := range want {
					for _, n := range status {
						total += max(n, -n)
					}
				}
			}
			if total < 500 {
				t.Errorf("all queries together count %v: the worlds are too empty to tell", total)
			}
		})
	}
}

// TestLifecycleAgainstTrends compares the demo's active people: new, returning and resurrecting together are all active people, whose number is also
// the one from HogQL.
func TestLifecycleAgainstTrends(t *testing.T) {
	c := demoProject(t)
	for interval, bucket := range map[string]string{
		"day": "toStartOfDay(timestamp)", "week": "toStartOfWeek(timestamp)", "month": "toStartOfMonth(timestamp)",
	} {
		t.Run(interval, func(t *testing.T) {
			from, to := "2024-02-01", "2024-04-30"
			items := results(t, c, map[string]any{
				"kind": "LifecycleQuery", "interval": interval, "series": []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}},
				"dateRange": map[string]any{"date_from": from, "date_to": to},
			})
			if len(items) != 4 {
				t.Fatalf("%d items, want 4", len(items))
			}
			active := map[string]float64{}
			days, _ := items[0]["days"].([]any)
			for _, item := range items[:3] {
				for i, n := range numbers(item["data"]) {
					active[fmt.Sprint(days[i])] += n
				}
			}
			var first, last string
			if len(days) > 0 {
				first, last = fmt.Sprint(days[0]), fmt.Sprint(days[len(days)-1])
			}
			rows := c.Query(t, fmt.Sprintf("select toString(toDate(%s)) as b, count(distinct person_id) from events where event = 'commit authored' "+
				"and b >= '%s' and b <= '%s' group by b order by b limit 1000", bucket, first, last))
			if len(rows) < 3 {
				t.Fatalf("%d intervals with events", len(rows))
			}
			want := map[string]float64{}
			for _, day := range days {
				want[fmt.Sprint(day)] = 0
			}
			for _, row := range rows {
				cells, _ := row.([]any)
				want[fmt.Sprint(cells[0])], _ = cells[1].(float64)
			}
			if diff := cmp.Diff(want, active); diff != "" {
				t.Errorf("active people (-HogQL +lifecycle):\n%s", diff)
			}
		})
	}
}

// TestAllTime queries the demo from its first event on: everyone is new once, and is counted once.
func TestAllTime(t *testing.T) {
	c := demoProject(t)
	people, _ := c.Query(t, "select count() from persons")[0].([]any)
	first, _ := c.Query(t, "select toString(toStartOfMonth(min(timestamp))) from events")[0].([]any)
	series := []any{map[string]any{"kind": "EventsNode", "event": nil}}
	all := map[string]any{"date_from": "all", "date_to": "2026-12-31"} // an end, so that no month begins between the two queries
	items := results(t, c, map[string]any{"kind": "InsightVizNode", "source": map[string]any{
		"kind": "LifecycleQuery", "interval": "month", "series": series, "dateRange": all,
	}})
	days, _ := items[0]["days"].([]any)
	if items[0]["count"] != people[0] || len(days) < 100 || days[0] != first[0] {
		t.Errorf("%v are new of %v, from %v on, want it from %v on", items[0]["count"], people[0], days[:min(1, len(days))], first[0])
	}
	items = results(t, c, map[string]any{"kind": "StickinessQuery", "interval": "month", "series": series, "dateRange": all})
	if intervals, _ := items[0]["days"].([]any); items[0]["count"] != people[0] || len(intervals) != len(days) {
		t.Errorf("%v of %v were active, in up to %d of %d months", items[0]["count"], people[0], len(intervals), len(days))
	}
}

// TestInsightEnvelope checks the fields of an answer besides its results.
func TestInsightEnvelope(t *testing.T) {
	c := newProject(t)
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{
		"query": map[string]any{
			"kind": "StickinessQuery", "series": []any{map[string]any{"event": "a"}}, "compareFilter": map[string]any{"compare": true},
			"dateRange": map[string]any{"date_from": "2024-01-11", "date_to": "2024-01-20"},
		},
		"filters_override": map[string]any{"interval": "week"},
	})
	if answer.Status != http.StatusOK {
		t.Fatalf("answered %d: %s", answer.Status, answer.Raw)
	}
	items, _ := answer.Body["results"].([]any)
	item, _ := items[0].(map[string]any)
	got := []any{len(items), item["labels"], answer.Body["resolved_date_range"], answer.Body["is_cached"], answer.Body["timezone"]}
	want := []any{
		2,
		[]any{"1 week", "2 weeks"},
		map[string]any{"date_from": "2024-01-11T00:00:00Z", "date_to": "2024-01-20T23:59:59.999999Z"},
		false, "UTC",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if text, _ := answer.Body["hogql"].(string); !strings.Contains(text, "uniqExact(toStartOfWeek(timestamp))") {
		t.Errorf("hogql: %v", answer.Body["hogql"])
	}
}
