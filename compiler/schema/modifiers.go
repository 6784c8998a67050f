package schema

// Modifiers change the meaning of a query without changing its text (contract: api.md, section 2.10). The zero value is for a query without
// modifiers.
type Modifiers struct {
	Persons PersonMode
	// BounceSeconds is how long a session must last not to be a bounce. 0 means defaultBounceSeconds.
	BounceSeconds float64
	// Channels are the project's own rules on channel types; they precede the built-in ones.
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

// PersonMode says which person an event belongs to, and which of the person's properties are used.
type PersonMode uint8

// The modes (contract: hogql.md, section 8).
const (
	// PersonOverridden: the current person of the distinct id, with the properties recorded in the event.
	PersonOverridden PersonMode = iota
	// PersonOverriddenJoined: the current person of the distinct id, with current properties.
	PersonOverriddenJoined
	// PersonRecorded: person and properties as recorded in the event.
	PersonRecorded
	// PersonJoined: everything by way of the distinct id; events without a person are dropped.
	PersonJoined
)

// PersonModes maps the values of the modifier personsOnEventsMode to modes.
var PersonModes = map[string]PersonMode{
	"person_id_override_properties_on_events":    PersonOverridden,
	"person_id_override_properties_joined":       PersonOverriddenJoined,
	"person_id_no_override_properties_on_events": PersonRecorded,
	"disabled": PersonJoined,
}
