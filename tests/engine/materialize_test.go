package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

const materializedProject = 331

// keptResult is what is compared of a result.
type keptResult struct {
	Columns []string // names and types
	Rows    []string
}

func (k *keptResult) Row(row []byte) error {
	k.Rows = append(k.Rows, string(row))
	return nil
}

// typesOf keeps the types of a result.
type typesOf struct {
	keptResult
	names []string
}

func (k *typesOf) Columns(list []clickhouse.Column) error {
	for i, c := range list {
		k.keptResult.Columns = append(k.keptResult.Columns, k.names[i]+" "+c.Type)
	}
	return nil
}

// runCompiled runs a query, which may read a table of a materialized endpoint.
func runCompiled(t *testing.T, c *compiler.Compiled, tables ...string) (keptResult, error) {
	t.Helper()
	out := typesOf{names: c.Columns}
	q := clickhouse.Query{SQL: c.SQL, Project: materializedProject, Tables: tables}
	for _, p := range c.Params {
		q.Params = append(q.Params, clickhouse.Param(p))
	}
	_, err := client.Query(t.Context(), q, &out)
	return out.keptResult, err
}

// materialized fills the table of a plan.
func materialized(t *testing.T, p *materialize.Plan) (table string, err error) {
	t.Helper()
	m := clickhouse.Materialization{
		Query: clickhouse.Query{SQL: p.Fill.SQL, Project: materializedProject}, Order: p.Keys,
		Table: clickhouse.MaterializedTable{Project: materializedProject, Endpoint: uuid.New(), Version: 1, Fill: 1},
	}
	for _, param := range p.Fill.Params {
		m.Params = append(m.Params, clickhouse.Param(param))
	}
	if _, err := client.Materialize(t.Context(), m); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := client.DropMaterialized(t.Context(), m.Table); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return m.Table.Name(), nil
}

// keptQuery is a random query with variables.
type keptQuery struct {
	text    string
	zone    string
	ordered bool
	buckets map[string]string
	values  []map[string]any
}

var keptValues = map[string][]any{
	"ev":    {"a", "b", "c", "none"},
	"br":    {"Chrome", "Safari", "", "none"},
	"id":    {"id1", "id2", "id7", "id99"},
	"plan":  {"pro", "free", "Preview"},
	"least": {0, 3, 7, 100},
	"pat":   {"%a%", "b", "_", "A"},
	"day":   {"2024-03-01", "2024-03-05", "2030-01-01"},
	"since": {"2024-02-25", "2024-03-03 11:20:00", "2024-03-10", "2030-01-01"},
	"until": {"2024-03-04 23:59:59", "2024-03-12", "2024-03-20", "2020-01-01"},
}

var keptEqual = []string{
	"event = {variables.ev}", "{variables.ev} = event", "properties.browser = {variables.br}", "distinct_id = {variables.id}",
	"lower(event) = lower({variables.ev})", "person.properties.plan = {variables.plan}", "properties.n = {variables.least}",
	"toDate(timestamp) = {variables.day}", "toStartOfDay(timestamp) = {variables.day}", "concat(event, '!') = concat({variables.ev}, '!')",
}

var keptRanges = []string{
	"timestamp >= {variables.since}", "timestamp > {variables.since}", "{variables.since} <= timestamp", "timestamp < {variables.until}",
	"timestamp <= {variables.until}", "timestamp >= {variables.since} and timestamp < {variables.until}",
	"timestamp >= toDateTime({variables.since})", "toDate(timestamp) >= toDate({variables.since})", "toStartOfHour(timestamp) > {variables.since}",
	"properties.n >= {variables.least}", "properties.n < {variables.least}", "event like {variables.pat}", "event not ilike {variables.pat}",
	"distinct_id > {variables.id}", "timestamp >= {variables.since} and toDate(timestamp) < {variables.day}",
}

var keptFixed = []string{
	"event != 'c'", "properties.n > 2", "timestamp < '2024-03-15'", "event in ('a', 'b')", "(event = 'a' or properties.n = 7)",
	"distinct_id in (select distinct_id from events where event = 'b')",
}

var keptGroups = []string{
	"event", "properties.browser", "toStartOfDay(timestamp) as day", "toHour(timestamp)", "distinct_id as who", "properties.n",
	"person.properties.plan as plan_of", "toStartOfMonth(timestamp) as month", "if(event = 'a', 'x', 'y') as sort", "lower(event)",
	"toDate(timestamp) as date",
}

