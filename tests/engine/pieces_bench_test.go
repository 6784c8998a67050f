package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// benchmarkProject is the project of the events of benchmarks.
const benchmarkProject = 390

// BenchmarkPieces compares the time that the engine takes for a query with that for all of its pieces, and for the last one alone. The three
// take turns; each is as fast as its fastest run.
func BenchmarkPieces(b *testing.B) {
	const events, days = 300_000, 90
	execute(b, dsn, fmt.Sprintf("INSERT INTO events (uuid, event, properties, timestamp, team_id, distinct_id, person_id) SELECT generateUUIDv4(), "+
		"if(number %% 3 = 0, 'sign up', '$pageview'), concat('{\"$browser\": \"browser ', toString(cityHash64(number) %% 30), '\", \"n\": ', toString(number %% 50), '}'), "+
		"toDateTime64('2024-01-01 00:00:00', 6, 'UTC') + toIntervalSecond(intDiv(number * %d, %d)), %d, toString(cityHash64(number) %% 20000), "+
		"toUUID(concat('00000000-0000-0000-0000-', leftPad(toString(cityHash64(number) %% 20000), 12, '0'))) FROM numbers(%d)", days*24*60*60, events, benchmarkProject, events))
	dates := `"dateRange": {"date_from": "2024-01-01", "date_to": "2024-03-30"}`
	for name, query := range map[string]string{
		"trend":     `{"kind": "TrendsQuery", "series": [{"event": "$pageview"}], ` + dates + `}`,
		"people":    `{"kind": "TrendsQuery", "series": [{"event": "$pageview", "math": "dau"}], ` + dates + `}`,
		"breakdown": `{"kind": "TrendsQuery", "series": [{"event": "$pageview"}], "breakdownFilter": {"breakdowns": [{"property": "$browser"}]}, ` + dates + `}`,
		"lifecycle": `{"kind": "LifecycleQuery", "series": [{"event": "$pageview"}], ` + dates + `}`,
		"hogql": `{"kind": "HogQLQuery", "query": "select toDate(timestamp) as day, properties.$browser, count() from events where timestamp >= '2024-01-01' ` +
			`and timestamp < '2024-03-31' group by 1, 2 order by 1, 2 limit 5000"}`,
	} {
		b.Run(name, func(b *testing.B) {
			env := piecesEnv(b, benchmarkProject, "UTC", 0, time.Date(2024, 4, 2, 0, 0, 0, 0, time.UTC))
			whole := compileIn(b, env, []byte(query))
			places := make([]int, len(whole.Pieces.Pieces))
			for i := range places {
				places[i] = i
			}
			all, err := whole.Pieces.Compile(places)
			if err != nil {
				b.Fatal(err)
			}
			last, err := whole.Pieces.Compile(places[len(places)-1:])
			if err != nil {
				b.Fatal(err)
			}
			var times [3][]time.Duration
			for b.Loop() {
				for i, compiled := range []*compiler.Compiled{whole, all, last} {
					stats, err := client.Query(b.Context(), clickhouse.Query{SQL: compiled.SQL, Params: paramsOf(compiled), Project: benchmarkProject}, nothing{})
					if err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], stats.Elapsed)
				}
			}
			base := float64(slices.Min(times[0]))
			b.ReportMetric(float64(slices.Min(times[1]))/base, "all/whole")
			b.ReportMetric(float64(slices.Min(times[2]))/base, "last/whole")
		})
	}
}
