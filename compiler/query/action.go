package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/pattern"
)

// Action is a named condition on single events (contract: actions.md, section 2).
type Action struct {
	ID int64
	// Name is empty for an action without one.
	Name string
	// Deleted reports whether the action was deleted. Queries cannot use it, and mistakes say so.
	Deleted bool
	// Steps are alternatives: one is enough. An action without steps matches every event.
	Steps []ActionStep
	// Unreadable is what is wrong with the record of an action whose steps cannot be read; empty for others. Queries cannot use such an action.
	Unreadable string
}

// ActionStep is one condition of an action. All fields that are set must hold.
type ActionStep struct {
	// At is the place of a step that is part of a query, such as actionSteps.0; empty for a step of a stored action.
	At string `json:"-"`
	// Event is the name of the event; empty for any.
	Event string `json:"event,omitempty"`
	// URL is compared with $current_url; empty for any.
	URL         string   `json:"url,omitempty"`
	URLMatching Matching `json:"url_matching,omitempty"` // default: Contains
	// Properties are filters that must all hold; nil for none.
	Properties *Condition `json:"properties,omitempty"`

	// Selector, TagName, Text and Href describe what was clicked. They only count in steps whose event is $autocapture. An empty Selector and nil
	// for the others match anything.
	Selector     string   `json:"selector,omitempty"`
	TagName      *string  `json:"tag_name,omitempty"`
	Text         *string  `json:"text,omitempty"`
	TextMatching Matching `json:"text_matching,omitempty"` // default: Exact
	Href         *string  `json:"href,omitempty"`
	HrefMatching Matching `json:"href_matching,omitempty"` // default: Exact
}

// Field returns the dotted path of a field of a step that is part of a query, for the attr of a mistake; empty for a step of a stored action.
func (s *ActionStep) Field(name string) string {
	if s.At == "" {
		return ""
	}
	return s.At + "." + name
}

// Names returns the event.
func (s ActionStep) Names() []Named {
	if s.Event == "" {
		return nil
	}
	return EventNames(&s.Event, s.Field("event"))
}

// Matching says how a text in a step is compared.
type Matching string

// The ways to compare a text. The default depends on the field.
const (
	DefaultMatching Matching = ""
	Exact           Matching = "exact"
	Contains        Matching = "contains"
	Regex           Matching = "regex"
)

// Label returns the name of the action for people: its name, or Action and its number.
func (a *Action) Label() string {
	if a.Name != "" {
		return a.Name
	}
	return "Action " + strconv.FormatInt(a.ID, 10)
}

// NoAction returns the message for an action that the project does not have.
func NoAction(id int64) string { return fmt.Sprintf("Action ID %d does not exist!", id) }

// DeletedAction returns the message for a deleted action, whose name may be empty.
func DeletedAction(id int64, name string) string {
	if name == "" {
		return fmt.Sprintf("Action ID %d was deleted.", id)
	}
	return fmt.Sprintf(`Action "%s" (ID %d) was deleted.`, name, id)
}