var keptAggregates = []string{
	"count()", "count(properties.n)", "sum(properties.n)", "min(timestamp)", "max(timestamp)", "min(properties.n)", "max(properties.browser)",
	"countIf(event = 'a')", "sumIf(toInt(properties.n), event = 'b')", "minIf(timestamp, event = 'a')", "maxIf(toFloat(properties.n), event = 'b')",
	"minIf(toUnixTimestamp(timestamp), event = 'b')", "maxIf(event, event = 'b')", "min(timestamp) filter (where event = 'b')",
	"count() filter (where event = 'a')", "sum(properties.n) / count()", "countIf(event = 'a') * 100 / count()", "round(sum(properties.n), 1)",
	"max(timestamp) - min(timestamp)", "if(count() > 3, 'many', 'few')", "sum(length(event))", "max(length(event))", "countIf(properties.n > 3 and event = 'b')",
	"minOrNull(properties.n)", "sumOrNull(properties.n)", "ifNull(sum(properties.n), -1)", "min(event)", "count(distinct_id)", "min(toDate(timestamp))",
	"sumOrDefault(properties.n)", "countOrDefault()", "countOrDefaultIf(event = 'a')", "sumOrDefaultIf(toFloat(properties.n), event = 'b')",
}

// keptOthers are aggregates that cannot be put together.
var keptOthers = []string{
	"uniq(distinct_id)", "avg(properties.n)", "count(distinct event)", "quantile(0.5)(properties.n)", "uniqExact(event)", "median(properties.n)",
	"countIf(event = 'a') / uniq(distinct_id)", "arraySort(groupUniqArray(event))", "uniqIf(distinct_id, event = 'a')", "avgIf(properties.n, event = 'b')",
}

func randomKept(r *rand.Rand) *keptQuery {
	pick := func(words []string) string { return words[r.IntN(len(words))] }
	some := func(words []string, n int) []string {
		var out []string
		for _, i := range r.Perm(len(words))[:min(n, len(words))] {
			out = append(out, words[i])
		}
		return out
	}
	q := &keptQuery{zone: pick([]string{"UTC", "America/New_York", "Asia/Kolkata"})}
	var where []string
	ranged := r.IntN(5) < 3
	if ranged {
		where = append(where, some(keptRanges, 1)...)
	}
	if !ranged || r.IntN(2) == 0 {
		for _, c := range some(keptEqual, 1+r.IntN(2)) {
			if !sharesVariable(where, c) {
				where = append(where, c)
			}
		}
	}
	where = append(where, some(keptFixed, r.IntN(3))...)
	r.Shuffle(len(where), func(i, j int) { where[i], where[j] = where[j], where[i] })
	aggregates := slices.Clone(keptAggregates)
	if r.IntN(4) == 0 {
		aggregates = append(aggregates, keptOthers...)
		aggregates = append(aggregates, keptOthers...)
	}
	groups := some(keptGroups, r.IntN(4))
	measures := some(aggregates, 1+r.IntN(3))
	if r.IntN(4) == 0 {
		measures = nil
	}
	var columns, by, order []string
	hidden := r.IntN(4) == 0 && len(groups) > 0 && len(measures) > 0 // a key that is not selected
	for i, g := range groups {
		x, name, named := strings.Cut(g, " as ")
		if !named {
			name = x
		}
		if hidden && i == 0 {
			by, order = append(by, x), append(order, x)
			continue
		}
		columns = append(columns, g)
		order = append(order, name)
		if len(measures) > 0 {
			by = append(by, []string{name, name, x, fmt.Sprint(len(columns))}[r.IntN(4)])
		}
	}
	for i, m := range measures {
		if r.IntN(3) > 0 {
			m += fmt.Sprintf(" as m%d", i)
		}
		columns = append(columns, m)
	}
	if len(columns) == 0 {
		columns = []string{"event", "timestamp"}
	}
	distinct := r.IntN(8) == 0
	if len(measures) == 0 {
		order = append(order, columns...)
		for i := range order {
			order[i], _, _ = strings.Cut(order[i], " as ")
		}
		if !distinct {
			order = append(order, "uuid")
		}
	} else if r.IntN(2) == 0 {
		order = append([]string{aggregates[r.IntN(8)]}, order...)
	}
	switch r.IntN(8) {
	case 0, 1:
		return keptNested(r, q, some)
	case 2:
		q.text, q.ordered = keptShapes[r.IntN(len(keptShapes))], true
		return q.withValues(r)
	}
	text := "select "
	if distinct {
		text += "distinct "
	}
	text += strings.Join(columns, ", ") + " from events where " + strings.Join(where, " and ")
	if len(by) > 0 {
		text += " group by " + strings.Join(by, ", ")
	}
	if len(measures) > 0 && r.IntN(5) == 0 {
		text += " having " + pick([]string{"count() > 1", "sum(properties.n) > 5", "countIf(event = 'a') < 3", "max(timestamp) > '2024-03-05'"})
	}
	if q.ordered = r.IntN(4) > 0 && (len(by) > 0 || len(measures) == 0); q.ordered {
		for i := range order {
			order[i] += pick([]string{"", " desc", " asc"})
		}
		text += " order by " + strings.Join(order, ", ")
		if r.IntN(2) == 0 {
			text += fmt.Sprintf(" limit %d", 1+r.IntN(12))
			if r.IntN(3) == 0 {
				text += fmt.Sprintf(" offset %d", r.IntN(4))
			}
		} else {
			text += " limit 5000"
		}
	} else {
		text += " limit 5000"
	}
	q.text = text
	return q.withValues(r)
}

