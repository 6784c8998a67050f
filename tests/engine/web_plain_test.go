package engine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file answers the queries of web analytics in plain Go, straight from the definitions and as slowly as it likes.

// webSession is what the events of a session say of it; the zero value is that of events without one.
type webSession struct {
	id         string
	start, end time.Time
	counted    int
	first      map[string]string // by property: of the first page or screen that has it, else of the first event
	last       map[string]string
	seen       map[string]bool // the properties that a page or screen has
	clicked    *string
}

func (e *trendEvent) session() string {
	id, _ := e.Properties["$session_id"].(string)
	if len(id) != 36 || id[14] != '7' {
		return ""
	}
	return id
}

func (e *trendEvent) isSeen() bool { return e.Event == "$pageview" || e.Event == "$screen" }

// text is a property, nil for none.
func (e *trendEvent) text(name string) *string {
	text, ok := e.Properties[name].(string)
	if !ok {
		return nil
	}
	return &text
}

// float is a property that is a number or reads as one, nil for none.
func (e *trendEvent) float(name string) *float64 {
	n, err := strconv.ParseFloat(fmt.Sprint(e.Properties[name]), 64)
	if err != nil {
		return nil
	}
	return &n
}

func sessionsOf(events []trendEvent) map[string]*webSession {
	out := map[string]*webSession{"": {}}
	byTime := slices.SortedFunc(slices.Values(events), func(a, b trendEvent) int { return a.Timestamp.Compare(b.Timestamp) })
	for _, isSeen := range []bool{true, false} { // pages and screens go before all others
		for i := range byTime {
			e := &byTime[i]
			id := e.session()
			if id == "" || e.isSeen() != isSeen {
				continue
			}
			s := out[id]
			if s == nil {
				s = &webSession{id: id, start: e.Timestamp, end: e.Timestamp, first: map[string]string{}, last: map[string]string{}, seen: map[string]bool{}}
				out[id] = s
			}
			s.see(e)
		}
	}
	for i := range byTime {
		if s := out[byTime[i].session()]; s.id != "" && byTime[i].text("$external_click_url") != nil {
			s.clicked = byTime[i].text("$external_click_url")
		}
	}
	return out
}

func (s *webSession) see(e *trendEvent) {
	if e.Timestamp.Before(s.start) {
		s.start = e.Timestamp
	}
	if e.Timestamp.After(s.end) {
		s.end = e.Timestamp
	}
	if e.isSeen() || e.Event == "$autocapture" {
		s.counted++
	}
	for name := range e.Properties {
		text := e.text(name)
		if text == nil {
			continue
		}
		if _, ok := s.first[name]; !ok {
			s.first[name] = *text
		}
		if _, ok := s.seen[name]; !ok || e.isSeen() { // other events count only where no page or screen has any
			s.last[name] = *text
		}
		if e.isSeen() {
			s.seen[name] = true
		}
	}
}

// bounced is nil where nothing was seen.
func (s *webSession) bounced() *float64 {
	if s.id == "" || s.counted == 0 {
		return nil
	}
	if s.counted > 1 || s.end.Sub(s.start) >= 10*time.Second {
		return new(0.0)
	}
	return new(1.0)
}

func (s *webSession) entry(name string) *string {
	text, ok := s.first[name]
	if !ok {
		return nil
	}
	return &text
}

