package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

// TestSum adds up reports in which every field has a value. Bad lines and the line of a property left out say nothing without their file.
func TestSum(t *testing.T) {
	at := func(day int) *time.Time {
		date := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		return &date
	}
	plan, paid := adminapi.Property{Type: "event", Name: "plan", As: "String"}, adminapi.Property{Type: "event", Name: "paid", As: "Numeric"}
	planOfPeople, planAsNumber := adminapi.Property{Type: "person", Name: "plan", As: "String"}, adminapi.Property{Type: "event", Name: "plan", As: "Numeric"}
	first := adminapi.Import{
		File: "a", Format: "csv", DryRun: true, Events: 1, Duplicates: 2, First: at(2), Last: at(3), Persons: 3, People: 4, Merged: 5, Groups: 6, Cohorts: 7, Members: 8,
		TooOld: 9, LeftOut: 10, LeftOutAt: 11, Unknown: []adminapi.Unknown{{Name: "x", Lines: 3, Meant: "y"}, {Name: "z", Lines: 2}}, MoreFields: 12, Columns: []string{"c", "a"},
		Skipped: 13, Bad: 1, BadLines: []adminapi.BadLine{{Line: 1, Reason: "bad"}}, Learned: []adminapi.Property{plan, paid}, GroupTypes: []adminapi.GroupType{{Name: "org"}}, Seconds: 0.5,
	}
	second := adminapi.Import{
		File: "b", Format: "ndjson", DryRun: true, Events: 10, Duplicates: 20, First: at(1), Last: at(2), Persons: 30, People: 40, Merged: 50, Groups: 60, Cohorts: 70, Members: 80,
		TooOld: 90, LeftOut: 100, Untyped: true, Unknown: []adminapi.Unknown{{Name: "z", Lines: 2}, {Name: "w", Lines: 1}}, MoreFields: 120, Columns: []string{"b", "c"},
		Skipped: 130, BadLines: []adminapi.BadLine{}, Learned: []adminapi.Property{planAsNumber, planOfPeople}, GroupTypes: []adminapi.GroupType{{Name: "org"}, {Name: "team", Index: 1}}, Seconds: 1,
	}
	want := adminapi.Import{
		Files: []adminapi.Import{first, second}, Format: "csv", DryRun: true, Events: 11, Duplicates: 22, First: at(1), Last: at(3), Persons: 33, People: 44, Merged: 55, Groups: 66, Cohorts: 77, Members: 88,
		TooOld: 99, LeftOut: 110, Untyped: true, Unknown: []adminapi.Unknown{{Name: "z", Lines: 4}, {Name: "x", Lines: 3, Meant: "y"}, {Name: "w", Lines: 1}}, MoreFields: 132, Columns: []string{"c", "a", "b"},
		Skipped: 143, Bad: 1, BadLines: []adminapi.BadLine{}, Learned: []adminapi.Property{plan, paid, planOfPeople}, GroupTypes: []adminapi.GroupType{{Name: "org"}, {Name: "team", Index: 1}}, Seconds: 1.5,
	}
	if diff := cmp.Diff(want, sum([]adminapi.Import{first, second})); diff != "" {
		t.Errorf("sum() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, sum([]adminapi.Import{first})); diff != "" {
		t.Errorf("sum() of one report (-want +got):\n%s", diff)
	}
}
