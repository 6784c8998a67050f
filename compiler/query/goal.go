package query

// Goal is a conversion goal: an event or an action that visitors are meant to reach.
type Goal struct {
	// At is the place of the goal in the JSON.
	At string `json:"-"`
	// Event is the name of an event; nil for none.
	Event *string `json:"event,omitempty"`
	// Action is the number of an action; nil for none.
	Action *int64 `json:"action,omitempty"`
}

// ActionID returns the number of the action.
func (g Goal) ActionID() (id int64, ok bool) {
	if g.Action == nil {
		return 0, false
	}
	return *g.Action, true
}

// Names returns the name of the event.
func (g Goal) Names() []Named { return EventNames(g.Event, g.At+".customEventName") }
