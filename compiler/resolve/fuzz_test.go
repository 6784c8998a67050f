package resolve_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// Everything that parses resolves to a guarded query that the printer accepts, or is refused with a mistake.
func FuzzQuery(f *testing.F) {
	for _, text := range nasty {
		f.Add(text)
	}
	for _, text := range []string{
		"with 1 as a, x as (select number as n from numbers(3)) select a, n, {'k': [1, 2][1:]}, case n when 1 then 'a' end from x",
		"select lag(event) over w, sum(1) over (rows between 1 preceding and current row) from events window w as (order by timestamp)",
		"select t.1.2, properties.a[1].b, properties['x'] = 'y', (event = 'a') is not distinct from null from events as t group by cube(1)",
		"select event from events where timestamp between '2024-01-01' and now() - interval 1 week order by 1 with fill limit 5 by event",
		"select columns('a.*'), * exclude (uuid) from (select 1 as ab, 2 as uuid) as t (ab, uuid) array join [1] as z",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2_000 {
			return
		}
		q, err := hogql.Parse(text)
		if err != nil {
			return
		}
		db := database(t, "America/New_York")
		tree, _, _, err := resolve.Query(q, resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
		var found diag.Errors
		switch {
		case errors.As(err, &found):
			return
		case err != nil:
			t.Fatalf("%q: %v is no mistake", text, err)
		}
		c := guardChecker{t: t}
		c.query(tree)
		if _, _, err := sql.Print(tree, db, nil); err != nil && strings.HasPrefix(err.Error(), "BUG") {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
