package cohort_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// compile reads filters and compiles them for a project with cohort 5, which is computed, and cohort 6, which is deleted.
func compile(filters string, zone *time.Location) (*compiler.Compiled, error) {
	d, err := cohort.Read(json.RawMessage(filters), nil)
	if err != nil {
		return nil, err
	}
	return compiler.CompileCohort(d, compiler.Env{Now: time.Date(2024, 5, 31, 13, 45, 10, 0, time.UTC), Database: &schema.Database{
		Project: 7, Location: zone, Cohorts: schema.NewCohorts([]schema.Cohort{{ID: 5, Version: 3}, {ID: 6, Name: "old", Deleted: true}}, false),
	}})
}

// TestWindows: where windows begin and end, in the project's zone.
func TestWindows(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, leaf string
		want       []string
	}{
		{"minutes", behaved("performed_event", `"time_value": 90, "time_interval": "minute"`), []string{"2024-05-31 08:15:10.000000", "2024-05-31 23:59:59.999999"}},
		{"hours", behaved("performed_event", `"time_value": 3, "time_interval": "hour"`), []string{"2024-05-31 06:00:00.000000", "2024-05-31 23:59:59.999999"}},
		{"months", behaved("performed_event", `"time_value": 3, "time_interval": "month"`), []string{"2024-02-29 00:00:00.000000", "2024-05-31 23:59:59.999999"}},
		{"longer than history", behaved("performed_event", `"time_value": 100000, "time_interval": "year"`), []string{"1900-01-01 00:00:00.000000", "2024-05-31 23:59:59.999999"}},
		{"as text", behaved("performed_event", `"time_value": "2", "time_interval": "week"`), []string{"2024-05-17 00:00:00.000000", "2024-05-31 23:59:59.999999"}},
		{
			"dates", behaved("performed_event", `"explicit_datetime": "2024-01-01T10:00:00", "explicit_datetime_to": "2024-01-31T00:00:00"`),
			[]string{"2024-01-01 00:00:00.000000", "2024-01-31 23:59:59.999999"},
		},
		{"relative dates", behaved("performed_event", `"explicit_datetime": "-30d", "explicit_datetime_to": "-7d"`), []string{"2024-05-01 00:00:00.000000", "2024-05-24 23:59:59.999999"}},
		{
			"how often", behaved("performed_event_multiple", `"operator_value": 1, "time_value": 3, "time_interval": "month"`),
			[]string{"2024-02-29 09:45:10.000000", "2024-05-31 09:45:10.000000"},
		},
		{
			"how often between dates", behaved("performed_event_multiple", `"operator_value": 1, "explicit_datetime": "2024-01-01", "explicit_datetime_to": "2024-01-31"`),
			[]string{"2024-01-01 00:00:00.000000", "2024-01-31 23:59:59.999999"},
		},
		{
			"how often since hours", behaved("performed_event_multiple", `"operator_value": 1, "explicit_datetime": "-5h"`),
			[]string{"2024-05-31 04:45:10.000000", "2024-05-31 09:45:10.000000"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compiled, err := compile(all(tt.leaf), zone)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range compiled.Params {
				if strings.HasPrefix(p.Value, "20") || strings.HasPrefix(p.Value, "19") {
					got = append(got, p.Value)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBuildMistakes: mistakes that only Build can find are attributed to the leaf.
func TestBuildMistakes(t *testing.T) {
	t.Parallel()
	const first = "filters.properties.values.0"
	tests := []struct{ name, leaf, want string }{
		{"no cohort", `{"type": "cohort", "key": "id", "value": 9}`, first + ".value: Could not find cohort with ID 9"},
		{"a deleted cohort", `{"type": "cohort", "key": "id", "value": 6}`, first + `.value: Cohort "old" (ID 6) was deleted.`},
		{"no action", strings.Replace(sequence, `"7"`, "7", 1), first + ".key: Action ID 7 does not exist!"},
		{
			"no number", `{"type": "person", "key": "age", "operator": "gt", "value": "old"}`,
			first + ": The property filter on 'age' has operator 'gt', which is not supported with its value",
		},
		{
			"no column", behaved("performed_event", `"time_value": 1, "time_interval": "day", "event_filters": [{"type": "hogql", "key": "nothing = 1"}]`),
			first + ".event_filters.0.key: Unable to resolve field: nothing",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := compile(all(tt.leaf), time.UTC)
			if got := mistake(t, err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestLarge: the largest definition that can be read gives a query or a clear mistake.
func TestLarge(t *testing.T) {
	t.Parallel()
	filters := strings.Repeat(`{"type": "event", "key": "a", "operator": "exact", "value": "b"}, `, 199) + `{"type": "event", "key": "a", "operator": "is_set"}`
	for name, leaf := range map[string]string{
		"behaviors": viewed, "people": plan, "cohorts": `{"type": "cohort", "key": "id", "value": 5}`,
		"filters": behaved("performed_event", `"time_value": 1, "time_interval": "day", "event_filters": [`+filters+`]`),
	} {
		for _, typ := range []string{"AND", "OR"} {
			leaves := make([]string, 200)
			for i := range leaves {
				leaves[i] = strings.Replace(leaf, `"view"`, `"view `+strings.Repeat("x", i)+`"`, 1)
			}
			if _, err := compile(tree(typ, leaves...), time.UTC); err != nil && compiler.Mistakes(err) == nil {
				t.Errorf("%s joined by %s: %v", name, typ, err)
			} else if err != nil {
				t.Logf("%s joined by %s: %.200s", name, typ, err)
			}
		}
	}
}

// FuzzBuild: every definition that can be read gives a query, or a mistake of its author.
func FuzzBuild(f *testing.F) {
	for _, filters := range []string{
		all(plan, viewed, `{"type": "cohort", "key": "id", "value": 5, "negation": true}`), tree("OR", group("AND", viewed, plan), plan),
		all(behaved("performed_event_regularly", `"time_value": 1, "time_interval": "month", "operator_value": 2, "min_periods": 1, "total_periods": 3`)),
		all(behaved("restarted_performing_event", `"time_value": 9, "time_interval": "day", "seq_time_value": 1, "seq_time_interval": "day"`)),
	} {
		f.Add(filters)
	}
	f.Fuzz(func(t *testing.T, filters string) {
		if _, err := compile(filters, time.UTC); err != nil && compiler.Mistakes(err) == nil {
			t.Errorf("%s: %v", filters, err)
		}
	})
}
