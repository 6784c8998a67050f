package insight_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestCleanedPaths: the rules of a project apply to paths where that is asked for, each to what the one before gives.
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

// TestCohorts: everybody is the only cohort, whatever the events are.
func TestCohorts(t *testing.T) {
	t.Parallel()
	w := world(t, "UTC", 0)
	for _, name := range []string{"all", "0"} {
		value, err := w.Breakdown(&query.Breakdown{Type: "cohort", Property: name})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("left('0', 400)", hogql.PrintExpr(value)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	_, err := w.Breakdown(&query.Breakdown{At: "breakdownFilter.breakdown", Type: "cohort", Property: "7"})
	want := &diag.Error{Code: diag.InvalidInput, Attr: "breakdownFilter.breakdown", Detail: "Breakdowns by cohort are not supported, but for 'all'"}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("mistake (-want +got):\n%s", diff)
	}
}
