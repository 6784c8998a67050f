package trends_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// TestActiveUsersOfGroups checks that only the series says which groups it counts.
func TestActiveUsersOfGroups(t *testing.T) {
	t.Parallel()
	for _, math := range []string{"dau", "weekly_active", "monthly_active"} {
		for fields, groups := range map[string]bool{
			`"series": [{"event": "a", "math": "` + math + `"}], "aggregation_group_type_index": 0`:                             false,
			`"series": [{"event": "a", "math": "` + math + `", "math_group_type_index": 0}]`:                                    true,
			`"series": [{"event": "a", "math": "` + math + `", "math_group_type_index": 0}], "aggregation_group_type_index": 1`: true,
		} {
			built, err := build(fields)
			if err != nil {
				t.Fatal(err)
			}
			text := hogql.Print(built.Query)
			if strings.Contains(text, "$group_0") != groups || strings.Contains(text, "person_id") == groups || strings.Contains(text, "$group_1") {
				t.Errorf("%s counts what it should not:\n%s", fields, text)
			}
		}
	}
}

// TestMathsWithoutTheirField checks that a math counts events if the property, the type of groups or the expression that it needs is missing,
// and that the first times of groups of no type are those of people.
func TestMathsWithoutTheirField(t *testing.T) {
	t.Parallel()
	text := func(fields string) string {
		t.Helper()
		built, err := build(`"series": [{"event": "a"` + fields + `}], "breakdownFilter": {"breakdown": "b"}`)
		if err != nil {
			t.Fatal(err)
		}
		return hogql.Print(built.Query)
	}
	for math, like := range map[string]string{
		"sum": "total", "max": "total", "p90": "total", "unique_group": "total", "hogql": "total",
		"first_time_for_group": "first_time_for_user", "first_matching_event_for_group": "first_matching_event_for_user",
	} {
		if diff := cmp.Diff(text(`, "math": "`+like+`"`), text(`, "math": "`+math+`", "math_multiplier": 2`)); diff != "" {
			t.Errorf("%s (-%s +it):\n%s", math, like, diff)
		}
	}
}
