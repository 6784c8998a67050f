package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// propertiesOfAll are the properties of the people of a project, each with the version of its row.
func propertiesOfAll(tb testing.TB, c *clickhouse.Client, project int64) []string {
	tb.Helper()
	rows := ask(tb, c, project, "SELECT concat(toJSONString(argMax(properties, version)), ' ', max(version)) FROM person "+
		"GROUP BY id HAVING argMax(is_deleted, version) = 0 ORDER BY 1")
	for n, row := range rows {
		rows[n] = strings.ReplaceAll(strings.Trim(row, `["]`), `\"`, `"`)
	}
	return rows
}

func properties(tb testing.TB, text string) record.Object {
	tb.Helper()
	o, err := record.Properties([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestChange(t *testing.T) {
	tests := []struct {
		name, before, set string
		unset             []string
		want              string
		err               error
	}{
		{"sets what is named and keeps the rest", `{"a":1,"b":"x"}`, `{"b":"y","c":[1,2]}`, nil, `{"a":1,"b":"y","c":[1,2]} 1`, nil},
		{"takes away what is there", `{"a":1,"b":2}`, `{}`, []string{"a", "none"}, `{"b":2} 1`, nil},
		{"null stays next to others", `{"a":1,"b":2}`, `{"a":null,"c":null}`, nil, `{"b":2} 1`, nil},
		{"no change writes no row", `{"a":1}`, `{"a":1}`, []string{"b"}, `{"a":1} 0`, nil},
		{"too many names change nothing", `{"a":1}`, names(0, 2000), []string{"a0"}, `{"a":1} 0`, ingest.ErrNoRoom},
		{"too many bytes change nothing", `{"a":1}`, `{"b":1,"c":"` + strings.Repeat("x", ingest.MaxProfile) + `"}`, nil, `{"a":1} 0`, ingest.ErrNoRoom},
	}
	c := client(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, i := project(), ingest.New(c)
			i.Intents = ingest.IntentDir(t.TempDir())
			options := ingest.Options{Project: p, Now: now}
			deliver(t, i, options, captured(t, `{"event":"e","distinct_id":"x","properties":{"$set":`+tt.before+`}}`))
			_, err := i.Change(t.Context(), options, ingest.Change{Person: ingest.PersonUUID(p, "x"), Set: properties(t, tt.set), Unset: tt.unset})
			if !errors.Is(err, tt.err) {
				t.Errorf("Change() = %v, want %v", err, tt.err)
			}
			if diff := gocmp.Diff([]string{tt.want}, propertiesOfAll(t, c, p)); diff != "" {
				t.Errorf("properties, version (-want +got):\n%s", diff)
			}
			// Later events build on the change.
			deliver(t, i, options, captured(t, `{"event":"later","distinct_id":"x","properties":{"$set":{"later":1}}}`))
			if got := propertiesOfAll(t, c, p); len(got) != 1 || !strings.Contains(got[0], `"later":1`) || !strings.Contains(got[0], strings.TrimSuffix(strings.Split(tt.want, "}")[0], "}")) {
				t.Errorf("after another event: %v", got)
			}
		})
	}
}

func TestChangeLearnsTypes(t *testing.T) {
	c, p := client(t), project()
	i, options := ingest.New(c), ingest.Options{Project: p, Now: now, LearnTypes: true}
	deliver(t, i, options, captured(t, `{"event":"e","distinct_id":"x"}`))
	report, err := i.Change(t.Context(), options, ingest.Change{Person: ingest.PersonUUID(p, "x"), Set: properties(t, `{"age":3}`)})
	want := []ingest.LearnedProperty{{Scope: "person", Name: "age", Type: "Numeric"}}
	if diff := gocmp.Diff(want, report.Learned); err != nil || diff != "" {
		t.Errorf("%v, learned (-want +got):\n%s", err, diff)
	}
}

// TestChangeOfUnknownPerson: there is no person with an id that nobody has, that was merged away, or that is in another project.
func TestChangeOfUnknownPerson(t *testing.T) {
	c, p, other := client(t), project(), project()
	i := ingest.New(c)
	deliver(t, i, ingest.Options{Project: p}, captured(t, `{"event":"e","distinct_id":"a"}
		{"event":"e","distinct_id":"b"}
		{"event":"$identify","distinct_id":"a","properties":{"$anon_distinct_id":"b"}}`))
	deliver(t, i, ingest.Options{Project: other}, captured(t, `{"event":"e","distinct_id":"c"}`))
	before := stateOf(t, c, p)
	for _, id := range []uuid.UUID{uuid.Nil, ingest.PersonUUID(p, "b"), ingest.PersonUUID(other, "c")} {
		_, err := i.Change(t.Context(), ingest.Options{Project: p, Now: now}, ingest.Change{Person: id, Set: properties(t, `{"a":1}`)})
		if !errors.Is(err, ingest.ErrNoPerson) {
			t.Errorf("Change(%s) = %v", id, err)
		}
	}
	if diff := gocmp.Diff(before, stateOf(t, c, p)); diff != "" {
		t.Errorf("something changed (-want +got):\n%s", diff)
	}
}

// TestChangeBrokenOff: a change that breaks off before its row is written is completed by the next writer to the project.
func TestChangeBrokenOff(t *testing.T) {
	c, p := client(t), project()
	intents := ingest.IntentDir(t.TempDir())
	options := ingest.Options{Project: p, Now: now}
	first := ingest.New(c)
	first.Intents = intents
	killed := false
	first.Before(func(string) error {
		if killed {
			return errors.New("the server was killed")
		}
		return nil
	})
	deliver(t, first, options, captured(t, `{"event":"e","distinct_id":"x","properties":{"$set":{"a":1}}}`))
	killed = true
	if _, err := first.Change(t.Context(), options, ingest.Change{Person: ingest.PersonUUID(p, "x"), Set: properties(t, `{"b":2}`)}); err == nil {
		t.Fatal("the change did not break off")
	}
	second := ingest.New(c)
	second.Intents = intents
	deliver(t, second, options, captured(t, `{"event":"f","distinct_id":"x","properties":{"$set":{"c":3}}}`))
	if diff := gocmp.Diff([]string{`{"a":1,"b":2,"c":3} 2`}, propertiesOfAll(t, c, p)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

// TestChangesAtOnce: simultaneous changes and deliveries all take effect.
func TestChangesAtOnce(t *testing.T) {
	c, p := client(t), project()
	i, options := ingest.New(c), ingest.Options{Project: p, Now: now}
	deliver(t, i, options, captured(t, `{"event":"e","distinct_id":"x"}`))
	const each = 8
	var all sync.WaitGroup
	for n := range each {
		records := captured(t, fmt.Sprintf(`{"event":"e%d","distinct_id":"x","properties":{"$set":{"d%d":1}}}`, n, n))
		set := properties(t, fmt.Sprintf(`{"c%d":1}`, n))
		all.Go(func() {
			if _, err := i.Deliver(t.Context(), options, records); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := i.Change(t.Context(), options, ingest.Change{Person: ingest.PersonUUID(p, "x"), Set: set}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	const count = "SELECT length(JSONExtractKeys(toJSONString(argMax(properties, version)))) FROM person GROUP BY id"
	if got := ask(t, c, p, count); len(got) != 1 || got[0] != fmt.Sprintf("[%d]", 2*each) {
		t.Errorf("properties: %v, want %d", got, 2*each)
	}
}
