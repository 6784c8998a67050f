package ingest

import (
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// event is the record of an event with what it says about its person.
type event struct {
	*record.Record
	personless   bool // sent without profile, or its person was deleted in the meantime
	deleted      bool // the event was deleted in the meantime
	set, setOnce record.Object
	unset        map[string]bool
}

// newEvent reads what a record says. It brings the properties of a captured event into the form that is stored. A late event changes no person.
func newEvent(r *record.Record, captured, late bool) *event {
	e := &event{Record: r, personless: late || string(r.Properties.Get(profileProperty)) == "false"}
	if captured {
		e.normalize()
	}
	e.setOnce = r.Properties.Get("$set_once").Object()
	e.set = r.Properties.Get("$set").Object()
	e.unset = setOf(r.Properties.Get("$unset").Keys())
	if captured && !e.personless {
		e.lift()
	}
	return e
}

// setOf returns the set of some keys; nil for none.
func setOf(keys []string) map[string]bool {
	if len(keys) == 0 {
		return nil
	}
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// profileProperty is false in an event without profile.
const profileProperty = "$process_person_profile"

func (e *event) normalize() {
	without := []string{"$set", "$set_once", "$unset"}
	if !e.personless {
		without = []string{profileProperty}
	}
	for _, name := range without {
		e.Properties = e.Properties.Without(name)
	}
	if system := e.Properties.Get("$os_name"); system != nil && e.Properties.Get("$os") == nil && !e.fromServer() {
		e.Properties = e.Properties.Set("$os", system)
	}
}

// fromServer reports whether a server sent the event about one of its users: the operating system is the server's.
func (e *event) fromServer() bool { return string(e.Properties.Get("$is_server")) == "true" }

// pointless reports whether an event is only about a person or group, but is sent without profile. Events whose profile the capture route has left out are
// kept (contract: capture.md, sections 8 and 11).
func (e *event) pointless() bool {
	switch e.Event {
	case "$identify", "$create_alias", "$merge_dangerously", "$groupidentify":
		return e.personless && !e.SharedID
	}
	return false
}
