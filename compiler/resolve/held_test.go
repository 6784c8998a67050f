package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// TestHeldColumns: the rows of a held table have the values of the columns that are read, and only these count towards its size.
func TestHeldColumns(t *testing.T) {
	t.Parallel()
	row := []any{1, "short", 7, "name", nil, nil, []byte(strings.Repeat("q", 1<<20)), nil, 0, 1, 0, nil, nil, nil, nil, nil}
	other := append([]any{2}, row[1:]...)
	for _, tt := range []struct{ name, query, want string }{
		{"one", "select id from system.insights", `[[1,"",0,null,null,null,null,null,0,0,0,null,null,null,null,null],[2,"",0,null,null,null,null,null,0,0,0,null,null,null,null,null]]`},
		{"in a condition", "select count() from system.insights as i where i.name = 'x' and saved", `[[0,"",0,"name",null,null,null,null,0,1,0,null,null,null,null,null],[0,"",0,"name",null,null,null,null,0,1,0,null,null,null,null,null]]`},
		{"none", "select count() from system.insights", `[[0,"",0,null,null,null,null,null,0,0,0,null,null,null,null,null],[0,"",0,null,null,null,null,null,0,0,0,null,null,null,null,null]]`},
		{"a large one", "select query from system.insights", ""},
		{"a field of a large one", "select query.kind from system.insights", ""},
		{"all", "select * from system.insights", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db, supplied := database(t, "UTC"), 0
			db.Held = func(string) ([][]any, error) {
				supplied++
				return [][]any{row, other}, nil
			}
			tree, _, _, err := resolve.Query(mustParse(t, tt.query+" union all "+tt.query), resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
			if err != nil {
				t.Fatal(err)
			}
			_, params, err := sql.Print(tree, db, nil)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, p := range params {
				if strings.HasPrefix(p.Value, "[[") {
					texts = append(texts, p.Value)
				}
			}
			if len(texts) != 1 || supplied != 1 {
				t.Fatalf("there are %d texts, and the rows were supplied %d times", len(texts), supplied)
			}
			if tt.want == "" {
				if len(texts[0]) < 2<<20 {
					t.Errorf("the text has %d bytes", len(texts[0]))
				}
				return
			}
			if diff := cmp.Diff(tt.want, texts[0]); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeldTooLarge: the columns that are read are bounded.
func TestHeldTooLarge(t *testing.T) {
	t.Parallel()
	db := database(t, "UTC")
	row := []any{1, "short", 7, "name", nil, nil, []byte(strings.Repeat("q", 1<<20)), nil, 0, 1, 0, nil, nil, nil, nil, nil}
	db.Held = func(string) ([][]any, error) { return [][]any{row, row, row, row}, nil }
	for query, want := range map[string]string{
		"select name from system.insights":  "",
		"select query from system.insights": "18:33: Table `system.insights` is too large to be queried: the columns that are read take more than 4194304 bytes",
	} {
		_, _, _, err := resolve.Query(mustParse(t, query), resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
