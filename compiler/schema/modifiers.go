package schema

// Modifiers change what a query means without a change of its text (contract: api.md, section 2.10). The zero value is what
// a query without modifiers means.
type Modifiers struct {
	Persons PersonMode
	// BounceSeconds is how long a session has to last to be no bounce. 0: defaultBounceSeconds.
	BounceSeconds float64
	// Channels are the project's own rules on channel types; they come before the built-in ones.
	Channels []ChannelRule
}

// defaultBounceSeconds is the shortest session that does not count as a bounce.
const defaultBounceSeconds = 10

func (m Modifiers) bounceSeconds() float64 {
	if m.BounceSeconds == 0 {
		return defaultBounceSeconds
	}
	return m.BounceSeconds
}

// PersonMode says who the person of an event is, and which of the person's properties count.
type PersonMode uint8

// The modes (contract: hogql.md, section 8).
const (
	// PersonOverridden: the person whom the distinct id has now, with the properties that the event recorded.
	PersonOverridden PersonMode = iota
	// PersonOverriddenJoined: the person whom the distinct id has now, with the properties of now.
	PersonOverriddenJoined
	// PersonRecorded: person and properties as the event recorded them.
	PersonRecorded
	// PersonJoined: all by way of the distinct id; events of nobody vanish.
	PersonJoined
)

// PersonModes are the modes by the names of the modifier personsOnEventsMode.
var PersonModes = map[string]PersonMode{
	"person_id_override_properties_on_events":    PersonOverridden,
	"person_id_override_properties_joined":       PersonOverriddenJoined,
	"person_id_no_override_properties_on_events": PersonRecorded,
	"disabled": PersonJoined,
}
