package ingest

import (
	"bytes"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// profile is the properties of a person or group.
type profile struct {
	properties record.Object
	size       profileSize
	text       string // properties as JSON; empty if it must be rendered again
}

func (p *profile) json() string {
	if p.text == "" {
		p.text = p.properties.JSON()
	}
	return p.text
}

// jsonWith returns the properties as JSON, together with what an event sets although it left the profile as it was. What there is no room for is left out.
func (p *profile) jsonWith(e *event) string {
	own, changed := profile{size: p.size}, false
	for _, m := range e.set {
		if old := p.properties.Get(m.Key); old != nil && string(old) == string(m.Value) || slices.Contains(e.unset, m.Key) {
			continue
		}
		if own.properties == nil {
			own.properties = append(make(record.Object, 0, len(p.properties)+len(e.set)), p.properties...)
		}
		set, _ := own.set(m)
		changed = changed || set
	}
	if !changed {
		return p.json()
	}
	return own.json()
}

// set sets a property to a copy of its value, because the value itself would keep its whole record in memory. It reports whether the property changed, and
// whether there was room for it.
func (p *profile) set(m record.Member) (changed, ok bool) {
	if old := p.properties.Get(m.Key); old != nil && string(old) == string(m.Value) {
		return false, true
	}
	if !p.size.room(p.properties, m) {
		return false, false
	}
	p.properties = p.properties.Set(m.Key, bytes.Clone(m.Value))
	p.text = ""
	return true, true
}

// unset takes a property away, and reports whether it was there.
func (p *profile) unset(key string) bool {
	if p.properties.Get(key) == nil {
		return false
	}
	*p = profile{properties: p.properties.Without(key)}
	return true
}

// MaxProfile is how many bytes the properties of a person or group may take: each event repeats them.
const MaxProfile = 2 << 20

// profileSize is the size of the properties of a person or group.
type profileSize struct {
	names, bytes int
	known        bool
}

// room reports whether there is room for a property beside those in o, and counts it if so. A property that shrinks always has room.
func (s *profileSize) room(o record.Object, m record.Member) bool {
	if !s.known {
		s.known, s.names, s.bytes = true, 0, 0
		for _, m := range o {
			s.add(m, 1)
		}
	}
	next := *s
	next.add(m, 1)
	if old := o.Get(m.Key); old != nil {
		next.add(record.Member{Key: m.Key, Value: old}, -1)
	}
	if grows := next.names > s.names || next.bytes > s.bytes; grows && (next.names > record.MaxNames || next.bytes > MaxProfile) {
		return false
	}
	*s = next
	return true
}

// add counts a property, or takes it away with times -1.
func (s *profileSize) add(m record.Member, times int) {
	s.names += times * (1 + m.Value.Names())
	s.bytes += times * (len(m.Key) + len(m.Value) + len(`"":,`))
}
