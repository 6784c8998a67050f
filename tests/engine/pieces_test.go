package engine_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// piecesProject is the project of the events that queries in pieces are asked of.
const piecesProject = 305

// pieceStore keeps the rows of pieces, as a caller that asks again would.
type pieceStore map[string][][]byte

// pieceKey tells pieces apart.
func pieceKey(text string, p compiler.Piece) string {
	return fmt.Sprint(text, p.From.UnixMicro(), " ", p.To.UnixMicro())
}

// piecesEnv is a project in a zone.
func piecesEnv(tb testing.TB, project int64, zoneName string, weekStart int, now time.Time) compiler.Env {
	tb.Helper()
	zone, err := time.LoadLocation(zoneName)
	if err != nil {
		tb.Fatal(err)
	}
	db := &schema.Database{
		Project: project, Location: zone, WeekStart: weekStart, Layout: schema.NativeLayout(),
		Properties: schema.PropertyTypes{{Scope: schema.EventProperty, Name: "n"}: schema.NumericProperty},
	}
	return compiler.Env{Database: db, Now: now}
}

func compileIn(tb testing.TB, env compiler.Env, raw []byte) *compiler.Compiled {
	tb.Helper()
	node, err := compiler.Parse(raw)
	if err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	compiled, err := compiler.Compile(node, env)
	if err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return compiled
}

func paramsOf(compiled *compiler.Compiled) []clickhouse.Param {
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	return params
}

// rowsRun runs a compiled query.
func rowsRun(tb testing.TB, compiled *compiler.Compiled, project int64) rowCollector {
	tb.Helper()
	var rows rowCollector
	if _, err := client.Query(tb.Context(), clickhouse.Query{SQL: compiled.SQL, Params: paramsOf(compiled), Project: project}, &rows); err != nil {
		tb.Fatalf("%v\n%s\n%v", err, compiled.SQL, compiled.Params)
	}
	return rows
}

// compute runs queries for some pieces, and gives their rows.
func compute(tb testing.TB, compiled *compiler.Compiled, project int64, places []int) map[int][][]byte {
	tb.Helper()
	query, err := compiled.Pieces.Compile(places)
	if err != nil {
		tb.Fatalf("places %v: %v", places, err)
	}
	out := map[int][][]byte{}
	for _, place := range places {
		out[place] = nil
	}
	for _, row := range rowsRun(tb, query, project) {
		first, rest, ok := strings.Cut(strings.TrimPrefix(row, "["), ",")
		var place int
		if err := json.Unmarshal([]byte(first), &place); err != nil || !ok {
			tb.Fatalf("row %s has no place: %v", row, err)
		}
		if _, asked := out[place]; !asked {
			tb.Fatalf("row %s is of a piece that nobody asked for\n%s", row, query.SQL)
		}
		out[place] = append(out[place], []byte("["+strings.TrimLeft(rest, " ")))
	}
	return out
}

// fill computes the pieces that the store does not have, in random groups, and keeps those that are whole. It gives the rows of all pieces.
func (store pieceStore) fill(tb testing.TB, r *rand.Rand, compiled *compiler.Compiled, project int64) (rows [][][]byte, kept int) {
	tb.Helper()
	pieces := compiled.Pieces
	rows = make([][][]byte, len(pieces.Pieces))
	var missing []int
	for place, p := range pieces.Pieces {
		if place > 0 && p.From.Before(pieces.Pieces[place-1].From) || !p.From.Before(p.To) || p.Reach.After(p.From) {
			tb.Fatalf("piece %d, %v, comes after %v", place, p, pieces.Pieces[max(0, place-1)])
		}
		if found, ok := store[pieceKey(pieces.Text, p)]; ok && p.Whole {
			rows[place] = found
			kept++
			continue
		}
		missing = append(missing, place)
	}
	for len(missing) > 0 {
		n := 1 + r.IntN(len(missing))
		if r.IntN(2) == 0 {
			r.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
		}
		for place, found := range compute(tb, compiled, project, missing[:n]) {
			rows[place] = found
			if p := pieces.Pieces[place]; p.Whole {
				store[pieceKey(pieces.Text, p)] = found
			}
		}
		missing = missing[n:]
	}
	return rows, kept
}

func rowsIn(all rowCollector) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, row := range all {
			if !yield([]byte(row)) {
				return
			}
		}
	}
}

