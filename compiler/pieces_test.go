package compiler_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

func piecesOf(t *testing.T, request string) *compiler.Pieces {
	t.Helper()
	return compiledFor(t, request, world{Timezone: "UTC"}.env(t)).Pieces
}

func compiledFor(t *testing.T, request string, env compiler.Env) *compiler.Compiled {
	t.Helper()
	n, err := compiler.Parse([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(n, env)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return compiled
}

func trendOf(fields string) string {
	return `{"kind": "TrendsQuery", "dateRange": {"date_from": "-7d"}, ` + fields + `}`
}

func hogqlOf(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"kind": "HogQLQuery", "query": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestWithoutPieces: queries that depend on more than the events of a bucket have no pieces.
func TestWithoutPieces(t *testing.T) {
	t.Parallel()
	day := "toDate(timestamp) as day"
	since := "timestamp >= '2024-05-01' and timestamp < '2024-05-20'"
	for name, request := range map[string]string{
		"a total":                 trendOf(`"series": [{"event": "a"}], "trendsFilter": {"display": "BoldNumber"}`),
		"all time":                `{"kind": "TrendsQuery", "dateRange": {"date_from": "all"}, "series": [{"event": "a"}]}`,
		"first events":            trendOf(`"series": [{"event": "a", "math": "first_time_for_user"}]`),
		"a running total":         trendOf(`"series": [{"event": "a", "math": "dau"}], "trendsFilter": {"display": "ActionsLineGraphCumulative"}`),
		"sessions":                trendOf(`"series": [{"event": "a", "math": "avg", "math_property": "$session_duration"}]`),
		"a property of a session": trendOf(`"series": [{"event": "a", "properties": [{"type": "session", "key": "$entry_pathname", "value": "/"}]}]`),
		"a histogram":             trendOf(`"series": [{"event": "a"}], "breakdownFilter": {"breakdowns": [{"property": "n", "histogram_bin_count": 4}]}`),
		"a box plot":              trendOf(`"series": [{"event": "a", "math_property": "n"}], "trendsFilter": {"display": "BoxPlot"}`),
		"the present":             trendOf(`"series": [{"event": "a", "math": "hogql", "math_hogql": "countIf(timestamp < now())"}]`),
		"chance":                  trendOf(`"series": [{"event": "a", "properties": [{"type": "hogql", "key": "rand() > 5"}]}]`),
		"a query in a filter":     trendOf(`"series": [{"event": "a", "properties": [{"type": "hogql", "key": "distinct_id in (select distinct_id from events)"}]}]`),
		"a window":                trendOf(`"series": [{"event": "a", "math": "hogql", "math_hogql": "sum(count()) over ()"}]`),
		"groups":                  `{"kind": "LifecycleQuery", "aggregation_group_type_index": 0, "series": [{"event": "a"}], "dateRange": {"date_from": "-7d"}}`,
		"intervals of actors":     `{"kind": "StickinessQuery", "series": [{"event": "a"}], "dateRange": {"date_from": "-7d"}}`,
		"no bounds":               hogqlOf(t, "select "+day+", count() from events group by day order by day"),
		"a number is no column":   hogqlOf(t, "select "+day+", count() from events where 1 > toDateTime('2024-05-01') and timestamp < '2024-05-20' group by day order by day"),
		"no order":                hogqlOf(t, "select "+day+", count() from events where "+since+" group by day"),
		"another order":           hogqlOf(t, "select "+day+", count() as n from events where "+since+" group by day order by n"),
		"a filled order":          hogqlOf(t, "select "+day+", count() as n from events where "+since+" group by day order by day with fill"),
		"no group":                hogqlOf(t, "select "+day+" from events where "+since+" order by day"),
		"totals":                  hogqlOf(t, "select "+day+", count() from events where "+since+" group by day with totals order by day"),
		"a join":                  hogqlOf(t, "select toDate(e.timestamp) as day, count() from events e join persons p on e.person_id = p.id where e.timestamp >= '2024-05-01' group by day order by day"),
		"another table":           hogqlOf(t, "select toDate(created_at) as day, count() from persons where created_at >= '2024-05-01' group by day order by day"),
		"another time":            hogqlOf(t, "select toDate(created_at) as day, count() from events where "+since+" group by day order by day"),
		"a moved time":            hogqlOf(t, "select toDate(timestamp + interval 1 hour) as day, count() from events where "+since+" group by day order by day"),
		"a hidden time":           hogqlOf(t, "select toStartOfDay(timestamp) as timestamp, count() from events where "+since+" group by 1 order by 1"),
		"a window of rows":        hogqlOf(t, "select "+day+", count(), sum(count()) over (order by day) from events where "+since+" group by day order by day"),
		"a subquery":              hogqlOf(t, "select "+day+", count() from events where "+since+" and distinct_id in (select distinct_id from events) group by day order by day"),
		"a volatile condition":    hogqlOf(t, "select "+day+", count() from events where "+since+" and rand() > 3 group by day order by day"),
		"sessions of events":      hogqlOf(t, "select "+day+", max(session.$session_duration) from events where "+since+" group by day order by day"),
		"an unknown bound":        hogqlOf(t, "select "+day+", count() from events where timestamp >= toDateTime(toString(now())) group by day order by day"),
		"a window of a macro":     hogqlOf(t, "select "+day+", count(), rowNumberInAllBlocks() from events where "+since+" group by day order by day"),
		"a macro in an aggregate": trendOf(`"series": [{"event": "a", "math": "hogql", "math_hogql": "max(rowNumberInBlock())"}]`),
		"a name inside":           hogqlOf(t, "select "+day+", count((created_at as timestamp)) from events where "+since+" group by day order by day"),
		"a name in a filter":      trendOf(`"series": [{"event": "a", "math": "hogql", "math_hogql": "countIf((created_at as timestamp) < timestamp)"}]`),
		"several rows of one":     hogqlOf(t, "select "+day+", arrayJoin([1, 2]), count() from events where "+since+" group by day order by day"),
	} {
		if piecesOf(t, request) != nil {
			t.Errorf("%s: %s has pieces", name, request)
		}
	}
}

// TestPiecesOfIntervals: buckets of each length become pieces, even the longest ones.
func TestPiecesOfIntervals(t *testing.T) {
	t.Parallel()
	for interval, from := range map[string]string{"hour": "-1d", "day": "-7d", "week": "-60d", "month": "-6m", "quarter": "-1y", "year": "-3y"} {
		for _, kind := range []string{"TrendsQuery", "LifecycleQuery"} {
			if piecesOf(t, `{"kind": "`+kind+`", "interval": "`+interval+`", "dateRange": {"date_from": "`+from+`"}, "series": [{"event": "a"}]}`) == nil {
				t.Errorf("a %s by %s has no pieces", kind, interval)
			}
		}
	}
	for _, start := range []string{"toStartOfWeek", "toStartOfMonth", "toStartOfQuarter", "toStartOfYear"} {
		if piecesOf(t, hogqlOf(t, "select "+start+"(timestamp) as start, count() from events where timestamp >= '2020-01-01' and timestamp < '2024-01-01' group by start order by start")) == nil {
			t.Errorf("HogQL by %s has no pieces", start)
		}
	}
}

// TestPieceTexts: the same query for other days has the same text, and another query has another text.
func TestPieceTexts(t *testing.T) {
	t.Parallel()
	trend := func(from, fields string) string {
		return `{"kind": "TrendsQuery", "dateRange": {"date_from": "` + from + `", "date_to": "2024-05-30"}, ` + fields + `}`
	}
	one := piecesOf(t, trend("2024-05-01", `"series": [{"event": "a"}]`))
	for name, request := range map[string]string{
		"earlier days": trend("2024-04-01", `"series": [{"event": "a"}]`),
		"two periods":  trend("2024-04-01", `"series": [{"event": "a"}], "compareFilter": {"compare": true}`),
		"a formula":    trend("2024-04-01", `"series": [{"event": "a"}], "trendsFilter": {"formula": "A * 2"}`),
	} {
		if other := piecesOf(t, request); other == nil || other.Text != one.Text {
			t.Errorf("%s have another text", name)
		}
	}
	for name, request := range map[string]string{
		"another event":    trend("2024-05-01", `"series": [{"event": "b"}]`),
		"another interval": trend("2024-05-01", `"series": [{"event": "a"}], "interval": "hour"`),
		"a filter":         trend("2024-05-01", `"series": [{"event": "a"}], "properties": [{"key": "x", "value": "1", "type": "event"}]`),
		"other people":     trend("2024-05-01", `"series": [{"event": "a", "math": "dau"}], "modifiers": {"personsOnEventsMode": "disabled"}`),
		"some days":        `{"kind": "TrendsQuery", "dateRange": {"date_from": "2024-05-01", "daysOfWeek": [1, 2]}, "series": [{"event": "a"}]}`,
	} {
		if other := piecesOf(t, request); other == nil || other.Text == one.Text {
			t.Errorf("%s has no text of its own", name)
		}
	}
	env := world{Timezone: "Asia/Kathmandu"}.env(t)
	if compiledFor(t, trend("2024-05-01", `"series": [{"event": "a"}]`), env).Pieces.Text == one.Text {
		t.Error("another zone has no text of its own")
	}
}

// TestPieceTypes: if the type of a property changes the SQL of pieces, it changes their text; types of unused properties do not.
func TestPieceTypes(t *testing.T) {
	t.Parallel()
	since := " from events where timestamp >= '2024-05-01' and timestamp < '2024-05-04' group by day order by day"
	changed := 0
	for _, request := range []string{
		trendOf(`"series": [{"event": "a"}], "breakdownFilter": {"breakdown": "x", "breakdown_type": "event"}`),
		trendOf(`"series": [{"event": "a"}], "breakdownFilter": {"breakdowns": [{"property": "x", "type": "person"}, {"property": "toString(properties.x)", "type": "hogql"}]}`),
		trendOf(`"series": [{"event": "a", "math": "sum", "math_property": "x"}]`),
		trendOf(`"series": [{"event": "a", "math": "hogql", "math_hogql": "max(properties.x)"}]`),
		trendOf(`"series": [{"event": "a"}], "properties": [{"key": "x", "value": "1", "type": "event", "operator": "gt"}]`),
		trendOf(`"series": [{"event": "a"}], "properties": [{"key": "x", "value": ["true"], "type": "event"}]`),
		trendOf(`"series": [{"event": "a"}], "properties": [{"key": "x", "value": ["true"], "type": "person"}]`),
		trendOf(`"series": [{"event": "a"}], "properties": [{"key": "x", "value": "2024-05-01", "type": "event", "operator": "is_date_before"}]`),
		`{"kind": "LifecycleQuery", "dateRange": {"date_from": "-7d"}, "series": [{"event": "a", "properties": [{"key": "x", "value": 1, "type": "event"}]}]}`,
		hogqlOf(t, "select toDate(timestamp) as day, max(properties.x)"+since),
		hogqlOf(t, "select toDate(timestamp) as day, countIf(person.properties.x = properties['x'])"+since),
		hogqlOf(t, "select toDate(timestamp) as day, max(properties.x.y), any(properties)"+since),
	} {
		texts := map[string]string{} // by SQL
		for _, typ := range []string{"", "String", "Numeric", "Boolean", "DateTime"} {
			w := world{Event: map[string]string{"x": typ}, Person: map[string]string{"x": typ}}
			if typ == "" {
				w = world{}
			}
			pieces := compiledFor(t, request, w.env(t)).Pieces
			if pieces == nil {
				t.Fatalf("%s has no pieces", request)
			}
			compiled, err := pieces.Compile([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			sql := fmt.Sprint(compiled.SQL, compiled.Params)
			for known, text := range texts {
				if known != sql && text == pieces.Text {
					t.Errorf("%s: with %q the SQL is another one and the text is not", request, typ)
				}
			}
			texts[sql] = pieces.Text
			other := world{Event: map[string]string{"y": "Numeric"}, Person: map[string]string{"y": "Boolean"}}
			if typ == "" && compiledFor(t, request, other.env(t)).Pieces.Text != pieces.Text {
				t.Errorf("%s: the type of a property that is not read changes the text", request)
			}
		}
		if len(texts) > 1 {
			changed++
		}
	}
	if changed < 6 {
		t.Errorf("types change the SQL of %d queries only", changed)
	}
}

// TestKeptPieces: a piece whose first events may be too old to be kept is computed every time.
func TestKeptPieces(t *testing.T) {
	t.Parallel()
	env := world{Timezone: "UTC"}.env(t)
	env.Database.EventsFrom = time.Date(2024, 5, 25, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		series string
		want   []string // the day of each piece, and that of the earliest events that affect it
	}{
		{`{"event": "a"}`, []string{
			"24 from 24", "25 from 25", "26 from 26, whole", "27 from 27, whole", "28 from 28, whole", "29 from 29, whole", "30 from 30, whole", "31 from 31, whole",
		}},
		{`{"event": "a", "math": "weekly_active"}`, []string{
			"24 from 18", "25 from 19", "26 from 20", "27 from 21", "28 from 22", "29 from 23", "30 from 24", "31 from 25",
		}},
	} {
		var got []string
		for _, p := range compiledFor(t, trendOf(`"series": [`+tt.series+`]`), env).Pieces.Pieces {
			text := fmt.Sprintf("%d from %d", p.From.Day(), p.Reach.Day())
			if p.Whole {
				text += ", whole"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("pieces of %s (-want +got):\n%s", tt.series, diff)
		}
	}
}

// TestRefusedRows: if the rows do not contain the answer, the whole query is run; rows of another query are a bug.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	pieces := piecesOf(t, trendOf(`"series": [{"event": "a"}], "breakdownFilter": {"breakdowns": [{"property": "x"}]}`))
	rows := func(some ...string) [][][]byte {
		out := make([][][]byte, len(pieces.Pieces))
		for _, row := range some {
			out[1] = append(out[1], []byte(row))
		}
		return out
	}
	var many []string
	for i := range 5001 {
		many = append(many, fmt.Sprintf(`[0, ["%d"], [1], [0]]`, i))
	}
	for name, test := range map[string]struct {
		rows   [][][]byte
		ok, is bool
	}{
		"few":              {rows(many[:5000]...), true, false},
		"too many":         {rows(many...), false, false},
		"not finite":       {rows(`[0, ["a"], [null], [0]]`), false, false},
		"no source":        {rows(`[7, ["a"], [1], [0]]`), false, true},
		"too few columns":  {rows(`[0, ["a"]]`), false, true},
		"no number":        {rows(`[0, ["a"], [], []]`), false, true},
		"no JSON":          {rows(`[0, `), false, true},
		"values no texts":  {rows(`[0, [1], [1], [0]]`), false, true},
		"nothing":          {rows(), true, false},
		"the same, added":  {rows(`[0, ["a"], [1], [0]]`, `[0, ["a"], [2], [0]]`), true, false},
		"another argument": {rows(`{}`), false, true},
	} {
		if _, ok, err := pieces.Rows(test.rows); ok != test.ok || err != nil != test.is {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}
