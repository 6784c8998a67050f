package e2e_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plainStickiness has the options that only stickiness has.
type plainStickiness struct {
	plainQuery
	count      int // intervalCount, 0 for none
	cumulative bool
	operator   string // empty for no criteria
	value      int
}

func (s plainStickiness) node() map[string]any {
	node := s.plainQuery.node("StickinessQuery")
	filter := map[string]any{}
	if s.cumulative {
		filter["computedAs"] = "cumulative"
	}
	if s.operator != "" {
		filter["stickinessCriteria"] = map[string]any{"operator": s.operator, "value": s.value}
	}
	node["stickinessFilter"] = filter
	if s.count > 0 {
		node["intervalCount"] = s.count
	}
	if s.groups {
		series, _ := node["series"].([]any)
		first, _ := series[0].(map[string]any)
		first["math"], first["math_group_type_index"] = "unique_group", 0
	}
	return node
}

// elapsed counts the whole intervals from one time to a later one.
func elapsed(from, to time.Time, interval string) int {
	n := 0
	for !move(from, interval, n+1).After(to) {
		n++
	}
	return n
}

// stickiness is a literal implementation of contract stickiness.md, sections 2 to 5.
func (w *plainWorld) stickiness(q plainStickiness) []float64 {
	end := q.to
	if q.interval != "hour" {
		end = end.AddDate(0, 0, 1).Add(-time.Microsecond)
	}
	from := w.bucket(q.from, q.interval)
	if q.interval == "week" {
		from = q.from
	}
	n := len(w.axis(q.from, end, q.interval))
	if q.count > 0 {
		n = (n + q.count - 1) / q.count
	}
	hits := map[string]map[string]int{}
	for _, e := range w.events {
		actor := q.actor(e)
		if e.at.Before(from) || e.at.After(end) || actor == "" || !q.matches(e) {
			continue
		}
		interval := w.bucket(e.at, q.interval).String()
		if q.count > 0 {
			interval = strconv.Itoa(elapsed(e.at.In(w.zone), end, q.interval) / q.count)
		}
		if hits[actor] == nil {
			hits[actor] = map[string]int{}
		}
		hits[actor][interval]++
	}
	out := make([]float64, n)
	for _, intervals := range hits {
		k := 0
		for _, events := range intervals {
			if q.operator == "" || q.operator == "gte" && events >= q.value ||
				q.operator == "lte" && events <= q.value || q.operator == "exact" && events == q.value {
				k++
			}
		}
		if k > 0 && k <= n {
			out[k-1]++
		}
	}
	if q.cumulative {
		for i := n - 2; i >= 0; i-- {
			out[i] += out[i+1]
		}
	}
	return out
}

// TestStickinessAgainstPlainGo compares answers with those of a plain evaluator, for random projects and queries.
func TestStickinessAgainstPlainGo(t *testing.T) {
	for i, setting := range worlds {
		t.Run(setting.zone, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			w := makeWorld(t, rng, setting.zone, setting.monday)
			total := 0.0
			for range 70 {
				q := plainStickiness{plainQuery: w.randomQuery(rng, "hour", "day", "day", "week", "month"), cumulative: rng.IntN(3) == 0}
				if rng.IntN(3) == 0 {
					q.count = 1 + rng.IntN(4)
				}
				if rng.IntN(2) == 0 {
					q.operator, q.value = []string{"gte", "lte", "exact"}[rng.IntN(3)], 1+rng.IntN(3)
				}
				want := w.stickiness(q)
				got := results(t, w.client, q.node())
				if len(got) != 1 {
					t.Fatalf("%d items, want 1", len(got))
				}
				if diff := cmp.Diff(want, numbers(got[0]["data"])); diff != "" {
					t.Fatalf("%v (-plain +server):\n%s", q.node(), diff)
				}
				for _, n := range want {
					total += n
				}
			}
			if total < 200 {
				t.Errorf("all queries together count %v: the worlds are too empty to tell", total)
			}
		})
	}
}

// TestStickinessAgainstHogQL compares the total of stickiness with the number of people from HogQL.
func TestStickinessAgainstHogQL(t *testing.T) {
	c := demoProject(t)
	events := []string{"commit authored", "pull request merged"}
	var series []any
	for _, event := range events {
		series = append(series, map[string]any{"kind": "EventsNode", "event": event})
	}
	for _, interval := range []string{"day", "week", "month"} {
		items := results(t, c, map[string]any{
			"kind": "StickinessQuery", "interval": interval, "series": series,
			"dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"},
		})
		for i, event := range events {
			rows := c.Query(t, "select count(distinct person_id) from events where event = '"+event+"' and toYear(timestamp) = 2023")
			cells, _ := rows[0].([]any)
			total := 0.0
			for _, n := range numbers(items[i]["data"]) {
				total += n
			}
			if want, _ := cells[0].(float64); items[i]["count"] != want || total != want || want < 10 {
				t.Errorf("%s by %s: count %v, sum %v, HogQL counts %v", event, interval, items[i]["count"], total, want)
			}
		}
	}
}
