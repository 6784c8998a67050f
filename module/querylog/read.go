package querylog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// maxRuns is how many runs are listed at most: the newest.
const maxRuns = 10_000

// readTime is how long a reader of the log waits in total, for a place and for ClickHouse. After that it only has what is in memory.
const readTime = 2 * time.Second

// has reports whether there are tables to read for a project. It sends no query.
func (l *Log) has(project int64) bool { return l != nil && l.Shards.Of(project).KnowsLogs() }

func moment(name string, at time.Time) clickhouse.Param {
	return clickhouse.Param{Name: name, Type: "DateTime64(6, 'UTC')", Value: at.UTC().Format("2006-01-02 15:04:05.000000")}
}

func text(name, value string) clickhouse.Param {
	return clickhouse.Param{Name: name, Type: "String", Value: value}
}

// Queries returns the queries of a project that have a name and ended after a time, oldest first. Of more than most, it returns the newest. Those not
// written yet are missing.
func (l *Log) Queries(ctx context.Context, enter Enter, project int64, name string, after time.Time, most int) ([]*Query, error) {
	if !l.has(project) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	at, leave, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	const sql = "SELECT id, query_start_time, event_time, query, name, kind, endpoint, endpoint_version, key_id, customer, created_by, is_personal_api_key_request, " +
		"result_rows, result_bytes, status, exception_code, exception FROM " + physical.QueryLog +
		" WHERE query_id = {name:String} AND event_time > {after:DateTime64(6, 'UTC')} ORDER BY query_start_time DESC, id DESC LIMIT {most:Int64}"
	var all []*Query
	err = l.Shards.Of(project).ReadLog(ctx, at, clickhouse.Query{SQL: sql, Project: project, Params: []clickhouse.Param{
		text("name", name), moment("after", kept(after)), {Name: "most", Type: "Int64", Value: strconv.Itoa(most)},
	}}, func(cells []clickhouse.Cell) error {
		r := reader{cells: cells}
		q := &Query{
			Project: project, Name: name,
			ID: r.uuid(), Start: r.time(), End: r.time(), Text: r.text(), Label: r.text(), Kind: r.text(), Endpoint: r.text(), Version: int(r.int()), Key: r.text(),
			Customer: r.text(), User: r.int(), Personal: r.int() == 1, Rows: r.int(), Bytes: r.int(), Failed: r.text() != new(Query).Status(), Code: int(r.int()),
			Exception: r.text(),
		}
		all = append(all, q)
		return r.err
	})
	slices.Reverse(all)
	return all, err
}

// Filter says which runs are wanted; zero fields do not filter.
type Filter struct {
	After, Before time.Time
	Execution     uuid.UUID
	Statuses      []Statuses // one of them has to have the run's
}

// Statuses are the HTTP statuses from From up to, but without, Before.
type Statuses struct{ From, Before int }

func (f *Filter) takesStatus(status int) bool {
	return f.Statuses == nil || slices.ContainsFunc(f.Statuses, func(s Statuses) bool { return s.From <= status && status < s.Before })
}

// kept returns a time, but not one from before the rows that are shown.
func kept(after time.Time) time.Time {
	if from := physical.LogsFrom(time.Now()); from.After(after) {
		return from
	}
	return after
}

