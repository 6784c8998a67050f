package heatmap

import "github.com/caddy-analytics/caddy-analytics/compiler/query"

// Query counts events, or people, by weekday and hour (contract: clients-queries.md, section 8).
type Query struct {
	query.Common
	// Series are what is counted. Only the first is used, as in PostHog.
	Series []query.Series `json:"series"`
	// Goal is counted instead of the event of the series; nil for none. An action of the series takes precedence over it.
	Goal *query.Goal `json:"goal,omitempty"`
	// EveryHour counts people in every hour in which they have an event, instead of the hours in which their sessions began.
	EveryHour bool `json:"every_hour,omitempty"`
}

// Kind returns CalendarHeatmapQuery.
func (*Query) Kind() string { return "CalendarHeatmapQuery" }

// Canonical leaves out what only labels the query.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Around returns the modifiers of the node; there is no query inside it.
func (q *Query) Around() (query.Modifiers, query.Node) { return q.Modifiers, nil }

// people reports whether people are counted instead of events. There must be a series.
func (q *Query) people() bool { return q.Series[0].Math.Kind == "dau" }

// Read reads a CalendarHeatmapQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Common: r.Common(o), Series: r.Series(o)}
	r.Interval(o) // rows are weekdays, whatever the interval
	if given, ok := o.Take("conversionGoal"); ok {
		q.Goal = goal(r, r.Object(given, o.Field("conversionGoal")))
	}
	bySession := r.BySession(o)
	q.EveryHour = bySession != nil && !*bySession
	o.Close()
	return q
}

func goal(r *query.Reader, o *query.Object) *query.Goal {
	out := &query.Goal{At: o.At.Attr}
	if event, ok := query.Take[string](o, "customEventName", "string_type", "Input should be a valid string"); ok {
		out.Event = &event
	}
	if action, ok := o.ActionID("actionId"); ok {
		out.Action = &action
	}
	o.Close()
	if given := o.Given; given != nil && given["customEventName"] == nil && given["actionId"] == nil {
		r.Add(o.At, "missing", "Either actionId or customEventName is required")
	}
	return out
}