// piecesTally counts what a property test has seen.
type piecesTally struct{ none, refused, compared, kept int }

// compare asks a query as a whole and in pieces.
func (n *piecesTally) compare(t *testing.T, r *rand.Rand, store pieceStore, env compiler.Env, raw []byte) {
	t.Helper()
	compiled := compileIn(t, env, raw)
	if compiled.Pieces == nil {
		n.none++
		return
	}
	want := rowsRun(t, compiled, env.Database.Project)
	rows, kept := store.fill(t, r, compiled, env.Database.Project)
	n.kept += kept
	stitched, ok, err := compiled.Pieces.Rows(rows)
	if err != nil {
		t.Fatalf("%s in %s: %v", raw, env.Database.Location, err)
	}
	if !ok {
		n.refused++
		return
	}
	n.compared++
	got, whole := answerOf(t, compiled, stitched), answerOf(t, compiled, rowsIn(want))
	if got != whole {
		all := make([]int, len(rows))
		for i := range all {
			all[i] = i
		}
		query, err := compiled.Pieces.Compile(all)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s in %s\nin pieces %s\nas a whole %s\n%s\n%s", raw, env.Database.Location, got, whole, compiled.SQL, query.SQL)
	}
}

// answerOf is what a caller gets of rows.
func answerOf(t *testing.T, compiled *compiler.Compiled, rows iter.Seq[[]byte]) string {
	t.Helper()
	if compiled.Shape == nil {
		var b strings.Builder
		for row := range rows {
			b.Write(row)
			b.WriteByte('\n')
		}
		return b.String()
	}
	answer, err := compiled.Shape(rows)
	if err != nil {
		t.Fatal(err)
	}
	more := ""
	if answer.HasMore != nil {
		more = fmt.Sprint(*answer.HasMore)
	}
	return fmt.Sprint(string(answer.Results), more, answer.Range, answer.Previous)
}

// pieceZones are zones that change their clocks at midnight, by half an hour, or are a part of an hour away from UTC.
var pieceZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata", "America/Havana", "Africa/Cairo", "America/Santiago",
}

// moved puts times some days later; what is relative stays.
func movedDays(text string, days int) string {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.AddDate(0, 0, days).Format(layout)
		}
	}
	return text
}

// TestTrendsInPieces asks random trends as a whole and in pieces, some of which come from the same trend of other days.
func TestTrendsInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 1)) // the same every time
	importEvents(t, piecesProject, pieceEvents(random))
	var tally piecesTally
	count := rounds(t, 50)
	store := pieceStore{}
	for i := range count {
		q := randomTrend(random)
		q.zone = pieceZones[random.IntN(len(pieceZones))]
		if q.display == "BoldNumber" {
			q.display = "ActionsLineGraph"
		}
		for i := range q.series {
			if random.IntN(8) > 0 { // the others look beyond their buckets
				maths := []string{"total", "dau", "unique_session", "unique_group", "sum", "avg", "min", "max", "median", "p90", "max_count_per_actor", "hogql", "weekly_active", "monthly_active"}
				q.series[i].math = maths[random.IntN(len(maths))]
			}
		}
		if q.interval == "week" || q.interval == "month" { // so that there are whole ones
			q.to = movedDays(q.to, 40)
		}
		explicit, days, minutes := random.IntN(3) == 0, random.IntN(5) == 0, q.interval == "hour" && random.IntN(3) == 0
		if random.IntN(2) == 0 {
			q.from += fmt.Sprintf("T%02d:%02d:00", random.IntN(24), random.IntN(60))
			q.to += fmt.Sprintf("T%02d:%02d:59", random.IntN(24), random.IntN(60))
		}
		formula, hide := random.IntN(4) == 0, random.IntN(4) == 0
		if minutes {
			q.interval = "minute"
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, shift := range []int{-2, 0, 7} {
				shifted := *q
				shifted.from, shifted.to = movedDays(q.from, shift), movedDays(q.to, shift)
				node := shifted.node()
				dates := node["dateRange"].(map[string]any)
				dates["explicitDate"] = explicit
				if days && q.smoothing < 2 {
					dates["daysOfWeek"] = []int{1, 2, 3, 6}
				}
				filter := node["trendsFilter"].(map[string]any)
				if formula {
					filter["formulas"] = []string{"A * 2 + 1", "A / (A + 3)"}
				}
				if hide && len(q.breakdown) > 0 {
					node["breakdownFilter"].(map[string]any)["breakdown_hide_other_aggregation"] = true
				}
				raw, err := json.Marshal(node)
				if err != nil {
					t.Fatal(err)
				}
				tally.compare(t, random, store, piecesEnv(t, piecesProject, q.zone, q.weekStart, time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)), raw)
			}
		})
	}
	t.Logf("%+v", tally)
	if tally.compared < count || tally.kept < 4*count || tally.refused > 0 {
		t.Errorf("%+v, want more of them compared and kept", tally)
	}
}