// keptShapes are queries with clauses that the random ones do not have.
var keptShapes = []string{
	"select p.properties.plan as plan, count() as n, min(e.timestamp) from events e join persons p on e.person_id = p.id " +
		"where event = {variables.ev} and e.timestamp >= {variables.since} group by plan order by plan limit 20",
	"select tag, count() as n, max(timestamp) from events array join ['x', event, distinct_id] as tag where timestamp < {variables.until} " +
		"group by tag order by n desc, tag limit 7",
	"select tag, uuid from events array join ['x', event] as tag where tag = {variables.ev} and timestamp > {variables.since} order by uuid, tag limit 50",
	"select d, n from (select toDate(timestamp) as d, event, count() as n from events group by d, event) " +
		"where d >= {variables.since} and event = {variables.ev} order by d, n limit 50",
	"select toStartOfDay(timestamp) as day, count() from events where day >= {variables.since} group by day order by day limit 40",
	"select dateTrunc('month', timestamp) as month, toStartOfInterval(timestamp, interval 1 week) as week, count() from events " +
		"where event = {variables.ev} group by month, week order by month, week",
	"select toStartOfDay(timestamp, 'Asia/Tokyo') as day, count() from events where day = {variables.day} group by day order by day",
	"select event as what, count() from events where what = {variables.ev} group by what order by 1 limit 5",
	"with 3 as least select event, count() as n from events where properties.n > least and event = {variables.ev} group by event order by n limit 5",
	"select count() as n from events where event = {variables.ev} having n > 30 order by n limit 10",
	"select max(timestamp) as last, count() from events where timestamp >= {variables.since} having last > '2024-03-01' order by 1 limit 10",
	"select count(), sum(properties.n), min(timestamp), maxIf(event, event = 'b'), avg(properties.n) from events where distinct_id = {variables.id} order by 1 limit 3",
	"select event, timestamp from events where timestamp >= {variables.since} order by toStartOfDay(timestamp), event, uuid limit 3 offset 2",
	"select event, count() as n from events where timestamp >= {variables.since} group by event order by n desc, event limit 1 with ties",
	"select event, count() as n, n * 2 as double, concat(event, '!') as loud from events where timestamp < {variables.until} group by event order by loud limit 9",
	"select distinct event, toStartOfDay(timestamp) as day from events where timestamp >= {variables.since} and properties.browser = {variables.br} order by day, event limit 30",
	"select if(event = 'a', 1, 0) as a, quantile(0.9)(properties.n), uniq(distinct_id) from events where lower(event) = {variables.ev} group by a order by a limit 4",
	"select event, arrayMap(x -> x + 1, [count(), sum(properties.n)]) as list from events where properties.browser = {variables.br} group by event order by event limit 5",
	"select tuple(event, count()) as pair from events where event like {variables.pat} group by event order by event limit 5",
	"select toString(person_id) as who, count() from events where timestamp >= {variables.since} group by who order by who limit 20",
	"select event, sum(properties.n) / 3 as third, min(properties.n) + max(properties.n) as ends from events where timestamp >= {variables.since} " +
		"group by event having ends > 1 order by third desc, event limit 20",
	"select * from (select event, toDate(timestamp) as d, count() as n from events group by event, d) where event = {variables.ev} order by d, n limit 30",
	"select event, count() as n from events group by event union all (select distinct_id, 1 from events where event = 'b' order by timestamp, uuid limit 3) order by n desc, event",
	"(select event as e from events order by timestamp, uuid limit 3) union all (select distinct_id from events order by timestamp, uuid limit 2) order by 1",
	"select distinct_id from events where event = 'a' intersect select distinct_id from events where event = 'b' order by distinct_id limit 5",
	"select event, timestamp from events order by timestamp desc, uuid limit 5",
	"select toStartOfDay(timestamp) as timestamp, count() from events where timestamp >= {variables.since} group by timestamp order by timestamp limit 40",
	"select substring(concat(event, 'xyz'), 2, 9) as event, count() as n, max(event) from events where timestamp >= {variables.since} group by event order by event limit 9",
	"select concat(event, 'x') as event, uuid from events where event = concat({variables.ev}, 'x') order by concat(event, 'x'), uuid limit 9",
	"select reverse(distinct_id) as distinct_id, count() as n from events where timestamp < {variables.until} group by distinct_id " +
		"having reverse(distinct_id) > 'id3' order by reverse(distinct_id) desc, n limit 9",
	"select concat(distinct_id, 'x') as distinct_id, min(timestamp) from events where concat(distinct_id, 'x') > {variables.id} group by distinct_id " +
		"order by distinct_id limit 30",
	"select event, timestamp from events order by event, timestamp, uuid limit 2 by event limit 7 offset 1",
	"select event, row_number() over (partition by event order by timestamp, uuid) as n from events order by event, n limit 20 offset 3",
	"select event, count() as n from events group by rollup(event) order by n, event limit 10",
	"select cohort, n from (select event as cohort, count() as n from events group by event) where n >= {variables.least} order by cohort limit 10",
}