// ListRuns returns the runs of an endpoint of the last days, newest first: those in this process's memory, and those in ClickHouse. With an error, it
// returns only the former.
func (l *Log) ListRuns(ctx context.Context, enter Enter, project int64, endpoint string, memory *runlog.Log, f Filter) ([]runlog.Run, error) {
	recent := slices.DeleteFunc(memory.All(), func(r runlog.Run) bool { return r.At.Before(kept(time.Time{})) })
	runs := slices.DeleteFunc(slices.Clone(recent), func(r runlog.Run) bool { return !f.takesStatus(r.Status) })
	if !l.has(project) {
		return runs, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	sql := "SELECT at, took, execution_id, version, result_rows, status, cache, code, key_id, customer, sequence FROM " + physical.RunLog +
		" WHERE entry = 'run' AND endpoint_id = {endpoint:String} AND at > {after:DateTime64(6, 'UTC')}"
	params := []clickhouse.Param{text("endpoint", endpoint), moment("after", kept(f.After)), {Name: "most", Type: "Int64", Value: strconv.Itoa(maxRuns)}}
	if !f.Before.IsZero() {
		sql, params = sql+" AND at < {before:DateTime64(6, 'UTC')}", append(params, moment("before", f.Before))
	}
	if f.Execution != uuid.Nil {
		sql, params = sql+" AND execution_id = {execution:UUID}", append(params, clickhouse.Param{Name: "execution", Type: "UUID", Value: f.Execution.String()})
	}
	if f.Statuses != nil {
		either := []string{"false"}
		for i, s := range f.Statuses {
			from, before := "from_"+strconv.Itoa(i), "before_"+strconv.Itoa(i)
			either = append(either, "status >= {"+from+":Int64} AND status < {"+before+":Int64}")
			params = append(params, clickhouse.Param{Name: from, Type: "Int64", Value: strconv.Itoa(s.From)},
				clickhouse.Param{Name: before, Type: "Int64", Value: strconv.Itoa(s.Before)})
		}
		sql += " AND (" + strings.Join(either, " OR ") + ")"
	}
	if len(recent) > 0 { // runs in memory are not read, so that none is listed twice
		numbers := make([]string, len(recent))
		for i := range recent {
			numbers[i] = strconv.FormatUint(recent[i].Number, 10)
		}
		sql += " AND NOT (origin = {origin:UUID} AND has({numbers:Array(Int64)}, sequence))"
		params = append(params, clickhouse.Param{Name: "origin", Type: "UUID", Value: memory.Origin.String()},
			clickhouse.Param{Name: "numbers", Type: "Array(Int64)", Value: "[" + strings.Join(numbers, ",") + "]"})
	}
	place, leave, err := enter(ctx)
	if err != nil {
		return runs, err
	}
	defer leave()
	kept := len(runs)
	err = l.Shards.Of(project).ReadLog(ctx, place, clickhouse.Query{SQL: sql + " ORDER BY at DESC, origin, sequence DESC LIMIT {most:Int64}", Project: project, Params: params},
		func(cells []clickhouse.Cell) error {
			r := reader{cells: cells}
			run := runlog.Run{
				At: r.time(), Took: time.Duration(r.int()) * time.Microsecond, Execution: r.uuid(), Version: int(r.int()), Rows: int(r.int()), Status: int(r.int()),
				Cache: cacheStatus(r.text()), Code: r.code(), Key: r.text(), Customer: r.text(), Number: uint64(r.int()), //nolint:gosec // a count
			}
			runs = append(runs, run)
			return r.err
		})
	if err != nil {
		return runs[:kept], err
	}
	slices.SortStableFunc(runs, func(a, b runlog.Run) int { return b.At.Compare(a.At) })
	return runs[:min(len(runs), maxRuns)], nil
}

// Enter takes a place for a query of the log.
type Enter func(context.Context) (at *admission.Place, leave func(), err error)

// Usage is how an endpoint was used, on all servers.
type Usage struct {
	runlog.Usage

	Keys, Customers []Part // most runs of the day first
}

// Part is the runs of a key or a customer.
type Part struct {
	Name string
	runlog.Windows
}

// maxParts is how many keys and how many customers of an endpoint are shown separately, and maxTotals for how many of each the totals are read to find them.
const (
	maxParts  = 100
	maxTotals = 10_000
)

// Usage counts the runs of endpoints in the last hour and the last day on all servers, by endpoint id; whole also counts versions, keys and customers
// separately. since is the first counted five minutes of the project; zero for none. ok is false if there is no table to read.
func (l *Log) Usage(ctx context.Context, enter Enter, project int64, endpoints []string, whole bool, now time.Time) (used map[string]*Usage, since time.Time, ok bool, err error) {
	if !l.has(project) {
		return nil, since, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	waiting, confirmed := l.unwritten(project)
	place, leave, err := enter(ctx)
	if err != nil {
		return nil, since, false, err
	}
	defer leave()
	b := newBuilder(endpoints, now)
	empty := runlog.NewWindows(now)
	where, params := l.countsFrom(endpoints, empty.Day.From, confirmed)
	params = append(params, moment("hour", empty.Hour.From))
	who := "toInt64(0) AS v, '' AS k, '' AS c"
	if whole {
		all, err := l.totals(ctx, place, clickhouse.Query{SQL: where, Project: project, Params: append(params, moment("now", now))})
		if err != nil {
			return nil, since, false, err
		}
		for _, w := range waiting {
			all.add(w.what, w.calls, &empty.Day)
		}
		keys, customers := b.tellApart(all)
		who = "version AS v, if(has({keys:Array(String)}, key_id), key_id, '') AS k, if(has({customers:Array(String)}, customer), customer, '') AS c"
		params = append(params, clickhouse.ArrayParam("keys", "String", keys), clickhouse.ArrayParam("customers", "String", customers))
	}
	for _, w := range waiting {
		b.add(w.what, w.calls)
	}
	// The hour is shown in steps of five minutes, and the day in steps of an hour.
	sql := "SELECT endpoint_id, " + who + ", toInt64(toUnixTimestamp(if(at >= {hour:DateTime64(6, 'UTC')}, toDateTime(at), toStartOfHour(toDateTime(at))))) AS step, " +
		"outcome, duration, toInt64(sum(calls)) FROM " + physical.RunLog + " " + where + "GROUP BY endpoint_id, v, k, c, step, outcome, duration"
	err = l.Shards.Of(project).ReadLog(ctx, place, clickhouse.Query{SQL: sql, Project: project, Params: params}, func(cells []clickhouse.Cell) error {
		r := reader{cells: cells}
		what := runlog.Counted{
			Project: project, Endpoint: r.text(), Who: runlog.Who{Version: int(r.int()), Key: r.text(), Customer: r.text()}, From: r.int(),
			Outcome: runlog.Outcome(r.text()), Duration: int(r.int()),
		}
		b.add(what, r.int())
		return r.err
	})
	if err != nil {
		return nil, since, false, err
	}
	err = l.Shards.Of(project).ReadLog(ctx, place, clickhouse.Query{
		SQL: "SELECT min(at), count() FROM " + physical.RunLog + " WHERE entry = 'count' AND at > {after:DateTime64(6, 'UTC')}", Project: project,
		Params: []clickhouse.Param{moment("after", kept(time.Time{}))},
	}, func(cells []clickhouse.Cell) error {
		r := reader{cells: cells}
		if first := r.time(); r.int() > 0 {
			since = first
		}
		return r.err
	})
	return b.done(), since, err == nil, err
}

// Days counts the runs of endpoints in the last day on all servers, by endpoint id, at less cost than Usage. ok is false if there is no table to read.
func (l *Log) Days(ctx context.Context, enter Enter, project int64, endpoints []string, now time.Time) (days map[string]*runlog.Counts, ok bool, err error) {
	if !l.has(project) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	waiting, confirmed := l.unwritten(project)
	place, leave, err := enter(ctx)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	days = make(map[string]*runlog.Counts, len(endpoints))
	for _, id := range endpoints {
		days[id] = new(runlog.Counts)
	}
	in := runlog.NewWindows(now).Day
	for _, w := range waiting {
		if day := days[w.what.Endpoint]; day != nil && in.Covers(w.what) {
			day.Count(w.what, w.calls)
		}
	}
	where, params := l.countsFrom(endpoints, in.From, confirmed)
	err = l.Shards.Of(project).ReadLog(ctx, place, clickhouse.Query{
		SQL: "SELECT endpoint_id, outcome, duration, toInt64(sum(calls)) FROM " + physical.RunLog + " " + where +
			"AND at <= {now:DateTime64(6, 'UTC')} GROUP BY endpoint_id, outcome, duration",
		Project: project, Params: append(params, moment("now", now)),
	}, func(cells []clickhouse.Cell) error {
		r := reader{cells: cells}
		what := runlog.Counted{Endpoint: r.text(), Outcome: runlog.Outcome(r.text()), Duration: int(r.int())}
		if day := days[what.Endpoint]; day != nil {
			day.Count(what, r.int())
		}
		return r.err
	})
	return days, err == nil, err
}

// countsFrom returns the condition for the rows that count the runs of endpoints from a time on, without this process's rows after the last confirmed batch.
func (l *Log) countsFrom(endpoints []string, from time.Time, confirmed int64) (where string, params []clickhouse.Param) {
	where = "WHERE entry = 'count' AND endpoint_id IN {endpoints:Array(String)} AND at >= {day:DateTime64(6, 'UTC')} " +
		"AND NOT (origin = {origin:UUID} AND sequence > {confirmed:Int64}) "
	return where, []clickhouse.Param{
		clickhouse.ArrayParam("endpoints", "String", endpoints), moment("day", from),
		{Name: "origin", Type: "UUID", Value: l.origin.String()},
		{Name: "confirmed", Type: "Int64", Value: strconv.FormatInt(confirmed, 10)},
	}
}

// unwritten returns the counts of a project that are in no confirmed batch, and the number of the last confirmed batch.
func (l *Log) unwritten(project int64) (counts []count, confirmed int64) {
	l.gather(true)
	q := l.of(project)
	if q == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range []*batch{q.waiting, q.writing} {
		if b == nil {
			continue
		}
		for what, calls := range b.counts {
			if what.Project == project {
				counts = append(counts, count{what, calls})
			}
		}
	}
	return counts, q.confirmed
}

// count is how many runs of a kind there were.
type count struct {
	what  runlog.Counted
	calls int64
}

// part is a key or a customer of an endpoint.
type part struct {
	endpoint string
	kind     partKind
	name     string
}

type partKind string

const (
	keyPart      partKind = "key"
	customerPart partKind = "customer"
)

// totals are the runs of keys and customers in a day.
type totals map[part]int64

// totals reads the totals in ClickHouse, most runs first; of.SQL is the condition on the rows.
func (l *Log) totals(ctx context.Context, place *admission.Place, of clickhouse.Query) (totals, error) {
	of.SQL = "SELECT endpoint_id, kind, name, toInt64(sum(calls)) AS total FROM " + physical.RunLog +
		" ARRAY JOIN ['" + string(keyPart) + "', '" + string(customerPart) + "'] AS kind, [toString(key_id), toString(customer)] AS name " + of.SQL +
		"AND at <= {now:DateTime64(6, 'UTC')} AND name != '' AND outcome != '" + string(runlog.Cached) + "' " +
		"GROUP BY endpoint_id, kind, name ORDER BY total DESC LIMIT " + strconv.Itoa(maxTotals) + " BY endpoint_id, kind"
	all := totals{}
	err := l.Shards.Of(of.Project).ReadLog(ctx, place, of, func(cells []clickhouse.Cell) error {
		r := reader{cells: cells}
		all[part{r.text(), partKind(r.text()), r.text()}] += r.int()
		return r.err
	})
	return all, err
}

// add adds runs, if they are within a window.
func (t totals) add(what runlog.Counted, calls int64, in *runlog.Window) {
	if what.Outcome == runlog.Cached || !in.Covers(what) { // Cached is among Answered
		return
	}
	if what.Key != "" {
		t[part{what.Endpoint, keyPart, what.Key}] += calls
	}
	if what.Customer != "" {
		t[part{what.Endpoint, customerPart, what.Customer}] += calls
	}
}

// builder sums up counts.
type builder struct {
	used  map[string]*building
	whole bool
	now   time.Time
}

type building struct {
	Usage
	versions        map[int]*runlog.Windows
	keys, customers map[string]*runlog.Windows // those shown separately
}

func newBuilder(endpoints []string, now time.Time) *builder {
	b := &builder{used: make(map[string]*building, len(endpoints)), now: now}
	for _, id := range endpoints {
		one := &building{versions: map[int]*runlog.Windows{}, keys: map[string]*runlog.Windows{}, customers: map[string]*runlog.Windows{}}
		one.Windows = runlog.NewWindows(now)
		b.used[id] = one
	}
	return b
}

// tellApart makes the builder count versions separately, and for each endpoint the keys and customers with most runs: windows take much more memory
// than totals. It returns these keys and customers of all endpoints.
func (b *builder) tellApart(all totals) (keys, customers []string) {
	b.whole = true
	ordered := slices.SortedFunc(maps.Keys(all), func(p, q part) int {
		return cmp.Or(cmp.Compare(all[q], all[p]), strings.Compare(p.name, q.name))
	})
	for _, p := range ordered {
		one := b.used[p.endpoint]
		if one == nil {
			continue
		}
		into, names := one.keys, &keys
		if p.kind == customerPart {
			into, names = one.customers, &customers
		}
		if len(into) < maxParts {
			into[p.name], *names = new(runlog.NewWindows(b.now)), append(*names, p.name)
		}
	}
	return keys, customers
}

func (b *builder) add(what runlog.Counted, calls int64) {
	one := b.used[what.Endpoint]
	if one == nil {
		return
	}
	one.Count(what, calls)
	if !b.whole {
		return
	}
	if what.Version > 0 {
		w := one.versions[what.Version]
		if w == nil {
			w = new(runlog.NewWindows(b.now))
			one.versions[what.Version] = w
		}
		w.Count(what, calls)
	}
	for _, w := range []*runlog.Windows{one.keys[what.Key], one.customers[what.Customer]} {
		if w != nil {
			w.Count(what, calls)
		}
	}
}

func (b *builder) done() map[string]*Usage {
	out := make(map[string]*Usage, len(b.used))
	for id, one := range b.used {
		for _, version := range slices.Backward(slices.Sorted(maps.Keys(one.versions))) {
			one.Versions = append(one.Versions, runlog.VersionUsage{Version: version, Windows: *one.versions[version]})
		}
		one.Keys, one.Customers = parts(one.keys), parts(one.customers)
		out[id] = &one.Usage
	}
	return out
}

func parts(all map[string]*runlog.Windows) []Part {
	list := make([]Part, 0, len(all))
	for name, w := range all {
		list = append(list, Part{name, *w})
	}
	slices.SortFunc(list, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Day.Calls(), a.Day.Calls()), strings.Compare(a.Name, b.Name))
	})
	return list
}

// reader reads the cells of a row one after the other.
type reader struct {
	cells []clickhouse.Cell
	err   error
}

func (r *reader) next() clickhouse.Cell {
	c := r.cells[0]
	r.cells = r.cells[1:]
	return c
}

func (r *reader) text() string { return strings.Clone(r.next().Text()) }

func (r *reader) int() int64 {
	n, err := r.next().Int()
	r.err = cmp.Or(r.err, err)
	return n
}

func (r *reader) time() time.Time {
	at, err := r.next().Time()
	r.err = cmp.Or(r.err, err)
	return at.UTC()
}

func (r *reader) uuid() uuid.UUID {
	id, err := uuid.Parse(r.next().Text())
	r.err = cmp.Or(r.err, err)
	return id
}

// code returns a word; nil for an empty one.
func (r *reader) code() *string {
	if word := r.text(); word != "" {
		return &word
	}
	return nil
}
