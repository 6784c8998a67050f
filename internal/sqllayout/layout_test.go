package sqllayout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/sqllayout"
)

func lay(t *testing.T, sql string) string {
	t.Helper()
	laid, ok := sqllayout.Lay(sql)
	if !ok {
		t.Fatalf("the layout of a statement loses something:\n%s", sql)
	}
	return laid
}

func TestLay(t *testing.T) {
	const long = "a_name_that_is_so_long_that_few_of_its_kind_fit_on_a_line"
	tests := []struct {
		name, in string
		want     []string
	}{
		{"short", "SELECT f(a, b) FROM (SELECT 1) AS q", []string{"SELECT f(a, b) FROM (SELECT 1) AS q"}},
		{
			"clauses and items",
			"SELECT " + long + ", f(" + long + ") FROM events WHERE a = 1 AND b = 2 GROUP BY a, b ORDER BY a ASC LIMIT 1 BY a",
			[]string{
				"SELECT", "  " + long + ",", "  f(" + long + ")", "FROM events", "WHERE a = 1 AND b = 2", "GROUP BY a, b", "ORDER BY a ASC", "LIMIT 1 BY a",
			},
		},
		{
			"nested, joined",
			"WITH x AS (SELECT 1 AS one) SELECT a FROM (SELECT " + long + " FROM a UNION ALL SELECT " + long + " FROM b) AS q ANY LEFT JOIN x ON q.a = x.one",
			[]string{
				"WITH x AS (SELECT 1 AS one)", "SELECT a", "FROM (", "  SELECT " + long, "  FROM a", "  UNION ALL", "  SELECT " + long, "  FROM b", ") AS q",
				"ANY LEFT JOIN x ON q.a = x.one",
			},
		},
		{
			"arguments and conditions",
			"SELECT if(" + long + " = 1 OR " + long + " = 2 OR " + long + " = 3, [" + long + ", " + long + "], []) AS a WHERE " + long + " = 1 AND " + long + " = 2",
			[]string{
				"SELECT if(",
				"  " + long + " = 1",
				"    OR " + long + " = 2",
				"    OR " + long + " = 3,",
				"  [" + long + ", " + long + "],",
				"  []",
				") AS a",
				"WHERE " + long + " = 1",
				"  AND " + long + " = 2",
			},
		},
		{
			"what is quoted stays whole",
			"SELECT `a, (b` AS " + long + ", '\\' FROM ) (' AS " + long + ", 3 FROM events",
			[]string{"SELECT", "  `a, (b` AS " + long + ",", "  '\\' FROM ) (' AS " + long + ",", "  3", "FROM events"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := lay(t, tt.in)
			if diff := cmp.Diff(tt.want, strings.Split(got, "\n")); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if joined := sqllayout.Joined(got + "\n"); joined != tt.in {
				t.Errorf("joined:\n%s\nwant:\n%s", joined, tt.in)
			}
		})
	}
}

// TestLayKeepsDifferences: statements that differ on one line differ over several.
func TestLayKeepsDifferences(t *testing.T) {
	long := strings.Repeat(", name", 30)
	seen := map[string]string{}
	for _, sql := range []string{
		"SELECT f(a" + long + ") FROM t", "SELECT f( a" + long + ") FROM t", "SELECT f(a" + long + " ) FROM t", "SELECT f (a" + long + ") FROM t",
		"SELECT  f(a" + long + ") FROM t", "SELECT f(a" + long + ")  FROM t", "SELECT f(a" + long + ") FROM t ", " SELECT f(a" + long + ") FROM t",
		"SELECT f(a" + long + ")FROM t", "SELECT f(a" + strings.ReplaceAll(long, ", ", ",") + ") FROM t", "SELECT f[a" + long + "] FROM t",
	} {
		laid := lay(t, sql)
		if other, ok := seen[laid]; ok {
			t.Errorf("%q and %q have one layout", sql, other)
		}
		seen[laid] = sql
	}
}

// FuzzLay breaks any statement into lines, and joins them again.
func FuzzLay(f *testing.F) {
	f.Add("SELECT f(a, [1, 2]) FROM (SELECT `x y`, 'it\\'s' FROM t WHERE a = 1 AND b IN ({p0:String})) AS q", uint8(3))
	f.Add("a ( b ) [ ]  c )( ' \\", uint8(40))
	f.Fuzz(func(t *testing.T, sql string, times uint8) {
		if strings.Contains(sql, "\n") || len(sql) > 500 {
			return
		}
		lay(t, strings.Repeat(sql, int(times%50)+1))
	})
}

// TestLayLeavesAsIs: a statement that could not be restored, or is too long, is unchanged.
func TestLayLeavesAsIs(t *testing.T) {
	for _, sql := range []string{"SELECT 'a\n  b' FROM " + strings.Repeat("name, ", 30) + "x", strings.Repeat("a, ", sqllayout.MaxBytes/3+1)} {
		if laid, ok := sqllayout.Lay(sql); ok || laid != sql {
			t.Errorf("%.40q is laid out", sql)
		}
	}
}
