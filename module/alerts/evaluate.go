package alerts

import (
	"fmt"
	"math"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Series is what an alert uses of a series of an insight.
type Series struct {
	Label string
	Day   string // when the interval of Current begins; empty if that is not known
	// Current is the number to compare, and Before the number of the previous interval; nil if there is none.
	Current, Before *float64
	// Empty says that the insight has no results, whose numbers count as 0.
	Empty bool
}

// Outcome is the result of applying a rule to the numbers of an insight.
type Outcome struct {
	// Value is what was compared with the bounds, for the first series that crosses one. It is nil if none does and the query has breakdowns, unless the
	// insight has no results, and if there is nothing to compare. An increase from zero is infinite.
	Value *float64
	// Breach says in words which bound was crossed; empty for none.
	Breach string
}

// Evaluate compares series with the bounds of the rule. It is enough that one series crosses a bound.
func (r *Rule) Evaluate(series []Series) Outcome {
	var last *float64 // of a breakdown, no value stands for the others
	for _, s := range series {
		value := r.compared(&s)
		if value == nil {
			continue
		}
		if breach := r.breach(&s, *value); breach != "" {
			return Outcome{Value: value, Breach: breach}
		}
		if r.Query.Breakdowns == nil || s.Empty {
			last = value
		}
	}
	return Outcome{Value: last}
}

// compared returns the number to compare with the bounds; nil if there is none.
func (r *Rule) compared(s *Series) *float64 {
	if s.Current == nil || r.Condition == AbsoluteValue {
		return s.Current
	}
	if s.Before == nil {
		return nil
	}
	change := *s.Current - *s.Before
	if r.Condition == RelativeDecrease {
		change = -change
	}
	switch {
	case !r.Percent:
	case *s.Before != 0:
		change /= *s.Before
	case *s.Current != 0:
		change = math.Inf(1)
	}
	return &change
}

// breach says in words which bound a value crosses; empty for none.
func (r *Rule) breach(s *Series, value float64) string {
	verb := map[Condition]string{AbsoluteValue: "is", RelativeIncrease: "increased", RelativeDecrease: "decreased"}[r.Condition]
	say := func(than, bound string, at float64) string {
		return fmt.Sprintf("The insight value (%s)%s (%s) %s %s than %s threshold (%s)", cut(s.Label, maxLabel), r.when(s), r.text(value), verb, than, bound, r.text(at))
	}
	switch {
	case r.Lower != nil && value < *r.Lower:
		return say("less", "lower", *r.Lower)
	case r.Upper != nil && value > *r.Upper:
		return say("more", "upper", *r.Upper)
	}
	return ""
}

// when says in words which interval was compared, with a space before; empty if the rule passes over some and there are no results.
func (r *Rule) when(s *Series) string {
	switch {
	case r.Query.Display.Total():
		return " for current interval"
	case r.Current():
		return " for current " + string(r.Query.Interval)
	case r.Delay == 0:
		return " for previous " + string(r.Query.Interval)
	case s.Day != "":
		return " for " + s.Day
	}
	return ""
}

// maxLabel is how many characters of a label, which may be as long as an insight, a message shows.
const maxLabel = 400

// cut returns the first characters of a text, with a mark if there are more.
func cut(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i] + "…"
		}
		most--
	}
	return text
}

// text formats a value for messages.
func (r *Rule) text(value float64) string {
	if r.Percent {
		return strconv.FormatFloat(value*100, 'f', 2, 64) + "%"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// Current reports whether the interval still in progress is compared. That is so for totals of a range and, if the rule says so, for values and
// increases. A decrease is only known once its interval has ended.
func (r *Rule) Current() bool {
	return r.Query.Display.Total() || r.Ongoing && r.Condition != RelativeDecrease
}

// maxYears is how far an alert looks back at most. There are no events that old.
const maxYears = 100

// lookback returns the date_from for the intervals that the rule compares, passes over or averages into those, with one to spare because the first may
// be incomplete.
func (r *Rule) lookback() string {
	n, weeks := 2, 1
	if r.Condition != AbsoluteValue {
		n, weeks = 3, 2
	}
	more := max(r.Query.Smoothing-1, 0) + r.Delay
	seconds := 60*n + more
	n += more
	if len(r.Query.DateRange.DaysOfWeek) == 0 { // otherwise a week may have a single day that counts
		weeks = 0
	}
	switch r.Query.Interval {
	case query.Day:
		return fmt.Sprintf("-%dd", n+7*weeks)
	case query.Week:
		return fmt.Sprintf("-%dw", n)
	case query.Month:
		return fmt.Sprintf("-%dm", n)
	case query.Quarter:
		return fmt.Sprintf("-%dm", min(3*n, 12*maxYears))
	case query.Year:
		return fmt.Sprintf("-%dy", min(n, maxYears))
	case query.Second:
		return fmt.Sprintf("-%ds", seconds)
	case query.Minute:
		return fmt.Sprintf("-%dM", n)
	case query.Hour:
	}
	return fmt.Sprintf("-%dh", n+7*24*weeks)
}
