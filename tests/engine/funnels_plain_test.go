package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// What follows answers funnels by walking over the events of each actor as PostHog does, one event after
// another, with nothing in common with the SQL that the compiler writes.

// funnelEvent is one random event.
type funnelEvent struct {
	name, flag, browser, group string
	uuid                       string
	set, person                int
	at                         int64 // microseconds since 1970
}

// funnelStep is a step or an exclusion of a random funnel.
type funnelStep struct {
	event    string // "" all
	flag     string // a filter; "" none
	optional bool
	math     string
	from, to int // of an exclusion, counted from 0
}

func (s *funnelStep) matches(e *funnelEvent) bool {
	return (s.event == "" || s.event == e.name) && (s.flag == "" || s.flag == e.flag)
}

// funnelRow is the steps of one value.
type funnelRow struct {
	Value           []string
	Counts          []float64
	Average, Median []float64 // 0 for none
}

// marked is an event with the steps (from 1) that it matches, and the moves that it guards as an exclusion.
type marked struct {
	*funnelEvent
	id     int
	steps  []int
	guards []int
	value  string
}

// rank sorts events of one time by the moves that they guard, and then by their steps. Moves with the same exclusions are one.
func (q *funnelQuery) rank(m *marked) (key int64) {
	for _, k := range m.steps {
		key |= 1 << k
	}
	for _, k := range m.guards {
		if !slices.ContainsFunc(m.guards, func(before int) bool { return before < k && q.guardedAlike(before, k) }) {
			key |= 1 << (32 + k)
		}
	}
	return key
}

func (x *funnelStep) guards(k int) bool { return x.from+2 <= k && k <= x.to+1 }

func (q *funnelQuery) guardedAlike(j, k int) bool {
	return !slices.ContainsFunc(q.exclusions, func(x funnelStep) bool { return x.guards(j) != x.guards(k) })
}

func (m *marked) alike(o *marked) bool {
	return slices.Equal(m.steps, o.steps) && slices.Equal(m.guards, o.guards)
}

// actorsOf gives the events of each actor of a set that take part, in order.
func (q *funnelQuery) actorsOf(events []funnelEvent, set int) map[string][]*marked {
	first := q.firstEvents(events)
	actors := map[string][]*marked{}
	for i := range events {
		e := &events[i]
		if e.set != set || e.at < q.lower.UnixMicro() || e.at > q.upper.UnixMicro() {
			continue
		}
		actor := fmt.Sprint(e.person)
		switch q.actor {
		case "group":
			actor = e.group
		case "hogql":
			actor = e.flag
		}
		if actor == "" {
			continue
		}
		m := &marked{funnelEvent: e, id: i, value: e.browser}
		for k := range q.steps {
			if q.steps[k].matches(e) && (q.steps[k].math == "" || first[k][e.person] == e) {
				m.steps = append(m.steps, k+1)
			}
		}
		for k := 2; k <= len(q.steps); k++ {
			if slices.ContainsFunc(q.exclusions, func(x funnelStep) bool { return x.matches(e) && x.guards(k) }) {
				m.guards = append(m.guards, k)
			}
		}
		if q.order == "strict" || len(m.steps)+len(m.guards) > 0 {
			actors[actor] = append(actors[actor], m)
		}
	}
	for _, all := range actors {
		slices.SortStableFunc(all, func(a, b *marked) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(q.rank(a), q.rank(b))) })
	}
	return actors
}

// firstEvents finds, for steps with first-time math, the one event of each person that can match.
func (q *funnelQuery) firstEvents(events []funnelEvent) []map[int]*funnelEvent {
	out := make([]map[int]*funnelEvent, len(q.steps))
	for k, s := range q.steps {
		if s.math == "" {
			continue
		}
		out[k] = map[int]*funnelEvent{}
		for i := range events {
			e := &events[i]
			named := s.event == "" || s.event == e.name
			if !named || s.math == "first_time_for_user_with_filters" && !s.matches(e) || e.at > q.upper.UnixMicro() {
				continue
			}
			if old := out[k][e.person]; old == nil || e.at < old.at || e.at == old.at && e.uuid < old.uuid {
				out[k][e.person] = e
			}
		}
	}
	return out
}

// run is the events that one actor is judged by, for one value; only is the value that events of step by (from 1) must have.
type run struct {
	value  string
	events []*marked
	by     int
	only   string
}

