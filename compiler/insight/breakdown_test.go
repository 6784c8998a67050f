package insight_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestCleanedPaths checks that the cleaning rules of a project apply to paths where a query asks for that, each to the result of the one
// before.
func TestCleanedPaths(t *testing.T) {
	t.Parallel()
	rules := []query.PathCleaning{{Regex: `/\d+`, Alias: "/:id"}, {Regex: "x"}}
	const cleaned = `replaceRegexpAll(replaceRegexpAll(_plainText(properties.$pathname), '/\\d+', '/:id'), 'x', '')`
	for _, tt := range []struct {
		name  string
		field query.Breakdown
		rules []query.PathCleaning
		want  string
	}{
		{"cleaned", query.Breakdown{CleanPath: true}, rules, "left(ifNull(" + cleaned + ", ''), 400)"},
		{"not asked for", query.Breakdown{}, rules, "left(ifNull(_plainText(properties.$pathname), ''), 400)"},
		{"no rules", query.Breakdown{CleanPath: true}, nil, "left(ifNull(_plainText(properties.$pathname), ''), 400)"},
		{
			"before a URL is normalized",
			query.Breakdown{CleanPath: true, NormalizeURL: true},
			rules,
			"left(ifNull(if(" + cleaned + " IS NULL OR " + cleaned + " = '', '', if(empty(replaceRegexpOne(" + cleaned + ", '[/?#]+$', '')), '/', replaceRegexpOne(" +
				cleaned + ", '[/?#]+$', ''))), ''), 400)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := world(t, "UTC", 0)
			w.PathCleaning = tt.rules
			tt.field.Type, tt.field.Property = "event", "$pathname"
			value, err := w.Breakdown(&tt.field)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, hogql.PrintExpr(value)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
	w := world(t, "UTC", 0)
	w.PathCleaning = rules
	filter, err := w.Condition(&query.Condition{Filter: &query.Property{Type: "event", Key: "$pathname", Operator: "is_cleaned_path_exact", Value: "/u/7"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `replaceRegexpAll(replaceRegexpAll(toString(properties.$pathname), '/\\d+', '/:id'), 'x', '') = replaceRegexpAll(replaceRegexpAll('/u/7', '/\\d+', '/:id'), 'x', '')`
	if diff := cmp.Diff(want, hogql.PrintExpr(filter)); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
}

// TestCohorts checks that one cohort is a condition and a constant value, and that with several cohorts an event has those that its person
// is in.
func TestCohorts(t *testing.T) {
	t.Parallel()
	w := world(t, "UTC", 0)
	w.Database.Cohorts = schema.NewCohorts([]schema.Cohort{{ID: 7, Name: "paying", Version: 3}, {ID: 8, Name: "trial", Version: 3}}, false)
	for _, tt := range []struct {
		name         string
		ids          []int64
		value, where string
	}{
		{"everybody", []int64{0}, "'0'", ""},
		{"one", []int64{7}, "'7'", "person_id IN COHORT 7"},
		{"several", []int64{7, 0, 8}, "arrayJoin(arrayFilter(id -> id != '', " +
			"[if(person_id IN COHORT 7, '7', ''), '0', if(person_id IN COHORT 8, '8', '')]))", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			field := query.Breakdown{Type: "cohort"}
			for _, id := range tt.ids {
				field.Cohorts = append(field.Cohorts, query.Cohort{ID: id})
			}
			value, err := w.Breakdown(&field)
			if err != nil {
				t.Fatal(err)
			}
			where, err := w.Cohorts(&query.Breakdowns{Fields: []query.Breakdown{field}})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if where != nil {
				text = hogql.PrintExpr(where)
			}
			if diff := cmp.Diff([]string{tt.value, tt.where}, []string{hogql.PrintExpr(value), text}); diff != "" {
				t.Errorf("value and condition (-want +got):\n%s", diff)
			}
		})
	}
	_, err := w.Cohorts(&query.Breakdowns{Fields: []query.Breakdown{{Type: "cohort", Cohorts: []query.Cohort{{ID: 7}, {ID: 9, At: "breakdownFilter.breakdown.1"}}}}})
	want := &diag.Error{Code: diag.InvalidInput, Attr: "breakdownFilter.breakdown.1", Detail: "Could not find cohort with ID 9"}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("mistake (-want +got):\n%s", diff)
	}
}

// TestCohortNames checks that names come from the project, and that a value that is not an id stays as it is.
func TestCohortNames(t *testing.T) {
	t.Parallel()
	w := world(t, "UTC", 0)
	w.Database.Cohorts = schema.NewCohorts([]schema.Cohort{{ID: 7, Name: "paying", Version: 3}}, true)
	for value, want := range map[string]string{"0": "all users", "7": "paying", "9": "Cohort 9", insight.OtherValue: insight.OtherValue} {
		if got := w.CohortName(value); got != want {
			t.Errorf("CohortName(%q) = %q, want %q", value, got, want)
		}
	}
}