// pieceEvents are random events, many of them near the changes of the clocks in March and April 2024.
func pieceEvents(r *rand.Rand) []trendEvent {
	out := randomEvents(r)
	for i := range out {
		if r.IntN(3) > 0 {
			continue
		}
		// New York and Havana on the 10th, at 7:00 and 5:00; Berlin on the 31st, at 1:00; Lord Howe on the 6th of April, at 15:00.
		at := []time.Time{
			time.Date(2024, 3, 10, 7, 0, 0, 0, time.UTC), time.Date(2024, 3, 10, 5, 0, 0, 0, time.UTC),
			time.Date(2024, 3, 31, 1, 0, 0, 0, time.UTC), time.Date(2024, 4, 6, 15, 0, 0, 0, time.UTC),
		}[r.IntN(4)]
		out[i].Timestamp = at.Add(time.Duration(r.IntN(6*60)-3*60) * time.Minute)
	}
	return out
}

// bucketSelect is a random SELECT of a row for each bucket of time and some more keys.
type bucketSelect struct {
	bucket, keys, from, to, form, columns, having, limit string
	desc                                                 bool
}

func randomBucketSelect(r *rand.Rand) bucketSelect {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	q := bucketSelect{
		bucket: pick("toDate(timestamp)", "toStartOfDay(timestamp)", "toStartOfHour(timestamp)", "toStartOfWeek(timestamp)", "toMonday(timestamp)",
			"toStartOfMonth(timestamp)", "dateTrunc('day', timestamp)", "dateTrunc('week', timestamp)", "dateTrunc('month', timestamp)",
			"toStartOfInterval(timestamp, interval 1 day)", "toStartOfInterval(timestamp, interval 1 week)", "toStartOfQuarter(timestamp)", "date_trunc('month', events.timestamp)"),
		keys: pick("", "", ", event", ", properties.browser, event"),
		form: pick("timestamp >= '%s' and timestamp < '%s'", "timestamp > '%s' and timestamp <= '%s'", "timestamp between '%s' and '%s'", "toDate(timestamp) >= toDate('%s') and timestamp < '%s'", "'%s' <= timestamp and toDate(timestamp) <= '%[2]s'", "day >= '%s' and timestamp < toDateTime('%s')", "timestamp >= toDate('%s')",
			"timestamp >= dateTrunc('month', toDateTime('%s')) and timestamp < '%s'", "timestamp > toStartOfInterval(toDateTime('%s'), interval 1 week)"),
		columns: pick("count()", "count(distinct person_id), max(properties.n)", "sum(toFloat(properties.n)) as total", "uniq(distinct_id), min(timestamp), avg(toFloat(properties.n))"),
		having:  pick("", "", "having count() > 1"),
		limit:   pick("", "limit 7", "limit 3 offset 4", "limit 1000", "offset 5"),
		desc:    r.IntN(2) == 0,
	}
	q.from = time.Date(2024, 2, 25+r.IntN(12), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	q.to = movedDays(q.from, 2+r.IntN(40))
	if r.IntN(3) == 0 && !strings.Contains(q.form, "toDate") && !strings.Contains(q.form, "day") {
		q.from += fmt.Sprintf(" %02d:%02d:00", r.IntN(24), r.IntN(60))
	}
	return q
}

func (q bucketSelect) text(shift int, where string) string {
	from, clock, _ := strings.Cut(q.from, " ")
	from = movedDays(from, shift)
	if clock != "" {
		from += " " + clock
	}
	bounds := fmt.Sprintf(q.form, from, movedDays(q.to, shift))
	bounds, _, _ = strings.Cut(bounds, "%!(EXTRA")
	direction := ""
	if q.desc {
		direction = " desc"
	}
	n := 1 + strings.Count(q.keys, ",")
	var keys []string
	for i := 2; i <= n; i++ {
		keys = append(keys, fmt.Sprint(", ", i))
	}
	return fmt.Sprintf("select %s as day%s, %s from events where %s%s group by day%s %s order by 1%s%s %s",
		q.bucket, q.keys, q.columns, bounds, where, q.keys, q.having, direction, strings.Join(keys, ""), q.limit)
}

// TestHogQLInPieces asks random SELECTs by buckets of time as a whole and in pieces, some of which come from the same SELECT of other days.
func TestHogQLInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 2)) // the same every time
	importEvents(t, piecesProject+1, pieceEvents(random))
	var tally piecesTally
	count := rounds(t, 60)
	store := pieceStore{}
	for i := range count {
		q := randomBucketSelect(random)
		zone, weekStart, pages := pieceZones[random.IntN(len(pieceZones))], random.IntN(2), random.IntN(2) == 0
		where := []string{"", " and event != 'b'", " and (properties.n > 3 or event = 'a')", " and person.properties.plan = 'pro'"}[random.IntN(4)]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, shift := range []int{-2, 0, 7} {
				env := piecesEnv(t, piecesProject+1, zone, weekStart, time.Date(2024, 3, 19, 15, 30, 0, 0, time.UTC))
				if pages {
					env.Mode = compiler.Pages
				}
				raw, err := json.Marshal(map[string]any{"kind": "HogQLQuery", "query": q.text(shift, where)})
				if err != nil {
					t.Fatal(err)
				}
				tally.compare(t, random, store, env, raw)
			}
		})
	}
	t.Logf("%+v", tally)
	if tally.compared < count || tally.kept < 4*count || tally.refused > 0 {
		t.Errorf("%+v, want more of them compared and kept", tally)
	}
}

