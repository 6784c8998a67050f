package compiler_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

type compilerParam = sql.Param

// BenchmarkCompile compiles typical queries of customers: the target for a typical query is 100 µs and 300 allocations.
func BenchmarkCompile(b *testing.B) {
	w := world{Timezone: "Europe/Berlin", Event: map[string]string{"amount": "Numeric"}, Variables: map[string]any{"component": "", "year": 0}}
	env := w.env(b)
	benchmarks := []struct{ name, text string }{
		{"count", "select event, count() from events group by event order by count() desc"},
		{"breakdown", "select properties.component c, count() n from events where event = 'commit authored' and c is not null group by c order by n desc limit 2"},
		{"variables", "select timestamp, properties.title from events where properties.component = {variables.component} and toYear(timestamp) = {variables.year} order by timestamp"},
		{"daily", "select toStartOfDay(timestamp) as day, count() as n, uniq(distinct_id) from events where timestamp >= now() - interval 30 day group by day order by day"},
		{"numeric", "select sum(properties.amount), avg(properties.amount), quantile(0.9)(properties.amount) from events where event = 'purchase' and properties.amount > 5"},
		{"person", "select person.properties.email as email, count(distinct person_id) from events where event = '$pageview' group by email order by email limit 1000"},
		{"groups", "select group_0.properties.industry, count() from events where timestamp > '2024-01-01' group by group_0.properties.industry"},
		{"subquery", "select event, n from (select event, count() as n from events group by event) where n > (select avg(m) from (select count() as m from events group by event)) order by n desc"},
		{"join", "select e.event, p.properties.email from events e left join persons p on e.person_id = p.id where e.event in ('a', 'b', 'c')"},
		{"window", "select distinct_id, event, row_number() over (partition by distinct_id order by timestamp) as step, lag(event) over (partition by distinct_id order by timestamp) from events"},
		{"union", "select 'a' as k, count() from events where event = 'a' union all select 'b' as k, count() from events where event = 'b'"},
	}
	for _, bb := range benchmarks {
		q := &query.HogQL{Query: bb.text, Variables: map[string]query.Variable{
			"1": {CodeName: "component", Value: "tsdb", HasValue: true}, "2": {CodeName: "year", Value: int64(2023), HasValue: true},
		}}
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compiler.Compile(q, env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
