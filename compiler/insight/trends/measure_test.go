package trends_test

import (
	"strings"
	"testing"

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
