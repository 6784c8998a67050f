package warehouse

import (
	"slices"
	"time"
)

// span is a range of hours since 1970, UTC; to is exclusive.
type span struct{ from, to int64 }

// The ends of time.
const (
	firstHour = -1 << 40
	lastHour  = 1 << 40

	hoursOfDay = 24
)

var allTime = []span{{firstHour, lastHour}}

// overlaps reports whether two spans have an hour in common.
func (s span) overlaps(other span) bool { return s.from < other.to && other.from < s.to }

// hour returns the hour that a time is in.
func hour(at time.Time) int64 { return min(max(floorDiv(at.Unix(), 3600), firstHour), lastHour-1) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// spanOf returns the hours that a span of time touches. A zero time leaves that end open.
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

// maxSpans is how many spans one write may have. If its rows are in more, the spans are rounded to whole days, and if that is not enough, joined to
// one from the first to the last.
const maxSpans = 64

// spansOf returns the spans that a set of hours forms.
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

// joined returns the spans that periods of an equal length form, in hours. starts is sorted.
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

// Epoch gives the version of the hours from From until the next epoch. Hours count from 1970, UTC.
type Epoch struct {
	From    int64
	Version uint64
}

// epochs are the versions of all hours. The first begins at firstHour. They are immutable, so a holder keeps seeing what they were.
type epochs []Epoch

// maxEpochs is how many epochs a project has; beyond it, epochs of the past are merged.
const maxEpochs = 1024

// fineFor is how many hours before the last write stay separate in any case, rather than being merged to days; if that write is in the future, before now.
const fineFor = 7 * hoursOfDay

// of returns the greatest version in a span. It changes whenever any of them does, since each new version is greater than all before.
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

// with returns the epochs with a new version for some spans.
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
	after := e[0].Version // the version from the end of the span on
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

// coarser returns fewer epochs: in the past, hours are merged to days, and if that is not enough, the oldest are merged to one.
func (e epochs) coarser() epochs {
	fine := min(e[len(e)-1].From, hour(time.Now())) - fineFor
	out := e.without(func(one Epoch) bool { return one.From < fine && one.From%hoursOfDay != 0 })
	if most := maxEpochs * 3 / 4; len(out) > most {
		last := out[len(out)-most].From
		out = out.without(func(one Epoch) bool { return one.From < last })
	}
	return out
}

// without returns the epochs without some beginnings. The hours of a removed one get the greater of its own version and that of the hours before. The
// first epoch always stays.
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
