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
	text       string         // properties as JSON; empty if it must be rendered again
	places     map[string]int // of the properties by name, between index and unindex; nil if they are searched
}

// index prepares the profile for a number of look-ups and changes of properties, which take time in proportion to the properties without it. No other
// method may change the properties until unindex than set and unset.
func (p *profile) index(lookups int) {
	const few = 64 // a search takes less time
	if lookups < few {
		return
	}
	p.places = make(map[string]int, len(p.properties)+lookups)
	for i, m := range p.properties {
		p.places[m.Key] = i
	}
}

func (p *profile) unindex() { p.places = nil }

// get returns a property, or nil.
func (p *profile) get(key string) record.Value {
	if p.places == nil {
		return p.properties.Get(key)
	}
	if i, ok := p.places[key]; ok {
		return p.properties[i].Value
	}
	return nil
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
	p.index(len(e.set))
	defer p.unindex()
	for _, m := range e.set {
		if old := p.get(m.Key); old != nil && string(old) == string(m.Value) || e.unset[m.Key] {
			continue
		}
		if own.properties == nil {
			own.properties = append(make(record.Object, 0, len(p.properties)+len(e.set)), p.properties...)
			own.index(len(e.set))
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
	old := p.get(m.Key)
	if old != nil && string(old) == string(m.Value) {
		return false, true
	}
	if !p.size.room(p.properties, old, m) {
		return false, false
	}
	p.put(m.Key, bytes.Clone(m.Value))
	p.text = ""
	return true, true
}

// put replaces the value of a property, or adds the property after the others.
func (p *profile) put(key string, value record.Value) {
	if p.places == nil {
		p.properties = p.properties.Set(key, value)
		return
	}
	if i, ok := p.places[key]; ok {
		p.properties[i].Value = value
		return
	}
	p.places[key] = len(p.properties)
	p.properties = append(p.properties, record.Member{Key: key, Value: value})
}

// hasAny reports whether the profile has one of some properties.
func (p *profile) hasAny(keys map[string]bool) bool {
	return len(keys) > 0 && slices.ContainsFunc(p.properties, func(m record.Member) bool { return keys[m.Key] })
}

// unset takes properties away, and reports whether any was there.
func (p *profile) unset(keys map[string]bool) bool {
	if !p.hasAny(keys) {
		return false
	}
	*p = profile{properties: slices.DeleteFunc(slices.Clone(p.properties), func(m record.Member) bool { return keys[m.Key] })}
	return true
}

// MaxProfile is how many bytes the properties of a person or group may take: each event repeats them.
const MaxProfile = 2 << 20

// profileSize is the size of the properties of a person or group.
type profileSize struct {
	names, bytes int
	known        bool
}

// room reports whether there is room for a property beside those in o, which has the old value of it if any, and counts it if so. A property that shrinks
// always has room.
func (s *profileSize) room(o record.Object, old record.Value, m record.Member) bool {
	if !s.known {
		s.known, s.names, s.bytes = true, 0, 0
		for _, m := range o {
			s.add(m, 1)
		}
	}
	next := *s
	next.add(m, 1)
	if old != nil {
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