func pathOf(address *string) *string {
	if address == nil {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil {
		panic(err)
	}
	return &u.Path
}

func domainOf(address *string) *string {
	if address == nil {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil {
		panic(err)
	}
	return new(u.Hostname())
}

func anyOf[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func or(texts ...*string) string {
	for _, text := range texts {
		if text != nil {
			return *text
		}
	}
	return "(none)"
}

// value is what a table tells an event apart by, and whether it has a row for it.
func (q *webQuery) value(by string, e *trendEvent, s *webSession) (value any, shown bool) {
	list := func(parts ...any) any { return parts }
	switch by {
	case "Page":
		value = anyOf(q.cleaned(e.text("$pathname")))
	case "InitialPage":
		value = anyOf(q.cleaned(pathOf(s.entry("$current_url"))))
	case "ExitPage":
		if last, ok := s.last["$current_url"]; ok {
			value = anyOf(q.cleaned(pathOf(&last)))
		}
	case "ExitClick":
		value = anyOf(s.clicked)
	case "ScreenName":
		value = anyOf(e.text("$screen_name"))
	case "PreviousPage":
		referrer, current := e.text("$referrer"), e.text("$current_url")
		switch {
		case e.text("$prev_pageview_pathname") != nil:
			value = anyOf(q.cleaned(e.text("$prev_pageview_pathname")))
		case referrer != nil && current != nil && *domainOf(referrer) == *domainOf(current):
			value = anyOf(q.cleaned(pathOf(referrer)))
		default:
			value = anyOf(referrer)
		}
	case "InitialReferringDomain":
		value = anyOf(s.entry("$referring_domain"))
	case "InitialUTMSource":
		return anyOf(s.entry("utm_source")), true
	case "InitialUTMSourceMediumCampaign":
		referrer := s.entry("$referring_domain")
		if referrer != nil {
			*referrer = "referrer:" + *referrer // a copy
		}
		value = or(s.entry("utm_source"), referrer) + " / " + or(s.entry("utm_medium")) + " / " + or(s.entry("utm_campaign"))
	case "Browser", "Language":
		value = anyOf(e.text(map[string]string{"Browser": "$browser", "Language": "$browser_language"}[by]))
	case "Timezone":
		if n := e.float("$timezone_offset"); n != nil {
			value = -*n / 60
		}
	case "Viewport":
		width, height := e.float("$viewport_width"), e.float("$viewport_height")
		return list(anyOf(width), anyOf(height)), width != nil && height != nil && *width > 0 && *height > 0
	case "City":
		city := e.text("$geoip_city_name")
		return list(anyOf(e.text("$geoip_country_code")), anyOf(city)), city != nil
	default:
		panic(by)
	}
	return value, value != nil
}

func (q *webQuery) cleaned(path *string) *string {
	if path == nil || !q.clean {
		return path
	}
	out := digits.ReplaceAllString(*path, ":id")
	return &out
}

// webVisit is a session by a value.
type webVisit struct {
	value                any
	session              *webSession
	visitor, converted   string // by the order of the engine
	seen, conversions    float64
	scrolls, reads       float64
	scrolled, readScroll float64
}

// firstPerson is the smaller of two people by the order of the engine, which begins with the second half of an id.
func firstPerson(a, b string) string {
	key := func(id string) string { return id[19:] + id[:18] }
	if a == "" || b != "" && key(b) < key(a) {
		return b
	}
	return a
}

// passes reports whether an event gets through the filters. page says what becomes of those by the path of a page.
func (q *webQuery) passes(e *trendEvent, s *webSession, page string) bool {
	for _, filter := range q.filters {
		switch filter {
		case "browser":
			if b := e.text("$browser"); b == nil || *b != "Chrome" {
				return false
			}
		case "page":
			if p := e.text(page); page != "" && (p == nil || *p != "/a") {
				return false
			}
		case "source":
			if u := s.entry("utm_source"); u == nil || *u != "ads" {
				return false
			}
		case "plan":
			if e.plan != "pro" {
				return false
			}
		}
	}
	return !q.testAccounts || e.DistinctID != "id1"
}

func (q *webQuery) reaches(e *trendEvent) bool {
	switch q.goal {
	case "event":
		return e.Event == "paid"
	case "action":
		return e.Event == "paid" || e.Event == "$pageview" && e.Properties["$browser"] == "Chrome"
	}
	return false
}

// visits groups events by session and value.
func (q *webQuery) visits(events []trendEvent, by, page string, counts func(*trendEvent) bool) []*webVisit {
	sessions := sessionsOf(events)
	found := map[string]*webVisit{}
	var out []*webVisit
	for i := range events {
		e := &events[i]
		s := sessions[e.session()]
		if !counts(e) || !q.now.holds(e.Timestamp) && !q.before.holds(e.Timestamp) || !q.passes(e, s, page) {
			continue
		}
		var value any
		if by != "" {
			var shown bool
			if value, shown = q.value(by, e, s); !shown {
				continue
			}
		}
		v := found[jsonOf(value)+s.id]
		if v == nil {
			v = &webVisit{value: value, session: s}
			found[jsonOf(value)+s.id] = v
			out = append(out, v)
		}
		v.visitor = firstPerson(v.visitor, q.people[e.DistinctID])
		v.seen++
		if q.reaches(e) {
			v.conversions++
			v.converted = firstPerson(v.converted, q.people[e.DistinctID])
		}
		if n := e.float("$prev_pageview_max_scroll_percentage"); n != nil {
			v.scrolls, v.scrolled = v.scrolls+*n, v.scrolled+1
		}
		if n := e.float("$prev_pageview_max_content_percentage"); n != nil {
			v.readScroll++
			if *n > 0.8 {
				v.reads++
			}
		}
	}
	return out
}

func jsonOf(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// webSpan is a closed span of time; nil holds nothing.
type webSpan struct{ from, to time.Time }

func (s *webSpan) holds(t time.Time) bool { return s != nil && !t.Before(s.from) && !t.After(s.to) }

// webColumn is a number over the visits whose sessions began in a span, nil for none. Whole takes all visits.
func webColumn(name string, visits []*webVisit, span *webSpan, whole bool) *float64 {
	people := map[string]bool{}
	sum, weight := 0.0, 0.0
	for _, v := range visits {
		if !whole && (v.session.id == "" || !span.holds(v.session.start)) {
			continue
		}
		switch name {
		case "visitors":
			people[v.visitor] = true
		case "views":
			sum += v.seen
		case "total_conversions":
			sum += v.conversions
		case "unique_conversions":
			people[v.converted] = v.converted != ""
		case "bounce_rate":
			if b := v.session.bounced(); b != nil {
				sum, weight = sum+*b, weight+1
			}
		case "average_scroll_percentage":
			sum, weight = sum+v.scrolls, weight+v.scrolled
		case "scroll_gt80_percentage":
			sum, weight = sum+v.reads, weight+v.readScroll
		}
	}
	switch name {
	case "visitors", "unique_conversions":
		delete(people, "")
		return new(float64(len(people)))
	case "views", "total_conversions":
		return &sum
	}
	if weight == 0 {
		return nil
	}
	return new(sum / weight)
}

// webRow is a row of a table.
type webRow struct {
	value   any
	numbers map[string][2]*float64
}

var webColumns = map[string]string{
	"Visitors": "visitors", "Views": "views", "BounceRate": "bounce_rate", "AverageScrollPercentage": "average_scroll_percentage",
	"TotalConversions": "total_conversions", "UniqueConversions": "unique_conversions", "ConversionRate": "conversion_rate",
}

func (q *webQuery) columns() []string {
	switch {
	case q.goal != "":
		return []string{"visitors", "total_conversions", "unique_conversions", "conversion_rate"}
	case q.bounces && q.scrolls && q.by == "Page":
		return []string{"visitors", "views", "bounce_rate", "average_scroll_percentage", "scroll_gt80_percentage"}
	case q.bounces:
		return []string{"visitors", "views", "bounce_rate"}
	}
	return []string{"visitors", "views"}
}

// table is the answer of a table.
func (q *webQuery) table(events []trendEvent) (rows [][]any, more bool) {
	all := q.rows(events)
	order := []string{}
	for _, name := range []string{webColumns[q.order], "unique_conversions", "total_conversions", "visitors", "views"} {
		if slices.Contains(q.columns(), name) && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	slices.SortFunc(all, func(a, b *webRow) int {
		for _, name := range order {
			for period := range 2 {
				if c := compareNumbers(a.numbers[name][period], b.numbers[name][period], q.ascending); c != 0 {
					return c
				}
			}
		}
		return compareValues(a.value, b.value)
	})
	sum := 0.0
	for _, row := range all {
		if n := row.numbers[order[0]][0]; n != nil {
			sum += *n
		}
	}
	for _, row := range all {
		out := []any{row.value}
		for _, name := range q.columns() {
			out = append(out, []any{anyOf(row.numbers[name][0]), anyOf(row.numbers[name][1])})
		}
		fill := anyOf(row.numbers[order[0]][0])
		if !strings.Contains(order[0], "rate") && !strings.Contains(order[0], "percentage") {
			fill = nil
			if sum > 0 {
				fill = *row.numbers[order[0]][0] / sum
			}
		}
		rows = append(rows, append(out, fill, ""))
	}
	rows = rows[min(q.offset, len(rows)):]
	if len(rows) > q.limit {
		return rows[:q.limit], true
	}
	return rows, false
}

// compareNumbers puts null last, whatever the direction.
func compareNumbers(a, b *float64, ascending bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case ascending:
		return cmp.Compare(*a, *b)
	}
	return cmp.Compare(*b, *a)
}

func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b)
		}
		return -1
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b)
		}
		return -1
	case []any:
		for i := range a {
			if c := compareValues(a[i], b.([]any)[i]); c != 0 {
				return c
			}
		}
		return 0
	}
	if b == nil {
		return 0
	}
	return 1
}

