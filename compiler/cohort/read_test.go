package cohort_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// all puts leaves below an AND.
func all(leaves ...string) string { return tree("AND", leaves...) }

func tree(typ string, members ...string) string {
	return `{"properties": ` + group(typ, members...) + `}`
}

func group(typ string, members ...string) string {
	return `{"type": "` + typ + `", "values": [` + strings.Join(members, ", ") + `]}`
}

const (
	plan     = `{"type": "person", "key": "plan", "operator": "exact", "value": "pro"}`
	viewed   = `{"type": "behavioral", "key": "view", "value": "performed_event", "event_type": "events", "time_value": 30, "time_interval": "day"}`
	outside  = `{"type": "cohort", "key": "id", "value": 5, "negation": true}`
	sequence = `{"type": "behavioral", "key": "7", "value": "performed_event_sequence", "event_type": "actions", "time_value": "30",
		"time_interval": "day", "seq_event": 8, "seq_event_type": "actions", "seq_time_value": 2, "seq_time_interval": "hour"}`
)

// behaved returns a behavioral leaf with additional fields.
func behaved(value, more string) string {
	return fmt.Sprintf(`{"type": "behavioral", "key": "view", "event_type": "events", "value": %q, %s}`, value, more)
}

func TestRead(t *testing.T) {
	t.Parallel()
	month := cohort.Window{Span: cohort.Span{Count: 30, Unit: cohort.Day}}
	at := func(i int, negated bool) cohort.Leaf {
		return cohort.Leaf{At: fmt.Sprintf("filters.properties.values.%d", i), Negated: negated}
	}
	filters := tree("AND", plan, viewed, outside, sequence,
		`{"type": "person_metadata", "key": "created_at", "operator": "is_date_after", "value": "-7d", "negation": false}`,
		group("OR", behaved("performed_event_multiple", `"explicit_datetime": "2024-01-01", "explicit_datetime_to": "2024-02-01", "operator": "exact", "operator_value": 3,
			"event_filters": [{"type": "event", "key": "browser", "operator": "is_set", "value": null}, {"type": "hogql", "key": "person_id in cohort 9 and matchesAction(4)"}]`)))
	want := &cohort.Group{All: []cohort.Node{
		&cohort.Person{Leaf: at(0, false), Filter: &query.Condition{
			At: "filters.properties.values.0", Filter: &query.Property{Type: "person", Key: "plan", Operator: "exact", Value: "pro"},
		}},
		&cohort.Behavior{Leaf: at(1, false), Kind: cohort.Performed, Event: cohort.Entity{Event: "view"}, Window: month},
		&cohort.Member{Leaf: at(2, true), Cohort: 5},
		&cohort.Behavior{
			Leaf: at(3, false), Kind: cohort.Sequence, Event: cohort.Entity{Action: 7}, Then: cohort.Entity{Action: 8}, Window: month,
			Recent: cohort.Span{Count: 2, Unit: cohort.Hour},
		},
		&cohort.Created{Leaf: at(4, false), Filter: &query.Condition{
			At: "filters.properties.values.4", Filter: &query.Property{Type: "person_metadata", Key: "created_at", Operator: "is_date_after", Value: "-7d"},
		}},
		&cohort.Group{Or: true, All: []cohort.Node{&cohort.Behavior{
			Leaf: cohort.Leaf{At: "filters.properties.values.5.values.0"}, Kind: cohort.Multiple, Event: cohort.Entity{Event: "view"},
			Window: cohort.Window{From: "2024-01-01", To: "2024-02-01"}, Operator: "eq", Times: 3,
			Filters: &query.Condition{At: "filters.properties.values.5.values.0.event_filters", All: []query.Condition{
				{
					At:     "filters.properties.values.5.values.0.event_filters.0",
					Filter: &query.Property{Type: "event", Key: "browser", Operator: "is_set"},
				},
				{
					At:     "filters.properties.values.5.values.0.event_filters.1",
					Filter: &query.Property{Type: "hogql", Key: "person_id in cohort 9 and matchesAction(4)"},
				},
			}},
		}}},
	}}
	got, err := cohort.Read(json.RawMessage(filters), json.RawMessage(`[{"properties": 5}]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cohort.Node(want), got.Root); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{5, 9}, cohort.Cohorts(got)); diff != "" {
		t.Errorf("Cohorts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{4, 7, 8}, cohort.Actions(got)); diff != "" {
		t.Errorf("Actions (-want +got):\n%s", diff)
	}
}

func TestReadNobody(t *testing.T) {
	t.Parallel()
	for _, groups := range []string{"", "null", "[]"} {
		for _, filters := range []string{"", "null"} {
			d, err := cohort.Read(json.RawMessage(filters), json.RawMessage(groups))
			if err != nil || d.Root != nil {
				t.Errorf("filters %q and groups %q give %+v, %v, want nobody", filters, groups, d, err)
			}
		}
	}
}

// TestReadTestAccounts: that test accounts are not excluded changes nothing.
func TestReadTestAccounts(t *testing.T) {
	t.Parallel()
	want, err := cohort.Read(json.RawMessage(all(plan)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"false", "null"} {
		got, err := cohort.Read(json.RawMessage(`{"properties": `+group("AND", plan)+`, "filterTestAccounts": `+value+`}`), nil)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

// TestReadOneDate: a list of one date is that date, as in queries.
func TestReadOneDate(t *testing.T) {
	t.Parallel()
	for _, operator := range []string{"is_date_after", "is_date_before", "is_date_exact"} {
		for value, want := range map[string]bool{`["2024-01-15"]`: true, `["-7d"]`: true, `["soon"]`: false, `["2024-01-15", "2024-01-16"]`: false, `[null]`: false} {
			_, err := cohort.Read(json.RawMessage(all(fmt.Sprintf(`{"type": "person", "key": "x", "operator": %q, "value": %s}`, operator, value))), nil)
			if got := err == nil; got != want {
				t.Errorf("%s %s: %v", operator, value, err)
			}
		}
	}
}

// TestReadGroups: groups, the older form, are converted to filters.
func TestReadGroups(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, groups, want string }{
		{"none", `[]`, `{"properties":{}}`},
		{
			"properties", `[{"properties": [{"key": "a", "value": "1"}, {"key": "b", "type": "event", "operator": "is_set"}, {"type": "cohort", "key": "id", "value": 5}]}]`,
			tree("OR", group(
				"AND",
				`{"type": "person", "key": "a", "value": "1", "operator": "exact"}`, `{"type": "person", "key": "b", "operator": "is_set"}`,
				`{"type": "cohort", "key": "id", "value": 5}`,
			)),
		},
		{
			"an object", `[{"properties": {"b": true, "a": 5}}]`,
			tree("OR", group(
				"AND",
				`{"type": "person", "key": "a", "value": 5, "operator": "exact"}`, `{"type": "person", "key": "b", "value": true, "operator": "exact"}`,
			)),
		},
		{"a tree", `[{"properties": ` + group("OR", plan) + `}]`, tree("OR", group("OR", plan))},
		{
			"events", `[{"event_id": "view", "days": "3"}, {"action_id": 4, "count": 2, "count_operator": "lte"}, {"event_id": "x", "count": 0}]`,
			tree(
				"OR",
				group("AND", `{"type": "behavioral", "key": "view", "event_type": "events", "value": "performed_event", "time_value": "3", "time_interval": "day"}`),
				group("AND", `{"type": "behavioral", "key": 4, "event_type": "actions", "value": "performed_event_multiple", "time_value": 365,
					"time_interval": "day", "operator_value": 2, "operator": "lte"}`),
				group("AND", `{"type": "behavioral", "key": "x", "event_type": "events", "value": "performed_event", "time_value": 365, "time_interval": "day"}`),
			),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cohort.FromGroups(json.RawMessage(tt.groups))
			if err != nil {
				t.Fatal(err)
			}
			var gotTree, wantTree any
			if json.Unmarshal(got, &gotTree) != nil || json.Unmarshal([]byte(tt.want), &wantTree) != nil {
				t.Fatal("no JSON")
			}
			if diff := cmp.Diff(wantTree, gotTree); diff != "" {
				t.Errorf("FromGroups (-want +got):\n%s", diff)
			}
			d, err := cohort.Read(nil, json.RawMessage(tt.groups))
			if err != nil || (d.Root == nil) != (tt.name == "none") {
				t.Errorf("Read gives %+v, %v", d, err)
			}
		})
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	first := "filters.properties.values.0"
	window := `"time_value": 30, "time_interval": "day"`
	tests := []struct{ name, filters, want string }{
		{"a text", `"[Slkasd=lkxcn]"`, "filters: Must contain a 'properties' key with type and values"},
		{"no properties", `{}`, "filters: Must contain a 'properties' key with type and values"},
		{"a list", `{"properties": []}`, "filters: Must contain a 'properties' key with type and values"},
		{"broken", `{"properties": `, "JSON parse error - unexpected end of JSON input: line 1 column 16 (char 15)"},
		{"an unknown key", `{"properties": ` + group("OR", plan) + `, "x": 1}`, "filters.x: Unknown key 'x' in the filters of a cohort"},
		{"test accounts", `{"properties": ` + group("OR", plan) + `, "filterTestAccounts": true}`, "filters.filterTestAccounts: A cohort cannot exclude test accounts. Add filters that exclude them to 'properties'"},
		{"test accounts that are no boolean", `{"properties": ` + group("OR", plan) + `, "filterTestAccounts": {}}`, "filters.filterTestAccounts: filterTestAccounts must be a boolean"},
		{"the type of a group", tree("XOR", plan), "filters.properties.type: The type of a group of filters is 'AND' or 'OR'"},
		{"an empty group", all(), "filters.properties.values: A group of filters needs at least one filter"},
		{"an empty group below", all(group("OR")), first + ".values: A group of filters needs at least one filter"},
		{"a key of a group", `{"properties": {"type": "OR", "values": [` + plan + `], "negation": true}}`, "filters.properties.negation: Unknown key 'negation' in a group of filters"},
		{"no object", all("5"), first + ": A filter of a cohort is an object"},
		{"no type", all(`{"key": "x"}`), first + ".type: A filter of a cohort needs a type: person, person_metadata, cohort or behavioral"},
		{
			"a type of events", all(`{"type": "event", "key": "x", "value": 1, "operator": "exact"}`),
			first + ".type: A cohort cannot have a filter of type 'event': use person, person_metadata, cohort or behavioral",
		},
		{"too deep", `{"properties": ` + strings.Repeat(`{"type": "OR", "values": [`, 11) + plan + strings.Repeat("]}", 11) + `}`, first + strings.Repeat(".values.0", 9) + ": Groups of filters may be nested 10 levels deep"},
		{"too many", tree("OR", strings.Split(strings.Repeat(plan+"\n", 201), "\n")[:201]...), "filters.properties.values.200: A cohort can have at most 200 filters"},

		{"a person without both", all(`{"type": "person", "key": "x"}`), first + ": Missing required keys for person filter: value, operator"},
		{"a person without a value", all(`{"type": "person", "key": "x", "operator": "exact"}`), first + ": Missing required keys for person filter: value"},
		{"no values", all(`{"type": "person", "key": "x", "operator": "exact", "value": []}`), first + ": Missing required keys for person filter: value"},
		{"a person without an operator", all(`{"type": "person", "key": "x", "value": "1"}`), first + ": Missing required keys for person filter: operator"},
		{"a key of a person", all(`{"type": "person", "key": "x", "operator": "is_set", "group_type_index": 0}`), first + ".group_type_index: Unknown key 'group_type_index' in a person filter"},
		{"an object as value", all(`{"type": "person", "key": "x", "operator": "exact", "value": {}}`), first + ".value: Input should be a string, a number, a boolean or a list of them"},
		{
			"no date", all(`{"type": "person", "key": "x", "operator": "is_date_after", "value": "soon"}`),
			first + ".value: Invalid date value 'soon' for operator 'is_date_after'. Expected a relative date (e.g., '-7d', '30d') or an ISO 8601 date (e.g., '2024-01-15').",
		},
		{"negation", all(`{"type": "person", "key": "x", "operator": "is_set", "negation": 1}`), first + ".negation: Input should be a valid boolean"},
		{
			"another column", all(`{"type": "person_metadata", "key": "id", "operator": "is_set"}`),
			first + ".key: Unsupported person_metadata key 'id'. Allowed keys: created_at.",
		},
		{"a cohort without a value", all(`{"type": "cohort", "key": "id"}`), first + ": Missing required keys for cohort filter: value"},
		{"a cohort by name", all(`{"type": "cohort", "key": "id", "value": "big"}`), first + ".value: A cohort filter has the number of a cohort as its value, not 'big'"},
		{"a cohort of 0", all(`{"type": "cohort", "key": "id", "value": 0}`), first + ".value: A cohort filter has the number of a cohort as its value, not '0'"},
		{"another key", all(`{"type": "cohort", "key": "name", "value": 5}`), first + ".key: A cohort filter has the key 'id', not 'name'"},

		{"no event type", all(`{"type": "behavioral", "key": "x", "value": "performed_event"}`), first + ": Missing required keys for behavioral filter: event_type"},
		{"another event type", all(`{"type": "behavioral", "key": "x", "value": "performed_event", "event_type": "pages", ` + window + `}`), first + ".event_type: Event type must be 'events' or 'actions'"},
		{"an action by name", all(`{"type": "behavioral", "key": "x", "value": "performed_event", "event_type": "actions", ` + window + `}`), first + ".key: The key of an action is its number, not 'x'"},
		{"an unknown behavior", all(behaved("performed", window)), first + ".value: Unknown behavior 'performed': use performed_event, performed_event_multiple, " +
			"performed_event_first_time, performed_event_sequence, stopped_performing_event, restarted_performing_event or performed_event_regularly"},
		{"no window", all(behaved("performed_event", `"time_value": 3`)), first + ": Missing required keys for behavioral filter: time_interval (of performed_event)"},
		{"a window of 0", all(behaved("performed_event", `"time_value": 0, "time_interval": "day"`)), first + ".time_value: Input should be an integer from 1 to 100000"},
		{"a part of a day", all(behaved("performed_event", `"time_value": 1.5, "time_interval": "day"`)), first + ".time_value: Input should be an integer from 1 to 100000"},
		{"another interval", all(behaved("performed_event", `"time_value": 1, "time_interval": "d"`)), first + ".time_interval: Invalid interval: 'd'. It is minute, hour, day, week, month or year"},
		{"no date of begin", all(behaved("performed_event", `"explicit_datetime": "soon"`)), first + ".explicit_datetime: Invalid date 'soon'. Expected a relative date (e.g., '-7d', '-3m') or an ISO 8601 date (e.g., '2024-01-15')."},
		{"a date too early", all(behaved("performed_event", `"explicit_datetime": "1850-01-01"`)), first + ".explicit_datetime: Invalid date '1850-01-01'. Expected a relative date (e.g., '-7d', '-3m') or an ISO 8601 date (e.g., '2024-01-15')."},
		{"an end alone", all(behaved("performed_event", window+`, "explicit_datetime_to": "2024-01-01"`)), first + ".explicit_datetime_to: The field explicit_datetime_to needs explicit_datetime too"},
		{"no number", all(behaved("performed_event_multiple", window)), first + ": Missing required keys for behavioral filter: operator_value (of performed_event_multiple)"},
		{"a number of 0", all(behaved("performed_event_multiple", window+`, "operator_value": 0`)), first + ".operator_value: Input should be an integer from 1 to 100000"},
		{"another operator", all(behaved("performed_event_multiple", window+`, "operator_value": 1, "operator": "is_not"`)), first + ".operator: Input should be 'gte', 'lte', 'gt', 'lt', 'eq' or 'exact'"},
		{"no second event", all(behaved("performed_event_sequence", window+`, "seq_time_value": 1, "seq_time_interval": "day"`)), first + ": Missing required keys for behavioral filter: seq_event, seq_event_type (of performed_event_sequence)"},
		{"a longer recent window", all(behaved("stopped_performing_event", window+`, "seq_time_value": 2, "seq_time_interval": "month"`)), first + ".seq_time_value: The window of seq_time_value cannot be longer than that of time_value"},
		{"restarted since a date", all(behaved("restarted_performing_event", `"explicit_datetime": "2024-01-01", "seq_time_value": 2, "seq_time_interval": "month"`)), first + ": Missing required keys for behavioral filter: time_value, time_interval (of restarted_performing_event)"},
		{"more periods than there are", all(behaved("performed_event_regularly", window+`, "operator_value": 1, "min_periods": 3, "total_periods": 2`)), first + ".min_periods: min_periods (3) cannot be greater than total_periods (2)"},
		{"a key of a behavior", all(behaved("performed_event", window+`, "days": 5`)), first + ".days: Unknown key 'days' in a behavioral filter"},
		{"no list of filters", all(behaved("performed_event", window+`, "event_filters": {}`)), first + ".event_filters: Input should be a list of at most 200 filters"},
		{"a filter on people", all(behaved("performed_event", window+`, "event_filters": [`+plan+`]`)), first + ".event_filters.0.type: A filter of events has the type event, element or hogql, not 'person'"},
		{"a key of a filter", all(behaved("performed_event", window+`, "event_filters": [{"type": "event", "key": "a", "operator": "is_set", "negation": true}]`)), first + ".event_filters.0.negation: Unknown key 'negation' in a filter of events"},
		{
			"broken HogQL", all(behaved("performed_event", window+`, "event_filters": [{"type": "hogql", "key": "1 +"}]`)),
			first + ".event_filters.0.key: The HogQL expression of a filter is invalid: 3:3: Unexpected end of the expression, expected an expression",
		},
		{
			"a cohort's name in HogQL", all(behaved("performed_event", window+`, "event_filters": [{"type": "hogql", "key": "person_id in cohort 'big'"}]`)),
			first + ".event_filters.0.key: The HogQL expression of a cohort's filter gives cohorts and actions by their numbers, not by their names",
		},

		{"a negated root", all(outside), "filters.properties: Top level condition cannot be negated"},
		{"an alternative that is negated", tree("OR", plan, outside), "filters.properties: Top level condition cannot be negated"},
		{"negated below", all(group("OR", plan, outside), group("AND", outside, outside)), "filters.properties: Top level condition cannot be negated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := cohort.Read(json.RawMessage(tt.filters), nil)
			if got := mistake(t, err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestReadGroupsMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ groups, want string }{
		{`{}`, "groups: Input should be a valid list"},
		{`[5]`, "groups.0: A group of a cohort is an object"},
		{`[{"properties": [{"key": "a", "value": 1}]}, {}]`, "groups.1: A group of a cohort needs properties, an action_id or an event_id"},
		{`[{"properties": [{"key": "a"}]}]`, "groups.0: Missing required keys for person filter: value"},
		{`[{"event_id": "a", "days": -1}]`, "groups.0.time_value: Input should be an integer from 1 to 100000"},
	}
	for _, tt := range tests {
		t.Run(tt.groups, func(t *testing.T) {
			t.Parallel()
			_, err := cohort.Read(nil, json.RawMessage(tt.groups))
			if got := mistake(t, err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// mistake returns the author's mistake, preceded by its field. Any other result fails the test.
func mistake(t *testing.T, err error) string {
	t.Helper()
	found, ok := errors.AsType[*diag.Error](err)
	if !ok {
		t.Fatalf("got %v, want a mistake of the author", err)
	}
	return found.Error()
}

// FuzzRead: any JSON gives a definition, or a mistake of its author.
func FuzzRead(f *testing.F) {
	for _, filters := range []string{all(plan, viewed, outside, sequence), tree("OR", group("AND", viewed, plan), plan), `{"properties": {}}`, `"x"`} {
		f.Add(filters, `[{"properties": {"a": 1}}]`)
	}
	f.Add("", `[{"properties": [{"key": "a", "value": "1"}]}, {"event_id": "view", "days": "3"}, {"action_id": 4, "count": 2, "count_operator": "lte"}]`)
	f.Fuzz(func(t *testing.T, filters, groups string) {
		d, err := cohort.Read(json.RawMessage(filters), json.RawMessage(groups))
		if err != nil {
			mistake(t, err)
			return
		}
		for _, id := range append(cohort.Cohorts(d), cohort.Actions(d)...) {
			if id < 0 {
				t.Errorf("the number %d in %s %s", id, filters, groups)
			}
		}
	})
}
