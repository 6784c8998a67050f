package insight_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestKnown(t *testing.T) {
	t.Parallel()
	w := &insight.World{Database: &schema.Database{GroupTypes: map[string]int{"company": 1}}}
	tests := []struct{ name, text, want string }{
		{"columns and properties", "event = 'a' and properties.x = person.properties.y or $session_id = ''", ""},
		{"sessions and groups", "session.$session_duration > 3 and group_0.properties.a = company.properties.b", ""},
		{"by the name of the table", "events.event = e.event", ""},
		{"parameters of a lambda", "arrayMap((x, y) -> x + y, [1], [2])", ""},
		{"a name of its own", "upper(event) as big", ""},
		{"names of a subquery", "event in (select name from (select event as name from events))", ""},
		{"no name at all", "1 + 1", ""},
		{"a column of the query around it", "actor", "attr: Unable to resolve field: actor"},
		{"in a call, below another name", "concat(event, page.x)", "attr: Unable to resolve field: page"},
		{"a parameter outside its lambda", "arrayMap(x -> x, [y])", "attr: Unable to resolve field: y"},
		{"a slip", "propertes.x = 1", "attr: Unable to resolve field: propertes; properties"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := hogql.ParseExpr(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if mistake, ok := errors.AsType[*diag.Error](w.Known(e, "attr")); ok {
				got = mistake.Attr + ": " + mistake.Detail
				if mistake.Hint != "" {
					got += "; " + mistake.Hint
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}
