package hogql_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

var benchmarks = []struct{ name, query string }{
	{"breakdown", "select properties.$browser as browser, count() as views, count(distinct person_id) as people from events " +
		"where event = '$pageview' and timestamp >= now() - interval 7 day group by browser order by views desc limit 20"},
	{"endpoint", "select toStartOfMonth(timestamp) as month, properties.component as component, count() as n from events " +
		"where event = 'commit authored' and properties.component = {variables.component} and toYear(timestamp) = {variables.year} " +
		"group by month, component order by month"},
	{"funnel", "with steps as (select person_id, minIf(timestamp, event = 'signup') as a, minIf(timestamp, event = 'purchase') as b from events " +
		"where timestamp between '2024-01-01' and '2024-02-01' group by person_id) select count() as entered, countIf(b > a) as converted, " +
		"quantile(0.5)(dateDiff('second', a, b)) as median, case when converted = 0 then 0 else converted / entered end as rate from steps " +
		"left join (select id, properties.email as email from persons) p on steps.person_id = p.id where a is not null and email not like '%@example.com'"},
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.query)))
			for b.Loop() {
				if _, err := hogql.Parse(bb.query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPrint(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			q := mustParse(b, bb.query)
			b.ReportAllocs()
			for b.Loop() {
				hogql.Print(q)
			}
		})
	}
}

func BenchmarkRewriteNothing(b *testing.B) {
	q := mustParse(b, benchmarks[2].query)
	r := hogql.Rewriter{Expr: func(e hogql.Expr) hogql.Expr { return e }}
	b.ReportAllocs()
	for b.Loop() {
		r.RewriteQuery(q)
	}
}