// runsOf splits the events of an actor by the breakdown (contract: funnels.md, section 9).
func (q *funnelQuery) runsOf(events []*marked) []run {
	var given []*marked
	for _, e := range events {
		if e.value != "" {
			given = append(given, e)
		}
	}
	touched := func(i int) []run {
		if len(given) == 0 {
			return []run{{events: events}}
		}
		return []run{{value: given[i].value, events: events}}
	}
	distinct := func(of []*marked) []string {
		var out []string
		for _, e := range of {
			if !slices.Contains(out, e.value) {
				out = append(out, e.value)
			}
		}
		return out
	}
	var out []run
	switch q.attribution {
	case "":
		return []run{{events: events}}
	case "first_touch":
		return touched(0)
	case "last_touch":
		return touched(len(given) - 1)
	case "all_events":
		for _, v := range distinct(events) {
			r := run{value: v}
			for _, e := range events {
				if e.value == v {
					r.events = append(r.events, e)
				}
			}
			out = append(out, r)
		}
	case "step":
		of := slices.DeleteFunc(slices.Clone(events), func(e *marked) bool { return q.order != "unordered" && !slices.Contains(e.steps, q.attributionStep+1) })
		for _, v := range distinct(of) {
			out = append(out, run{value: v, events: events, by: q.attributionStep + 1, only: v})
		}
	}
	return out
}

// attempt is one try to pass the funnel.
type attempt struct {
	step    int // the last one it reached; 0 for no attempt
	entry   int64
	spoiled bool
	onward  bool    // it was spoiled before it came to its last step
	times   []int64 // by step, from 1; 0 for steps that it did not take
	ids     []int
}

// matcher is the state machine of ordered and strict funnels (contract: funnels.md, sections 3, 5, 6 and 7).
type matcher struct {
	q    *funnelQuery
	r    *run
	last int
	slot []attempt // by step, from 1
	best attempt
}

func newMatcher(q *funnelQuery, r *run, last int) *matcher {
	return &matcher{q: q, r: r, last: last, slot: make([]attempt, len(q.steps)+2)}
}

func (m *matcher) finished() bool { return m.slot[m.last].step > 0 }

// match reports whether an event can take a step in this run.
func (m *matcher) match(e *marked, k int) bool {
	return slices.Contains(e.steps, k) && (k != m.r.by || e.value == m.r.only)
}

// event takes an event that stands alone; enters reports whether it may begin an attempt.
func (m *matcher) event(e *marked, enters bool) {
	for _, k := range e.guards {
		if k <= m.last {
			m.exclude(e, k)
		}
	}
	for k := m.last; k > 0; k-- {
		if m.match(e, k) && (k > 1 || enters) {
			if m.take(e, k, false); m.finished() {
				return
			}
		}
	}
	if m.q.order == "strict" {
		for k := 1; k <= m.last; k++ {
			if !slices.Contains(e.steps, k) {
				m.slot[k] = attempt{}
			}
		}
	}
}

func (m *matcher) exclude(e *marked, k int) {
	before, own := &m.slot[k-1], &m.slot[k]
	if before.step == 0 || e.at-before.entry > m.q.window || own.step > 0 && own.entry == before.entry {
		return
	}
	before.spoiled = true
	if m.best.step == k-1 && e.at-m.best.entry <= m.q.window {
		m.best.spoiled = true
	}
}

// take lets an event be step k; mixed reports whether it is one of several simultaneous events.
func (m *matcher) take(e *marked, k int, mixed bool) {
	next := attempt{step: k, entry: e.at, times: make([]int64, len(m.q.steps)+1)}
	if k > 1 {
		j := k - 1
		usable := func() bool { return m.slot[j].step > 0 && e.at-m.slot[j].entry <= m.q.window }
		for !usable() && j > 1 && m.q.steps[j-1].optional {
			j--
		}
		before := &m.slot[j]
		if !usable() || m.slot[k].step > 0 && m.slot[k].entry == before.entry || mixed && slices.Contains(before.ids, e.id) {
			return
		}
		next.entry, next.times, next.ids, next.spoiled = before.entry, slices.Clone(before.times), slices.Clone(before.ids), before.spoiled
	}
	next.times[k] = e.at
	next.ids = append(next.ids, e.id)
	if !next.spoiled {
		m.slot[k] = next
	}
	next.onward = next.spoiled
	if k > m.best.step || k == m.best.step && m.best.spoiled {
		m.best = next
	}
}