// TestMomentsOfPieces compares the bounds of pieces with what the engine computes of the same expressions, and those of the present with
// those of its text.
func TestMomentsOfPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 3)) // the same every time
	now := time.Date(2024, 12, 30, 23, 59, 58, 123_456_789, time.UTC)
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	unit := func() string { return pick("second", "minute", "hour", "day", "week", "month", "quarter", "year") }
	var moment func(depth int) string
	moment = func(depth int) string {
		if depth == 0 {
			return pick("NOW", "NOW", "toDateTime('2024-03-31 01:30:00')", "toDate('2024-01-31')", "toDateTime64('2024-02-29 23:30:00.000123', 6)", "toDate('2023-12-31')")
		}
		x, n := moment(depth-1), random.IntN(40)
		switch random.IntN(8) {
		case 0:
			return fmt.Sprintf("%s - interval %d %s", x, n, unit())
		case 1:
			return fmt.Sprintf("(%s + interval %d %s)", x, random.IntN(3), unit())
		case 2:
			return fmt.Sprintf("%s(%s)", pick("toStartOfDay", "toStartOfHour", "toStartOfMinute", "toStartOfWeek", "toMonday", "toStartOfMonth", "toStartOfQuarter", "toStartOfYear", "toDate"), x)
		case 3:
			return fmt.Sprintf("dateTrunc('%s', %s)", pick("day", "week", "month", "quarter", "year"), x)
		case 4:
			return fmt.Sprintf("%s(%s, %d)", pick("subtractDays", "subtractMonths", "addDays", "subtractHours", "subtractWeeks", "subtractYears", "addQuarters"), x, n%5)
		case 5:
			return fmt.Sprintf("dateSub('%s', %d, %s)", unit(), n, x)
		case 6:
			return fmt.Sprintf("dateSub(%s, toInterval%s(%d))", x, pick("Day", "Week", "Month", "Hour"), n)
		default:
			return fmt.Sprintf("toDate(%s) - %d", x, n)
		}
	}
	count, compared := rounds(t, 150), 0
	for range count {
		text, zone, weekStart := moment(1+random.IntN(3)), pieceZones[random.IntN(len(pieceZones))], random.IntN(2)
		env := piecesEnv(t, piecesProject, zone, weekStart, now)
		given := fmt.Sprintf("toDateTime64('%s', 6)", now.In(env.Database.Location).Format("2006-01-02 15:04:05.000000"))
		query := func(now string) *compiler.Pieces {
			raw, err := json.Marshal(map[string]any{"kind": "HogQLQuery", "query": "select toDate(timestamp), count() from events where timestamp >= " +
				strings.ReplaceAll(text, "NOW", now) + " and timestamp < '2025-01-03' group by 1 order by 1"})
			if err != nil {
				t.Fatal(err)
			}
			node, err := compiler.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compiler.Compile(node, env)
			if err != nil {
				return nil // such as a date before the years that there are
			}
			return compiled.Pieces
		}
		pieces, written := query("now()"), query(given)
		if pieces == nil { // too many, or too long ago
			continue
		}
		raw, err := json.Marshal(map[string]any{"kind": "HogQLQuery", "query": "select toUnixTimestamp64Milli(toDateTime64(" + strings.ReplaceAll(text, "NOW", given) + ", 6))"})
		if err != nil {
			t.Fatal(err)
		}
		var rows rowCollector
		asked := compileIn(t, env, raw)
		if _, err := client.Query(t.Context(), clickhouse.Query{SQL: asked.SQL, Params: paramsOf(asked), Project: piecesProject}, &rows); err != nil {
			continue // such as the minute of a date
		}
		want := strings.Trim(rows[0], "[]\" ")
		if got := fmt.Sprint(pieces.Pieces[0].From.UnixMilli()); got != want {
			t.Errorf("%s in %s: %s, want %s", text, zone, got, want)
		}
		if written == nil || len(written.Pieces) != len(pieces.Pieces) || !written.Pieces[0].From.Equal(pieces.Pieces[0].From) || written.Text != pieces.Text {
			t.Errorf("%s in %s: pieces differ when the present is written out", text, zone)
		}
		compared++
	}
	t.Logf("compared %d", compared)
	if compared < count/5 {
		t.Errorf("only %d of %d moments are computed", compared, count)
	}
}