// keptAtCuts are queries whose columns and values are at the cuts of the table, so that the table has what the query itself returns.
var keptAtCuts = []string{
	"select toStartOfDay(timestamp, 'Asia/Tokyo') as day, count() from events where day >= {variables.day} group by day order by day limit 40",
	"select toStartOfDay(timestamp, 'Asia/Tokyo') as day, count() from events where day < {variables.day} group by day order by day limit 40",
	"select toStartOfDay(timestamp) as day, count() from events where day > {variables.day} group by day order by day limit 40",
	"select toDate(timestamp) as date, count() from events where date >= {variables.day} group by date order by date limit 40",
	"select toDate(timestamp) as date, count() from events where date <= {variables.day} group by date order by date limit 40",
	"select d, n from (select toDate(timestamp) as d, event, count() as n from events group by d, event) where d < toDate({variables.day}) order by d, n limit 50",
}

// keptNested asks for a query whose variables are in a common table expression.
func keptNested(r *rand.Rand, q *keptQuery, some func([]string, int) []string) *keptQuery {
	equal := keptEqual[r.IntN(len(keptEqual))]
	q.text = []string{
		"with src as (select event, distinct_id as id, timestamp, toFloat(properties.n) as n from events where %s) " +
			"select event, count(), sum(n), min(timestamp) from src where event != 'c' group by event order by event limit 100",
		"with src as (select event, distinct_id as id, count() as n, max(timestamp) as last from events where %s group by event, id having n > 0) " +
			"select s.id, sum(n), uniq(event), max(last) from src s group by 1 order by s.id desc limit 5",
		"with a as (select event as ev, timestamp as at, uuid from events where %s), b as (select * from a where ev != 'c') " +
			"select *, toStartOfDay(at) as day from b order by at, uuid limit 30",
		"with other as (select distinct_id from events where event = 'b'), src as (select uuid, event from events where %s and distinct_id in (select distinct_id from other)) " +
			"select event, count() as n from src group by event order by n, event limit 10",
		"with src as (select event, count() as n from events where %s group by event) select count(), sum(n) from src limit 10",
	}[r.IntN(5)]
	condition := equal
	if r.IntN(2) == 0 {
		condition = keptRanges[r.IntN(len(keptRanges))]
	}
	q.text, q.ordered = fmt.Sprintf(q.text, strings.Join(append(some(keptFixed[:4], r.IntN(2)), condition), " and ")), true
	return q.withValues(r)
}

