package funnels

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The most steps and exclusions of a funnel (contract: section 13).
const (
	mostSteps      = 32
	mostExclusions = 15
)

// checker finds what no funnel can be made of (contract: section 1).
type checker struct {
	q *query.Funnels
	n int
}

// check gives the first mistake, a *diag.Error.
func check(q *query.Funnels) error {
	c := checker{q, len(q.Series)}
	switch {
	case c.n < 2:
		return c.mistake("series", "Funnels require at least two steps.")
	case c.n > mostSteps:
		return c.mistake("series", "Funnels can have at most %d steps, not %d.", mostSteps, c.n)
	case q.Viz == query.FunnelFlow:
		return c.mistake("funnelsFilter.funnelVizType", "The flow of a funnel is not supported: use steps, trends or time_to_convert.")
	case q.Window.TooLong():
		return c.mistake("funnelsFilter.funnelWindowInterval", "The conversion window may not be longer than a year.")
	case len(q.Exclusions) > mostExclusions:
		return c.mistake("funnelsFilter.exclusions", "Funnels can have at most %d exclusions, not %d.", mostExclusions, len(q.Exclusions))
	}
	for _, part := range []func() error{c.ends, c.exclusions, c.optional, c.attribution} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) mistake(field, format string, args ...any) error {
	return diag.Field(diag.InvalidInput, c.q.Field(field), format, args...)
}

// vizWords are what people call the ways to show a funnel.
var vizWords = map[query.FunnelViz]string{
	query.FunnelSteps: "steps", query.FunnelTrends: "trends", query.FunnelTimeToConvert: "time to convert",
}

// ends checks the steps that trends and times to convert are about.
func (c checker) ends() error {
	among := func(given *int, first, last int, field, word string) error {
		if given == nil || first <= *given && *given <= last {
			return nil
		}
		var all []string
		for i := first; i <= last; i++ {
			all = append(all, strconv.Itoa(i))
		}
		return c.mistake("funnelsFilter."+field, "Filter parameter %s can only be one of %s for %s!", word, strings.Join(all, ", "), vizWords[c.q.Viz])
	}
	if err := among(c.q.From, 0, c.n-2, "funnelFromStep", "funnel_from_step"); err != nil {
		return err
	}
	if err := among(c.q.To, 1, c.n-1, "funnelToStep", "funnel_to_step"); err != nil {
		return err
	}
	if c.q.FromStep() >= c.q.ToStep() {
		field := "funnelToStep"
		if c.q.To == nil {
			field = "funnelFromStep"
		}
		return c.mistake("funnelsFilter."+field, "Funnel from step index must be smaller than funnel to step index.")
	}
	return nil
}

func (c checker) exclusions() error {
	for i := range c.q.Exclusions {
		e := &c.q.Exclusions[i]
		field := "funnelsFilter.exclusions." + strconv.Itoa(i)
		switch {
		case e.From < 0 || e.From >= c.n-1:
			return c.mistake(field+".funnelFromStep", "Exclusion step index cannot be outside of the funnel's steps, 0 to %d.", c.n-2)
		case e.From >= e.To:
			return c.mistake(field+".funnelToStep", "Exclusion event range is invalid. End of range should be greater than start.")
		case e.To > c.n-1:
			return c.mistake(field+".funnelToStep", "Exclusion event range is invalid. End of range is greater than number of steps.")
		case c.q.Order == query.Unordered && (e.From != 0 || e.To != c.n-1):
			return c.mistake(field, "Partial exclusions are not allowed in unordered funnels: an exclusion has to reach from the first step to the last.")
		}
		for k := e.From; k <= e.To; k++ {
			if covers(&c.q.Series[k], &e.Series) {
				return c.mistake(field, "Exclusion steps cannot contain an event that's part of funnel steps.")
			}
		}
	}
	return nil
}

func (c checker) optional() error {
	for i := range c.q.Series {
		s := &c.q.Series[i]
		field := "series." + strconv.Itoa(i) + ".optionalInFunnel"
		switch {
		case !s.Optional:
		case c.q.Viz != query.FunnelSteps:
			return c.mistake(field, "Optional steps are not supported in funnels over time and times to convert.")
		case c.q.Order == query.Unordered:
			return c.mistake(field, "Optional steps are not supported in unordered funnels.")
		case i == 0:
			return c.mistake(field, "The first step cannot be optional.")
		case i+1 < c.n && !c.q.Series[i+1].Optional && covers(&c.q.Series[i+1], s):
			return c.mistake(field, "An optional step cannot be followed by a required step that its events satisfy as well.")
		}
	}
	return nil
}

func (c checker) attribution() error {
	if c.q.Attribution != query.ByStep || c.q.AttributionStep == nil {
		return nil
	}
	const field = "funnelsFilter.breakdownAttributionValue"
	switch step := *c.q.AttributionStep; {
	case step < 0 || step >= c.n:
		return c.mistake(field, "The step of the attribution is not one of the funnel's steps, 0 to %d.", c.n-1)
	case step != 0 && c.q.Order == query.Unordered:
		return c.mistake(field, "Only the first step can be used for the attribution of an unordered funnel.")
	}
	return nil
}

// covers tells that the events of a narrow step satisfy a broad one: they are of the same name, and its filters are among
// those of the narrow one.
func covers(broad, narrow *query.Series) bool {
	if broad.Kind != query.EventsNode || narrow.Kind != query.EventsNode || (broad.Event == nil) != (narrow.Event == nil) {
		return false
	}
	if broad.Event != nil && *broad.Event != *narrow.Event {
		return false
	}
	filters := filtersOf(narrow)
	return !slices.ContainsFunc(filtersOf(broad), func(f string) bool { return !slices.Contains(filters, f) })
}

// filtersOf are the filters of a step that all have to hold, as texts.
func filtersOf(s *query.Series) []string {
	var out []string
	var add func(c *query.Condition)
	add = func(c *query.Condition) {
		if c == nil {
			return
		}
		if c.Filter == nil && (!c.Or || len(c.All) == 1) {
			for i := range c.All {
				add(&c.All[i])
			}
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			panic("BUG: a filter cannot be written as JSON: " + err.Error())
		}
		out = append(out, string(text))
	}
	add(s.Properties)
	add(s.Fixed)
	return out
}