// Events returns the names of the events that can match the action; nil if any event can.
func (a *Action) Events() []string {
	names := make([]string, 0, len(a.Steps))
	for i := range a.Steps {
		if a.Steps[i].Event == "" {
			return nil
		}
		names = append(names, a.Steps[i].Event)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Actions are the actions of a project, including deleted ones. A nil *Actions has none. It is immutable and safe for concurrent use.
type Actions struct {
	byID   map[int64]*Action
	byName map[string][]*Action // without the deleted ones
}

// NewActions returns the actions of a project. Their numbers must be distinct.
func NewActions(list []Action) *Actions {
	a := &Actions{byID: make(map[int64]*Action, len(list)), byName: map[string][]*Action{}}
	for i := range list {
		one := &list[i]
		a.byID[one.ID] = one
		if !one.Deleted && one.Name != "" {
			a.byName[one.Name] = append(a.byName[one.Name], one)
		}
	}
	return a
}

// Get returns the action with a number, deleted or not; nil if there is none.
func (a *Actions) Get(id int64) *Action {
	if a == nil {
		return nil
	}
	return a.byID[id]
}

// Named returns the actions with a name, without deleted ones.
func (a *Actions) Named(name string) []*Action {
	if a == nil {
		return nil
	}
	return a.byName[name]
}

// Names yields the names of the actions, without deleted ones, in no order.
func (a *Actions) Names(yield func(string) bool) {
	if a == nil {
		return
	}
	maps.Keys(a.byName)(yield)
}

// ParseActionProperties parses the field properties of an action step: a list of property filters that must all hold. It returns nil for an empty
// list. The error is a *diag.Error.
func ParseActionProperties(raw []byte) (*Condition, error) {
	const name = "properties"
	r, o, err := settings(name, raw)
	if err != nil {
		return nil, err
	}
	r.model = "Action"
	out := r.stepProperties(o, name)
	return out, r.err()
}

// stepProperties reads the filters of an action step.
func (r *Reader) stepProperties(o *Object, name string) *Condition {
	out := r.Properties(o, name)
	if out.behavioral() {
		r.Add(o.Field(name), "value_error", "The steps of an action cannot ask for behavior")
	}
	return out
}

// MaxActionSteps is the most steps of an action, and of a query in place of one.
const MaxActionSteps = 100

// ActionSteps reads the steps of an action that is not stored; nil if there are none.
func (r *Reader) ActionSteps(o *Object, name string) []ActionStep {
	list := o.List(name)
	if len(list) > MaxActionSteps {
		r.Add(o.Field(name), "too_long", fmt.Sprintf("List should have at most %d items", MaxActionSteps))
		return nil
	}
	var out []ActionStep
	for i, item := range list {
		out = append(out, r.actionStep(item, o.Field(name).Below(strconv.Itoa(i), true)))
	}
	return out
}

func (r *Reader) actionStep(v any, at Place) ActionStep {
	o := r.Object(v, at)
	matching := func(name string) Matching {
		return Matching(o.Choice(name, "", string(Contains), string(Regex), string(Exact)))
	}
	s := ActionStep{
		At: at.Attr, Event: o.Text("event"), URL: o.Text("url"), URLMatching: matching("url_matching"), Properties: r.stepProperties(o, "properties"),
		Selector: o.Text("selector"), TagName: o.TextOrNil("tag_name"), Text: o.TextOrNil("text"), TextMatching: matching("text_matching"),
		Href: o.TextOrNil("href"), HrefMatching: matching("href_matching"),
	}
	s.URL, s.Selector = strings.TrimSpace(s.URL), strings.TrimSpace(s.Selector)
	o.matches("url", &s.URL, s.URLMatching)
	o.matches("text", s.Text, s.TextMatching)
	o.matches("href", s.Href, s.HrefMatching)
	o.Close()
	return s
}

// Clicked is the event for which steps can have conditions on elements.
const Clicked = "$autocapture"

// BadRegex says what is wrong with a text of the step that is compared as a regular expression; it is empty if nothing is. Texts that the step ignores do not
// matter.
func (s *ActionStep) BadRegex() string {
	for _, text := range []struct {
		value   *string
		by      Matching
		ignored bool
	}{{&s.URL, s.URLMatching, false}, {s.Text, s.TextMatching, s.Event != Clicked}, {s.Href, s.HrefMatching, s.Event != Clicked}} {
		if text.value == nil || text.by != Regex || text.ignored {
			continue
		}
		if wrong := pattern.Mistake(*text.value); wrong != "" {
			return wrong
		}
	}
	return ""
}

// matches notes a text of a step that is not a regular expression although it is compared as one.
func (o *Object) matches(name string, text *string, by Matching) {
	if text == nil || by != Regex {
		return
	}
	if wrong := pattern.Mistake(*text); wrong != "" {
		o.r.Add(o.Field(name), "value_error", wrong)
	}
}

// behavioral reports whether one of the filters is on behavior.
func (c *Condition) behavioral() bool {
	return c != nil && (c.Filter != nil && c.Filter.Behavior != nil || slices.ContainsFunc(c.All, func(c Condition) bool { return c.behavioral() }))
}

// ActionUser is a part of a node that may name an action in its own fields.
type ActionUser interface {
	// ActionID returns the number of the action; ok is false if there is none.
	ActionID() (id int64, ok bool)
}

// ActionID returns the number of the action that the series counts.
func (s Series) ActionID() (id int64, ok bool) { return s.Action, s.Kind == ActionsNode }

// ActionID reads an action's number, which clients send as a number or as text; false if there is none.
func (o *Object) ActionID(name string) (int64, bool) {
	given, ok := o.Take(name)
	if !ok {
		return 0, false
	}
	var text string
	switch given := given.(type) {
	case string:
		text = given
	case json.Number:
		text = given.String()
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		o.r.Add(o.Field(name), "int_type", "Input should be a valid integer")
		return 0, false
	}
	return id, true
}