// TestLifecyclesInPieces asks random lifecycles of people as a whole and in pieces. Some people were made after they were first active.
func TestLifecyclesInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 4)) // the same every time
	var records []any
	start := time.Date(2024, 2, 20, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		id := fmt.Sprint("person", i)
		first := time.Duration(random.IntN(50*24*60)) * time.Minute
		made := start.Add(first - time.Duration(random.IntN(3))*24*time.Hour)
		if i%15 == 0 { // later than the first events
			made = start.Add(first + time.Duration(random.IntN(10*24))*time.Hour)
		}
		records = append(records, map[string]any{"type": "person", "distinct_ids": []string{id}, "created_at": made, "properties": map[string]any{}})
		for range random.IntN(14) {
			at := start.Add(first + time.Duration(random.IntN(20*24*60))*time.Minute)
			records = append(records, trendEvent{Event: []string{"a", "b"}[random.IntN(2)], DistinctID: id, Timestamp: at, Properties: map[string]any{"n": random.IntN(9)}})
		}
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: piecesProject + 2, Now: time.Now()}, ingesttest.Records(t, records...))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
	var tally piecesTally
	count := rounds(t, 40)
	store := pieceStore{}
	for i := range count {
		zone, weekStart := pieceZones[random.IntN(len(pieceZones))], random.IntN(2)
		interval := []string{"day", "day", "week", "month", "hour"}[random.IntN(5)]
		first := start.AddDate(0, 0, random.IntN(40)).Format(time.DateOnly)
		days := random.IntN(12)
		if interval == "week" || interval == "month" {
			days += 20
		}
		event := []any{"a", nil}[random.IntN(2)]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, shift := range []int{0, 3} {
				raw, err := json.Marshal(map[string]any{
					"kind": "LifecycleQuery", "interval": interval, "series": []any{map[string]any{"kind": "EventsNode", "event": event}},
					"dateRange": map[string]any{"date_from": movedDays(first, shift), "date_to": movedDays(first, shift+days)},
				})
				if err != nil {
					t.Fatal(err)
				}
				tally.compare(t, random, store, piecesEnv(t, piecesProject+2, zone, weekStart, time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)), raw)
			}
		})
	}
	t.Logf("%+v", tally)
	if tally.compared < count/2 || tally.kept < count || tally.refused == 0 {
		t.Errorf("%+v, want more of them compared, kept and refused", tally)
	}
}
