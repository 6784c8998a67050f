package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// actorsProject is the project of the events whose actors are asked for.
const actorsProject = 302

// TestTrendActorsAgainstPlainGo asks who is behind points of random trends, and finds the same actors, with as many events,
// in plain Go.
func TestTrendActorsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2)) // the same every time
	events := randomEvents(random)
	importEvents(t, actorsProject, events)
	count := rounds(t, 40)
	asked := 0
	for i := range count {
		q := randomTrend(random)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			items := evaluate(q, events)
			for _, chosen := range random.Perm(len(items))[:min(4, len(items))] {
				item, place := items[chosen], 0
				if !q.total() {
					place = random.IntN(len(item.Days))
				}
				if place >= len(q.ranges()[0].starts) && !q.total() {
					continue // of a previous period that has more buckets
				}
				want := q.actors(items, &item, place, events)
				if len(want) > 0 {
					asked++
				}
				text, got := askActors(t, q, &item, place)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s in %s\nactors and their events (-plain Go +engine):\n%s", text, q.zone, diff)
				}
			}
		})
	}
	if asked < count {
		t.Errorf("only %d points have actors: the events are too few to tell", asked)
	}
}

// askActors asks for the actors behind a point, and gives their names with the number of their events.
func askActors(t *testing.T, q *trendQuery, item *trendItem, place int) (text []byte, actors map[string]int) {
	t.Helper()
	source := map[string]any{"kind": "InsightActorsQuery", "source": q.node(), "series": item.Series}
	if item.Values != nil {
		source["breakdown"] = item.Values
	}
	if item.Period != "" {
		source["compare"] = item.Period
	}
	if !q.total() {
		day := q.ranges()[0].starts[place]
		source["day"] = day.Format(time.DateTime)
		if q.unit() != "hour" {
			source["day"] = day.Format(time.DateOnly)
		}
	}
	raw, err := json.Marshal(map[string]any{"kind": "ActorsQuery", "select": []string{"actor", "event_count"}, "source": source})
	if err != nil {
		t.Fatal(err)
	}
	compiled, rows := runNode(t, q, actorsProject, raw)
	actors = map[string]int{}
	for _, row := range rows {
		shaped, err := compiled.Row([]byte(row))
		if err != nil {
			t.Fatal(err)
		}
		var actor struct {
			ID          string   `json:"id"`
			Type        string   `json:"type"`
			DistinctIDs []string `json:"distinct_ids"`
		}
		var count int
		if err := json.Unmarshal(shaped, &[]any{&actor, &count}); err != nil {
			t.Fatalf("%v in %s", err, shaped)
		}
		name := actor.ID
		if actor.Type != "group" {
			if len(actor.DistinctIDs) == 0 {
				t.Fatalf("a person without distinct ids: %s", shaped)
			}
			name = personOf(t, actor.DistinctIDs[0])
		}
		if _, twice := actors[name]; twice {
			t.Fatalf("%s is there twice", name)
		}
		actors[name] = count
	}
	return raw, actors
}

// personOf names the person of a distinct id of randomEvents.
func personOf(t *testing.T, distinctID string) string {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(distinctID, "id"))
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(n % 11)
}

// actors are those behind a point of an item, each with its number of events.
func (q *trendQuery) actors(items []trendItem, item *trendItem, place int, events []trendEvent) map[string]int {
	s, period := &q.series[item.Series], 0
	if item.Period == "previous" {
		period = 1
	}
	r := q.ranges()[period]
	var shown []string // the values that the chart tells apart
	for _, other := range items {
		if other.Series == item.Series && other.Period == item.Period {
			shown = append(shown, strings.Join(other.Values, "\x00"))
		}
	}
	out := map[string]int{}
	for value, all := range q.matching(s, q.around(r, place), events) {
		switch {
		case item.Values == nil:
		case slices.Contains(item.Values, plainOther):
			if slices.Contains(shown, value) {
				continue
			}
		case value != strings.Join(item.Values, "\x00"):
			continue
		}
		for _, c := range all {
			if !q.counts(s, r, c.when, place) {
				continue
			}
			if s.math == "unique_group" {
				out[c.e.group]++
			} else {
				out[c.e.person]++
			}
		}
	}
	return out
}

// around is a range that has the whole interval of a point in it, also where the chart's begins or ends within: a point means its interval. One of a
// running total has the chart's range only.
func (q *trendQuery) around(r plainRange, place int) plainRange {
	if q.total() || q.display == "ActionsLineGraphCumulative" {
		return r
	}
	first, end := r.starts[place], q.following(r.starts[place]).Add(-time.Microsecond)
	if first.Before(r.lower) {
		r.lower = first
	}
	if end.After(r.to) {
		r.to = end
	}
	return r
}

// counts reports whether a time lies in a bucket, in a window that ends with it, or in a running total in one before it.
func (q *trendQuery) counts(s *trendSeries, r plainRange, when time.Time, place int) bool {
	if q.total() {
		return true
	}
	first, last := r.starts[place], r.starts[place]
	if q.display == "ActionsLineGraphCumulative" {
		first = r.starts[0]
	}
	end := q.following(last)
	if q.windowed(s) {
		switch q.unit() {
		case "hour":
			first = q.following(first).Add(-time.Duration(s.active()) * 24 * time.Hour)
		default:
			first, end = first.AddDate(0, 0, 1-s.active()), last.AddDate(0, 0, 1)
		}
	}
	return !when.Before(first) && when.Before(end)
}
