package funnels

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The maximum numbers of steps and exclusions of a funnel (contract: funnels.md, section 13).
const (
	maxSteps      = 32
	maxExclusions = 15
)

// The codes of funnels that are refused, which are PostHog's.
const (
	stepsCode      diag.Code = "funnels_require_at_least_two_steps"
	maxStepsCode   diag.Code = "funnel_max_steps_exceeded"
	rangeCode      diag.Code = "funnel_step_range_invalid"
	exclusionsCode diag.Code = "funnel_exclusions_invalid"
	optionalCode   diag.Code = "funnel_optional_steps_invalid"
)

// checker finds mistakes that make a funnel impossible (contract: funnels.md, section 1).
type checker struct {
	q *Query
	n int
}

// check returns the first mistake, a *diag.Error.
func check(q *Query) error {
	c := checker{q, len(q.Series)}
	switch {
	case c.n < 2:
		return c.mistake(stepsCode, "series", "Funnels require at least two steps.")
	case c.n > maxSteps:
		return c.mistake(maxStepsCode, "series", "Funnels support up to %d steps.", maxSteps)
	case len(q.Exclusions) > maxExclusions:
		return c.mistake(diag.InvalidInput, "funnelsFilter.exclusions", "Funnels can have at most %d exclusions, not %d.", maxExclusions, len(q.Exclusions))
	}
	for _, part := range []func() error{c.ends, c.exclusions, c.optional, c.attribution} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) mistake(code diag.Code, field, format string, args ...any) error {
	return diag.Field(code, c.q.Field(field), format, args...)
}

// ends checks the steps that trends and times to convert are about. Times to convert have their own message for a wrong last step
// (contract: api.md, section 2.7).
func (c checker) ends() error {
	from, to := c.q.From, c.q.To
	switch {
	case from != nil && (*from < 0 || *from > c.n-2):
		return c.mistake(rangeCode, "funnelsFilter.funnelFromStep", "funnelFromStep is out of bounds. It must be between 0 and %d.", c.n-2)
	case to == nil:
		return nil
	case 1 <= *to && *to < c.n:
		if c.q.FromStep() >= *to {
			return c.mistake(rangeCode, "funnelsFilter.funnelToStep", "Funnel step range is invalid. funnelToStep should be greater than funnelFromStep.")
		}
		return nil
	case c.q.Viz != VizTimeToConvert:
		return c.mistake(rangeCode, "funnelsFilter.funnelToStep", "funnelToStep is out of bounds. It must be between 1 and %d.", c.n-1)
	}
	allowed := make([]string, c.n-1)
	for i := range allowed {
		allowed[i] = strconv.Itoa(i + 1)
	}
	return c.mistake(rangeCode, "funnelsFilter.funnelToStep", "Filter parameter funnel_to_step can only be one of %s for time to convert!", strings.Join(allowed, ", "))
}

func (c checker) exclusions() error {
	for i := range c.q.Exclusions {
		e := &c.q.Exclusions[i]
		field := "funnelsFilter.exclusions." + strconv.Itoa(i)
		switch {
		case c.q.Order == Unordered && (e.From != 0 || e.To != c.n-1):
			return c.mistake(exclusionsCode, field, "Partial Exclusions not allowed in unordered funnels")
		case e.From >= e.To:
			return c.mistake(exclusionsCode, field+".funnelToStep", "Exclusion event range is invalid. End of range should be greater than start.")
		case e.From < 0:
			return c.mistake(exclusionsCode, field+".funnelFromStep", "Exclusion event range is invalid. Start of range is before the first step.")
		case e.From >= c.n-1:
			return c.mistake(exclusionsCode, field+".funnelFromStep", "Exclusion event range is invalid. Start of range is greater than number of steps.")
		case e.To > c.n-1:
			return c.mistake(exclusionsCode, field+".funnelToStep", "Exclusion event range is invalid. End of range is greater than number of steps.")
		}
		for k := e.From; k <= e.To; k++ {
			if covers(&c.q.Series[k], &e.Series) {
				return c.mistake(exclusionsCode, field, "Exclusion steps cannot contain an event that's part of funnel steps.")
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
		case c.q.Viz != VizSteps, c.q.Order == Unordered:
			return c.mistake(optionalCode, field, `Optional funnel steps are only supported in funnels with step order Sequential or Strict and the graph type "Conversion Steps".`)
		case i == 0:
			return c.mistake(optionalCode, field, "The first step of a funnel cannot be optional.")
		case i+1 < c.n && !c.q.Series[i+1].Optional && covers(&c.q.Series[i+1], s):
			return c.mistake(optionalCode, field, "An optional step cannot be the same as the following required step.")
		}
	}
	return nil
}

func (c checker) attribution() error {
	if c.q.Attribution != ByStep || c.q.AttributionStep == nil {
		return nil
	}
	const field = "funnelsFilter.breakdownAttributionValue"
	switch step := *c.q.AttributionStep; {
	case step < 0 || step >= c.n:
		return c.mistake(diag.InvalidInput, field, "The step of the attribution is not one of the funnel's steps, 0 to %d.", c.n-1)
	case step != 0 && c.q.Order == Unordered:
		return c.mistake(diag.InvalidInput, field, "Only the first step can be used for breakdown attribution in unordered funnels")
	}
	return nil
}

// covers reports whether every event of a narrow step satisfies a broad one: both have the same event or action, and the broad one's
// filters are among the narrow one's.
func covers(broad, narrow *query.Series) bool {
	if broad.Kind != narrow.Kind || broad.Kind == query.GroupNode || broad.Action != narrow.Action || (broad.Event == nil) != (narrow.Event == nil) {
		return false
	}
	if broad.Event != nil && *broad.Event != *narrow.Event {
		return false
	}
	filters := filtersOf(narrow)
	return !slices.ContainsFunc(filtersOf(broad), func(f string) bool { return !slices.Contains(filters, f) })
}

// filtersOf returns the filters of a step, all of which must hold, as texts.
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