// walk goes over all events, with those that are simultaneous taken together (contract: funnels.md, section 4).
func (m *matcher) walk() {
	const tie = 50_000
	events := m.r.events
	for i := 0; i < len(events); {
		j := i
		mixed := false
		for j < len(events) && events[j].at-events[i].at <= tie {
			mixed = mixed || !events[j].alike(events[i])
			j++
		}
		group := events[i:j]
		i = j
		if !mixed {
			for _, e := range group {
				if m.event(e, true); m.finished() {
					return
				}
			}
			continue
		}
		for k := 1; k <= m.last; k++ {
			for _, e := range group {
				if m.match(e, k) {
					if m.take(e, k, true); m.finished() {
						return
					}
				}
			}
		}
	}
}

// outcome gives the times of the steps of a run, by step from 1; nil when it does not count.
func (q *funnelQuery) outcome(r *run) []int64 {
	n := len(q.steps)
	if q.order == "unordered" {
		u := queues{q: q, r: r}
		if u.walk(); u.record == 0 {
			return nil
		}
		return append(append([]int64{0}, u.fronts...), make([]int64, n-len(u.fronts))...)
	}
	m := newMatcher(q, r, n)
	if m.walk(); m.best.step == 0 || m.best.spoiled {
		return nil
	}
	return m.best.times
}

