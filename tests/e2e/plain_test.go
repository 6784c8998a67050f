package e2e_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// plainEvent is an event for the plain evaluator below.
type plainEvent struct {
	name, person, group, color string
	at                         time.Time
	personless                 bool
}

// plainWorld is a small random project, both on the server and in Go.
type plainWorld struct {
	client  *harness.Client
	zone    *time.Location
	monday  bool
	events  []plainEvent
	created map[string]time.Time // of persons and groups
}

// worldStart and worldDays are the time of the random projects' events. In most zones, the clock changes within it.
var worldStart = time.Date(2025, time.February, 20, 0, 0, 0, 0, time.UTC)

const worldDays = 60

func makeWorld(t *testing.T, rng *rand.Rand, zone string, monday bool) *plainWorld {
	t.Helper()
	w := &plainWorld{monday: monday, created: map[string]time.Time{}}
	var err error
	if w.zone, err = time.LoadLocation(zone); err != nil {
		t.Fatal(err)
	}
	start := "0"
	if monday {
		start = "1"
	}
	id, key := server.Project(t, t.Name(), "--timezone", zone, "--week-start", start)
	w.client = server.Client(id, key)
	var lines strings.Builder
	encode := json.NewEncoder(&lines)
	line := func(v map[string]any) {
		if err := encode.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	moment := func() time.Time {
		return worldStart.Add(time.Duration(rng.Int64N(worldDays*24*3600)) * time.Second)
	}
	for i := range 25 {
		person := "p" + strconv.Itoa(i)
		w.created[person] = moment()
		line(map[string]any{"type": "person", "distinct_ids": []string{person, person + "-phone"}, "created_at": w.created[person]})
	}
	for i := range 6 {
		group := "org:" + strconv.Itoa(i)
		w.created[group] = moment()
		line(map[string]any{"type": "group", "group_type": "organization", "group_type_index": 0, "group_key": group, "created_at": w.created[group]})
	}
	for range 700 {
		e := plainEvent{
			name: []string{"view", "click", "buy"}[rng.IntN(3)], person: "p" + strconv.Itoa(rng.IntN(25)), at: moment(),
			color: []string{"red", "green", ""}[rng.IntN(3)], personless: rng.IntN(10) == 0,
		}
		if rng.IntN(3) == 0 { // most people act when they are created, so that there are new ones
			e.at = w.created[e.person].Add(time.Duration(rng.IntN(50*3600)) * time.Second)
		}
		if rng.IntN(4) > 0 {
			e.group = "org:" + strconv.Itoa(rng.IntN(6))
		}
		properties := map[string]any{}
		if e.group != "" {
			properties["$group_0"] = e.group
		}
		if e.color != "" {
			properties["color"] = e.color
		}
		if e.personless {
			properties["$process_person_profile"] = false
		}
		w.events = append(w.events, e)
		distinct := e.person
		if rng.IntN(2) == 0 {
			distinct += "-phone"
		}
		line(map[string]any{"event": e.name, "distinct_id": distinct, "timestamp": e.at, "properties": properties})
	}
	importLines(t, w.client, lines.String())
	return w
}

// bucket returns the start of the interval that contains a time.
func (w *plainWorld) bucket(at time.Time, interval string) time.Time {
	at = at.In(w.zone)
	year, month, day := at.Date()
	switch interval {
	case "hour":
		return at.Truncate(time.Minute).Add(-time.Duration(at.Minute()) * time.Minute)
	case "week":
		back := int(at.Weekday())
		if w.monday {
			back = (back + 6) % 7
		}
		day -= back
	case "month":
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, w.zone)
}

// move returns the start of an interval n intervals later.
func move(start time.Time, interval string, n int) time.Time {
	switch interval {
	case "hour":
		return start.Add(time.Duration(n) * time.Hour)
	case "week":
		return start.AddDate(0, 0, 7*n)
	case "month":
		return start.AddDate(0, n, 0)
	}
	return start.AddDate(0, 0, n)
}

// axis returns the starts of the intervals from that of one time to that of another.
func (w *plainWorld) axis(from, to time.Time, interval string) []time.Time {
	var out []time.Time
	for b := w.bucket(from, interval); !b.After(to); b = move(b, interval, 1) {
		out = append(out, b)
	}
	return out
}

// plainQuery has the options that random queries vary.
type plainQuery struct {
	name, color string // empty for any
	interval    string
	from, to    time.Time // midnights in the project's zone
	groups      bool
}

func (w *plainWorld) randomQuery(rng *rand.Rand, intervals ...string) plainQuery {
	q := plainQuery{
		name: []string{"view", "click", "buy", ""}[rng.IntN(4)], color: []string{"red", "", ""}[rng.IntN(3)],
		interval: intervals[rng.IntN(len(intervals))], groups: rng.IntN(3) == 0,
	}
	day, days := rng.IntN(worldDays), 1+rng.IntN(30)
	if q.interval == "hour" {
		days = rng.IntN(3)
	}
	q.from = time.Date(worldStart.Year(), worldStart.Month(), worldStart.Day()+day, 0, 0, 0, 0, w.zone)
	q.to = q.from.AddDate(0, 0, days)
	return q
}

func (q plainQuery) matches(e plainEvent) bool {
	return (q.name == "" || q.name == e.name) && (q.color == "" || q.color == e.color)
}

func (q plainQuery) actor(e plainEvent) string {
	if q.groups {
		return e.group
	}
	return e.person
}

// node returns the fields common to both kinds.
func (q plainQuery) node(kind string) map[string]any {
	series := map[string]any{"kind": "EventsNode", "event": nil}
	if q.name != "" {
		series["event"] = q.name
	}
	node := map[string]any{
		"kind": kind, "interval": q.interval, "series": []any{series},
		"dateRange": map[string]any{"date_from": q.from.Format(time.DateOnly), "date_to": q.to.Format(time.DateOnly)},
	}
	if q.color != "" {
		node["properties"] = []any{map[string]any{"type": "event", "key": "color", "operator": "exact", "value": []string{q.color}}}
	}
	return node
}

func numbers(v any) []float64 {
	list, _ := v.([]any)
	out := make([]float64, len(list))
	for i, n := range list {
		out[i], _ = n.(float64)
	}
	return out
}

// worlds are the settings of random projects.
var worlds = []struct {
	zone   string
	monday bool
}{{"UTC", false}, {"America/New_York", true}, {"Asia/Kathmandu", false}}

// results runs an insight and returns the items of its answer.
func results(t *testing.T, c *harness.Client, node map[string]any) []map[string]any {
	t.Helper()
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": node})
	if answer.Status != http.StatusOK {
		t.Fatalf("%v\nanswered %d: %s", node, answer.Status, answer.Raw)
	}
	list, _ := answer.Body["results"].([]any)
	out := make([]map[string]any, len(list))
	for i, item := range list {
		out[i], _ = item.(map[string]any)
	}
	return out
}