func (q *keptQuery) withValues(r *rand.Rand) *keptQuery {
	if r.IntN(2) == 0 {
		q.buckets = map[string]string{"timestamp": materialize.BucketNames[r.IntN(len(materialize.BucketNames))]}
	}
	for range 4 {
		values := map[string]any{}
		for name, all := range keptValues {
			if strings.Contains(q.text, "{variables."+name+"}") {
				values[name] = all[r.IntN(len(all))]
			}
		}
		q.values = append(q.values, values)
	}
	return q
}

func sharesVariable(where []string, condition string) bool {
	for name := range keptValues {
		code := "{variables." + name + "}"
		if strings.Contains(condition, code) && strings.Contains(strings.Join(where, " "), code) {
			return true
		}
	}
	return false
}

func (q *keptQuery) node(text string, values map[string]any) *query.HogQL {
	out := &query.HogQL{Query: text, Variables: map[string]query.Variable{}}
	for name := range keptValues {
		if !strings.Contains(q.text, "{variables."+name+"}") {
			continue
		}
		v := query.Variable{VariableID: name, CodeName: name}
		v.Value, v.HasValue = values[name]
		out.Variables[name] = v
	}
	return out
}

func keptEnv(t *testing.T, zone string) compiler.Env {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{}
	for name := range keptValues {
		known[name] = nil
	}
	return compiler.Env{
		Variables: known, Now: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC),
		Database: &schema.Database{
			Project: materializedProject, Location: location, Layout: schema.NativeLayout(),
			Properties: schema.PropertyTypes{{Scope: schema.EventProperty, Name: "n"}: schema.NumericProperty},
		},
	}
}

// TestMaterializedQueries asks random queries with variables of the events and of their tables: the answers are the same.
func TestMaterializedQueries(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 4)) // the same every time
	importEvents(t, materializedProject, randomEvents(random))
	count := rounds(t, 150)
	compared, refused, empty := 0, map[string]int{}, 0
	for i := range count {
		q := randomKept(random)
		if shapes := slices.Concat(keptShapes, keptAtCuts); i < len(shapes) { // each at least once
			zone := q.zone
			if i >= len(keptShapes) { // on both sides of UTC
				zone = []string{"America/New_York", "Asia/Kolkata"}[i%2]
			}
			q = (&keptQuery{text: shapes[i], zone: zone, ordered: true}).withValues(random)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			env := keptEnv(t, q.zone)
			plan, err := materialize.New(q.node(q.text, nil), env, materialize.Options{Endpoint: "kept", Version: 1, Buckets: q.buckets})
			if refusal, ok := errors.AsType[*materialize.Refusal](err); ok {
				refused[refusal.Reason]++
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", q.text, err)
			}
			table, fillErr := materialized(t, plan)
			for _, values := range q.values {
				text := q.text
				if len(plan.RangePairs) > 0 && !slices.Contains(keptAtCuts, q.text) {
					text = plan.Direct()
				}
				direct, err := compiler.Compile(q.node(text, values), env)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				want, err := runCompiled(t, direct)
				if err != nil {
					t.Fatalf("%s: %v (%v)", text, err, errors.Unwrap(err))
				}
				if fillErr != nil {
					t.Fatalf("%s: the table cannot be filled: %v (%v)\n%s", q.text, fillErr, errors.Unwrap(fillErr), plan.Fill.SQL)
				}
				read, err := plan.Read(materialize.Run{Table: table, Values: values}, env)
				if err != nil {
					t.Fatalf("%s\n%s %v: %v", q.text, plan.Execution, values, err)
				}
				got, err := runCompiled(t, read, table)
				if err != nil {
					t.Fatalf("%s\n%s: %v (%v)\n%s", q.text, plan.Execution, err, errors.Unwrap(err), read.SQL)
				}
				if !q.ordered {
					slices.Sort(want.Rows)
					slices.Sort(got.Rows)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s\n%v %v\n%s\n%s\n%s\nanswer (-query +table):\n%s", q.text, values, q.buckets, plan.Direct(), plan.Transformed, plan.Execution, diff)
				}
				compared++
				if len(want.Rows) == 0 {
					empty++
				}
			}
		})
	}
	t.Logf("%d answers are the same (%d of them empty); refused: %v", compared, empty, refused)
	if least := 2 * count; compared < least {
		t.Errorf("only %d answers were compared", compared)
	}
}