func (q *webQuery) rows(events []trendEvent) []*webRow {
	byValue := func(visits []*webVisit) (map[string][]*webVisit, []any) {
		out, values := map[string][]*webVisit{}, []any{}
		for _, v := range visits {
			if out[jsonOf(v.value)] == nil {
				values = append(values, v.value)
			}
			out[jsonOf(v.value)] = append(out[jsonOf(v.value)], v)
		}
		return out, values
	}
	counted := func(e *trendEvent) bool { return e.isSeen() || q.reaches(e) }
	pages := q.by == "Page" && q.goal == "" && q.bounces
	visits := q.visits(events, q.by, "$pathname", counted)
	if q.by == "Language" {
		nameLanguages(visits)
	}
	own, values := byValue(visits)
	entered, _ := byValue(q.visits(events, "InitialPage", "", counted))
	left, _ := byValue(q.leaving(events))
	var out []*webRow
	for _, value := range values {
		row := &webRow{value: value, numbers: map[string][2]*float64{}}
		for _, name := range q.columns() {
			from := own
			switch {
			case name == "conversion_rate":
				continue
			case pages && name == "bounce_rate":
				from = entered
			case strings.Contains(name, "percentage"):
				from = left
			}
			numbers := [2]*float64{webColumn(name, from[jsonOf(value)], q.now, q.before == nil && !pages)}
			switch {
			case q.before != nil:
				numbers[1] = webColumn(name, from[jsonOf(value)], q.before, false)
			case pages && (name == "visitors" || name == "views"):
				numbers[1] = new(0.0)
			}
			row.numbers[name] = numbers
		}
		if q.goal != "" {
			row.numbers["conversion_rate"] = conversionRates(row.numbers["visitors"], row.numbers["unique_conversions"])
		}
		out = append(out, row)
	}
	return out
}

