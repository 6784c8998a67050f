package warehouse

import (
	"slices"
	"time"
)

// span is hours since 1970, UTC; the end is not part of it.
type span struct{ from, to int64 }

// The ends of time.
const (
	firstHour = -1 << 40
	lastHour  = 1 << 40

	hoursOfDay = 24
)

var allTime = []span{{firstHour, lastHour}}

// overlaps reports whether two have an hour in common.
func (s span) overlaps(other span) bool { return s.from < other.to && other.from < s.to }

// hour is the hour in which a time is.
func hour(at time.Time) int64 { return min(max(floorDiv(at.Unix(), 3600), firstHour), lastHour-1) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// spanOf is the hours that a span of time touches. Zero times mean all before or after.
func spanOf(from, to time.Time) span {
	out := span{firstHour, lastHour}
	if !from.IsZero() {
		out.from = hour(from)
	}
	if !to.IsZero() {
		out.to = hour(to.Add(time.Hour - time.Nanosecond))
	}
	return out
}

// maxSpans is how many spans are told apart in one write. Rows that are in more are taken to be on whole days, and then anywhere between the first
// and the last.
const maxSpans = 64

// spansOf are the spans of a set of hours.
func spansOf(hours map[int64]struct{}) []span {
	list := make([]int64, 0, len(hours))
	for h := range hours {
		list = append(list, h)
	}
	slices.Sort(list)
	spans := joined(list, 1)
	if len(spans) <= maxSpans {
		return spans
	}
	for n, h := range list {
		list[n] = floorDiv(h, hoursOfDay) * hoursOfDay
	}
	if spans = joined(slices.Compact(list), hoursOfDay); len(spans) <= maxSpans {
		return spans
	}
	return []span{{spans[0].from, spans[len(spans)-1].to}}
}

// joined are the spans of times in order, of which each is so many hours long.
func joined(starts []int64, length int64) (spans []span) {
	for _, at := range starts {
		if last := len(spans) - 1; last >= 0 && spans[last].to == at {
			spans[last].to = at + length
			continue
		}
		spans = append(spans, span{at, at + length})
	}
	return spans
}

// Epoch is the version of the hours from one on, until the next epoch. They count from 1970, UTC.
type Epoch struct {
	From    int64
	Version uint64
}

// epochs are the versions of all hours. The first one begins at firstHour. They are never changed, so that who has them sees what they were.
type epochs []Epoch

// maxEpochs is how many of them a project has; beyond it, those of the past become one another's.
const maxEpochs = 1024

// fineFor is how many hours before the last write hours are told apart even then, and not days; before now, if the last ones are of the future.
const fineFor = 7 * hoursOfDay

// of is the greatest version in a span: another one as soon as any in it is another one, since each is greater than all before.
func (e epochs) of(s span) (version uint64) {
	for n := range e {
		if e[n].From >= s.to {
			break
		}
		if n+1 == len(e) || e[n+1].From > s.from {
			version = max(version, e[n].Version)
		}
	}
	return version
}

// with are the same with another version of some spans.
func (e epochs) with(spans []span, version uint64) epochs {
	out := e
	for _, s := range spans {
		out = out.set(s, version)
	}
	if len(out) > maxEpochs {
		out = out.coarser()
	}
	return out
}

func (e epochs) set(s span, version uint64) epochs {
	out := make(epochs, 0, len(e)+2)
	after := e[0].Version // what holds from the end of the span on
	add := func(one Epoch) {
		if last := len(out) - 1; last >= 0 && out[last].Version == one.Version {
			return
		}
		out = append(out, one)
	}
	n := 0
	for ; n < len(e) && e[n].From < s.from; n++ {
		add(e[n])
		after = e[n].Version
	}
	add(Epoch{s.from, version})
	for ; n < len(e) && e[n].From <= s.to; n++ {
		after = e[n].Version
	}
	if s.to < lastHour {
		add(Epoch{s.to, after})
	}
	for ; n < len(e); n++ {
		add(e[n])
	}
	return out
}

// coarser are fewer epochs: of the past, days are told apart and not hours, and if that is not enough, the oldest become one.
func (e epochs) coarser() epochs {
	fine := min(e[len(e)-1].From, hour(time.Now())) - fineFor
	out := e.without(func(one Epoch) bool { return one.From < fine && one.From%hoursOfDay != 0 })
	if most := maxEpochs * 3 / 4; len(out) > most {
		last := out[len(out)-most].From
		out = out.without(func(one Epoch) bool { return one.From < last })
	}
	return out
}

// without are the same without the beginnings of some, whose hours get the greater version of theirs and that of the hours before. The first one
// always stays.
func (e epochs) without(gone func(Epoch) bool) epochs {
	out := e[:1:1]
	for _, one := range e[1:] {
		last := &out[len(out)-1]
		if gone(one) {
			last.Version = max(last.Version, one.Version)
			continue
		}
		out = append(out, one)
	}
	return out
}