// gaps are the seconds that each step (from 1) took from the required one before it; 0 for none.
func (q *funnelQuery) gaps(times []int64) []float64 {
	out := make([]float64, len(times))
	before := int64(0)
	for k := 1; k < len(times); k++ {
		if q.steps[k-1].optional || times[k] == 0 {
			continue
		}
		if before > 0 {
			out[k] = float64(times[k]-before) / 1e6
		}
		before = times[k]
	}
	return out
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// plainSteps answers with the rows of steps of one set (contract: funnels.md, sections 9 and 10).
func (q *funnelQuery) plainSteps(events []funnelEvent, set int) []funnelRow {
	n := len(q.steps)
	type tally struct {
		counts []float64
		gaps   [][]float64
	}
	byValue := map[string]*tally{}
	for _, journey := range q.actorsOf(events, set) {
		for _, r := range q.runsOf(journey) {
			times := q.outcome(&r)
			if times == nil {
				continue
			}
			t := byValue[r.value]
			if t == nil {
				t = &tally{make([]float64, n), make([][]float64, n)}
				byValue[r.value] = t
			}
			for k, gap := range q.gaps(times)[1:] {
				if times[k+1] > 0 {
					t.counts[k]++
				}
				if gap > 0 {
					t.gaps[k] = append(t.gaps[k], gap)
				}
			}
		}
	}
	names := make([]string, 0, len(byValue))
	for name := range byValue {
		names = append(names, name)
	}
	backwards := func(a, b []float64) int {
		for k := n - 1; k >= 0; k-- {
			if c := cmp.Compare(b[k], a[k]); c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(backwards(byValue[a].counts, byValue[b].counts), strings.Compare(a, b))
	})
	var out []funnelRow
	if q.attribution != "" && len(names) > q.limit {
		other := &tally{make([]float64, n), make([][]float64, n)}
		for _, name := range names[q.limit:] {
			for k := range n {
				other.counts[k] += byValue[name].counts[k]
				other.gaps[k] = append(other.gaps[k], byValue[name].gaps[k]...)
			}
		}
		names = append(names[:q.limit:q.limit], "Other")
		byValue["Other"] = other
	}
	for _, name := range names {
		t := byValue[name]
		row := funnelRow{Value: []string{name}, Counts: t.counts, Average: make([]float64, n), Median: make([]float64, n)}
		for k, gaps := range t.gaps {
			if len(gaps) > 0 {
				sum := 0.0
				for _, g := range gaps {
					sum += g
				}
				row.Average[k], row.Median[k] = sum/float64(len(gaps)), median(gaps)
			}
		}
		out = append(out, row)
	}
	return out
}

// plainTimes answers with the histogram of times to convert: pairs of seconds and actors (contract: funnels.md, section 12).
func (q *funnelQuery) plainTimes(events []funnelEvent, set int) (bins [][2]float64, average float64) {
	var took []float64
	for _, journey := range q.actorsOf(events, set) {
		r := run{events: journey}
		if times := q.outcome(&r); times != nil && times[q.to+1] > 0 {
			took = append(took, max(0, float64(times[q.to+1]-times[q.from+1])/1e6))
		}
	}
	if len(took) == 0 {
		return [][2]float64{}, 0
	}
	n := min(max(q.bins, 1), 90)
	if q.bins == 0 {
		n = min(max(int(math.Ceil(math.Cbrt(float64(len(took))))), 1), 60)
	}
	low, high := math.Floor(slices.Min(took)), math.Ceil(slices.Max(took))
	width := cmp.Or(math.Ceil((high-low)/float64(n)), 60)
	for i := range n + 1 {
		bins = append(bins, [2]float64{low + float64(i)*width, 0})
	}
	for _, v := range took {
		bins[int(math.Floor((v-low)/width))][1]++
		average += v
	}
	return bins, average / float64(len(took))
}

// funnelCurve is the rates of one value.
type funnelCurve struct {
	Value []string  `json:"breakdown_value"`
	Days  []string  `json:"days"`
	Data  []float64 `json:"data"`
}

// plainTrends answers with rates over time (contract: funnels.md, section 11).
func (q *funnelQuery) plainTrends(events []funnelEvent, set int) []funnelCurve {
	type counts struct{ reached, converted float64 }
	byValue := map[string]map[int64]*counts{}
	if q.attribution == "" {
		byValue[""] = nil
	}
	zone := q.lower.Location()
	start := func(at int64) int64 {
		t := time.UnixMicro(at).In(zone)
		if q.interval == "hour" {
			return t.Truncate(time.Hour).UnixMicro()
		}
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, zone).UnixMicro()
	}
	for _, journey := range q.actorsOf(events, set) {
		for _, r := range q.runsOf(journey) {
			for period, step := range q.periodsOf(&r, start) {
				all := byValue[r.value]
				if all == nil {
					all = map[int64]*counts{}
					byValue[r.value] = all
				}
				c := all[period]
				if c == nil {
					c = &counts{}
					all[period] = c
				}
				if step > q.from {
					c.reached++
				}
				if step > q.to {
					c.converted++
				}
			}
		}
	}
	entrants := func(value string) (sum float64) {
		for _, c := range byValue[value] {
			sum += c.reached
		}
		return sum
	}
	values := slices.SortedFunc(maps.Keys(byValue), func(a, b string) int {
		return cmp.Or(cmp.Compare(entrants(b), entrants(a)), strings.Compare(b, a))
	})
	if q.attribution != "" {
		values = values[:min(len(values), q.limit)]
	}
	var out []funnelCurve
	for _, value := range values {
		periods := byValue[value]
		curve := funnelCurve{Value: []string{value}}
		if q.attribution == "" {
			curve.Value = nil
		}
		next := func(t time.Time) time.Time {
			if q.interval == "hour" {
				return t.Add(time.Hour)
			}
			return t.AddDate(0, 0, 1)
		}
		for t := time.UnixMicro(start(q.lower.UnixMicro())).In(zone); !t.After(q.upper); t = next(t) {
			layout := time.DateOnly
			if q.interval == "hour" {
				layout = time.DateTime
			}
			curve.Days = append(curve.Days, t.Format(layout))
			rate := 0.0
			if c := periods[t.UnixMicro()]; c != nil && c.reached > 0 {
				rate = math.RoundToEven(c.converted/c.reached*100*100) / 100
			}
			curve.Data = append(curve.Data, rate)
		}
		out = append(out, curve)
	}
	return out
}

// periodsOf gives the furthest step (from 1) of each period that a run enters in and that counts.
func (q *funnelQuery) periodsOf(r *run, start func(int64) int64) map[int64]int {
	out := map[int64]int{}
	if q.order == "unordered" {
		u := queues{q: q, r: r, leaves: func(e *marked, filled int) { out[start(e.at)] = max(out[start(e.at)], filled) }}
		u.walk()
		return out
	}
	records := map[int64]*matcher{}
	for _, e := range r.events {
		p := start(e.at)
		if records[p] == nil && slices.Contains(e.steps, 1) {
			records[p] = newMatcher(q, r, q.to+1)
		}
		for period, m := range records {
			if !m.finished() {
				m.event(e, period == p)
			}
		}
	}
	lost := false
	for period, m := range records {
		switch {
		case m.finished():
			out[period] = q.to + 1
		case m.best.step == 0:
		case !m.best.spoiled:
			out[period] = m.best.step
		default:
			lost = lost || m.best.onward
		}
	}
	for period, m := range records {
		if lost && !m.finished() {
			delete(out, period)
		}
	}
	return out
}