func conversionRates(visitors, converted [2]*float64) (out [2]*float64) {
	for i := range out {
		if visitors[i] != nil && *visitors[i] > 0 {
			out[i] = new(*converted[i] / *visitors[i])
		}
	}
	return out
}

// leaving are the visits by the page before.
func (q *webQuery) leaving(events []trendEvent) []*webVisit {
	before := slices.Clone(events)
	for i := range before { // by the page before, as if it were the page
		e := &before[i]
		e.Properties = maps.Clone(e.Properties)
		e.Properties["$pathname"] = e.Properties["$prev_pageview_pathname"]
	}
	return q.visits(before, "Page", "$pathname", func(e *trendEvent) bool { return e.isSeen() || e.Event == "$pageleave" })
}

// nameLanguages names languages by the region that most visits of them have, the first of several by name.
func nameLanguages(visits []*webVisit) {
	regions := map[string]map[string]int{}
	parts := func(v *webVisit) (string, string) {
		parts := strings.Split(v.value.(string), "-")
		return parts[0], strings.Join(parts[1:min(2, len(parts))], "")
	}
	for _, v := range visits {
		name, region := parts(v)
		if regions[name] == nil {
			regions[name] = map[string]int{}
		}
		regions[name][region]++
	}
	for _, v := range visits {
		name, _ := parts(v)
		best := ""
		for region, n := range regions[name] {
			if most, ok := regions[name][best]; !ok || n > most || n == most && region < best {
				best = region
			}
		}
		v.value = name + "-" + best
	}
}

// overview is the answer of an overview: the numbers, and those before.
func (q *webQuery) overview(events []trendEvent) (items []map[string]any) {
	visits := q.visits(events, "", "$pathname", func(e *trendEvent) bool { return (e.isSeen() || q.reaches(e)) && e.session() != "" })
	visits = slices.DeleteFunc(visits, func(v *webVisit) bool { return !q.now.holds(v.session.start) && !q.before.holds(v.session.start) })
	number := func(name string, span *webSpan) *float64 {
		switch name {
		case "sessions", "session duration":
			n, sum := 0.0, 0.0
			for _, v := range visits {
				if span.holds(v.session.start) {
					n, sum = n+1, sum+v.session.end.Sub(v.session.start).Seconds()
				}
			}
			switch {
			case name == "sessions":
				return &n
			case n == 0:
				return nil
			}
			return new(sum / n)
		case "bounce rate":
			if n := webColumn("bounce_rate", visits, span, false); n != nil {
				return new(100 * *n)
			}
			return nil
		case "conversion rate":
			all, some := webColumn("visitors", visits, span, false), webColumn("unique_conversions", visits, span, false)
			if *all == 0 {
				return nil
			}
			return new(100 * *some / *all)
		}
		return webColumn(strings.ReplaceAll(name, " ", "_"), visits, span, false)
	}
	names := []string{"visitors", "views", "sessions", "session duration", "bounce rate"}
	if q.goal != "" {
		names = []string{"visitors", "total conversions", "unique conversions", "conversion rate"}
	}
	for _, name := range names {
		item := map[string]any{"key": name, "value": anyOf(number(name, q.now)), "previous": nil}
		if q.before != nil {
			item["previous"] = anyOf(number(name, q.before))
		}
		items = append(items, item)
	}
	return items
}
