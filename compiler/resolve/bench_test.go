package resolve_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func BenchmarkQuery(b *testing.B) {
	for name, text := range map[string]string{
		"breakdown": "select properties.component as c, count() as n from events where event = 'commit authored' and " +
			"timestamp >= '2024-01-01' and c is not null group by c order by n desc limit 10",
		"joins": "select toStartOfWeek(e.timestamp) as week, p.properties.email, e.group_0.properties.name, count(distinct e.person_id) " +
			"from events e join persons p on e.person_id = p.id where e.event in ('a', 'b') group by 1, 2, 3",
	} {
		b.Run(name, func(b *testing.B) {
			q, err := hogql.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			db := &schema.Database{Project: project}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := resolve.Query(q, resolve.World{Database: db, Now: noon, Spend: budget.New(nil)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
