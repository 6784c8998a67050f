package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/internal/pattern"
)

// Action is a named condition on single events (contract: actions.md, section 1).
type Action struct {
	ActionDefinition

	Project            int64      `json:"-"`
	Description        string     `json:"description"`
	Tags               []string   `json:"tags"`
	PostToSlack        bool       `json:"post_to_slack"`        // kept and shown, but has no effect
	SlackMessageFormat string     `json:"slack_message_format"` // likewise
	DeletedAt          time.Time  `json:"deleted_at,omitzero"`  // zero if it is not deleted
	CreatedAt          time.Time  `json:"created_at"`
	CreatedBy          string     `json:"created_by"` // id of a key
	ChangedAt          time.Time  `json:"changed_at"` // when the definition changed last
	PinnedAt           *time.Time `json:"pinned_at"`  // nil if it is not pinned
}

// ActionDefinition is the part of an action that queries depend on.
type ActionDefinition struct {
	ID   int64   `json:"id"`   // from 1, unique over all projects
	Name *string `json:"name"` // nil if none was given; unique among the actions of a project that are not deleted
	// Steps are conditions, of which an event has to meet one. Without steps, every event matches.
	Steps   []ActionStep `json:"steps"`
	Deleted bool         `json:"deleted"` // queries that use it are refused
}

// ActionStep is one condition of an action: an event has to meet all that the step names. Nil fields ask for nothing.
type ActionStep struct {
	Event        *string         `json:"event,omitempty"`
	Properties   json.RawMessage `json:"properties,omitempty"` // nil, or an array of property filters that the caller has checked
	Selector     *string         `json:"selector,omitempty"`   // a CSS selector
	TagName      *string         `json:"tag_name,omitempty"`
	Text         *string         `json:"text,omitempty"`
	TextMatching *TextMatching   `json:"text_matching,omitempty"` // nil: exact
	Href         *string         `json:"href,omitempty"`
	HrefMatching *TextMatching   `json:"href_matching,omitempty"` // nil: exact
	URL          *string         `json:"url,omitempty"`
	URLMatching  *TextMatching   `json:"url_matching,omitempty"` // nil: contains
}

// TextMatching says how the text of a step is compared with an event's.
type TextMatching string

// The ways to compare texts.
const (
	MatchContains TextMatching = "contains"
	MatchRegex    TextMatching = "regex"
	MatchExact    TextMatching = "exact"
)

func readAction(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	a := &Action{ActionDefinition: ActionDefinition{ID: id}, Project: rec.Project}
	return a, decode(rec, a)
}

func (a *Action) name() recordName { return recordName{a.Project, KindAction, digits(a.ID)} }

func (a *Action) unique() []string {
	if name := a.code(); name != "" {
		return []string{within(a.Project, IDText(name))}
	}
	return nil
}

func (a *Action) size() int {
	size := len(a.Description) + len(a.SlackMessageFormat) + textBytes(a.Name) + listBytes(a.Tags)
	for _, s := range a.Steps {
		size += stepBytes + len(s.Properties) + textBytes(s.Event, s.Selector, s.TagName, s.Text, s.Href, s.URL)
	}
	return size
}

func (a *Action) checkSize() error { return checkUndeleted(a.Deleted, a.checkNew) }

// checkNew reports that the action is too large, deleted or not.
func (a *Action) checkNew() error { return checkSize("steps", "This action", a.size(), MaxRecord) }

func (a *Action) put(_ *draft, p *projectState) (Stored, error) {
	before := p.actions.get(a.ID)
	was := p.actions.put(a)
	if before == nil || !before.sameDefinition(a) {
		p.schemaChanged()
	}
	return was, nil
}

func (a *Action) remove(_ *draft, p *projectState) Stored {
	was := p.actions.remove(a.ID)
	if was.Records > 0 {
		p.schemaChanged()
	}
	return was
}

func (a *Action) key() int64   { return a.ID }
func (a *Action) listed() bool { return !a.Deleted }

// code returns the name; a deleted action leaves its name to others.
func (a *Action) code() string {
	if a.Name == nil || a.Deleted {
		return ""
	}
	return *a.Name
}

// compare puts the newest first.
func (a *Action) compare(other *Action) int {
	return cmp.Or(other.CreatedAt.Compare(a.CreatedAt), cmp.Compare(other.ID, a.ID))
}

// sameDefinition reports whether the two make no difference to queries.
func (a *Action) sameDefinition(other *Action) bool {
	return reflect.DeepEqual(a.ActionDefinition, other.ActionDefinition)
}

// ActionFields holds the fields of an action that are to be set. A field that is not given stays as it is, or takes its default in a new action.
type ActionFields struct {
	Name               Field[*string] // not blank, at most 400 characters
	Description        Field[string]
	Tags               Field[[]string]
	PostToSlack        Field[bool]
	SlackMessageFormat Field[string]
	Steps              Field[[]ActionStep] // at most MaxActionSteps
	Deleted            Field[bool]
	Pinned             Field[bool] // an action that is already pinned keeps its time
	// Check looks at the changed action, and at the registry as it is at that moment; an error prevents the write. It may run more than once. Nil
	// checks nothing.
	Check func(now *Snapshot, a *Action) error
}

// MaxActionSteps is the most steps of an action.
const MaxActionSteps = query.MaxActionSteps

const (
	maxActionName = 400
	stepBytes     = 64 // approximate size of a step besides its texts
)

// CreateAction adds an action. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateAction(ctx context.Context, project int64, f ActionFields, by string, now time.Time) (*Action, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	created := Action{
		Project: project, Tags: []string{}, CreatedAt: at, CreatedBy: by, ChangedAt: at,
		ActionDefinition: ActionDefinition{Steps: []ActionStep{}},
	}
	f.apply(&created, at)
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		a := created
		a.ID = t.number(KindAction)
		if err := a.checkNew(); err != nil {
			return err
		}
		if err := f.check(t, p, &a); err != nil {
			return err
		}
		if err := t.put(&a); err != nil {
			return err
		}
		created = a
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("creating an action: %w", err)
	}
	return &created, nil
}

// UpdateAction changes the given fields of an action, deleted or not. Mistakes are *FieldError; an unknown action is ErrNotFound.
func (r *Registry) UpdateAction(ctx context.Context, project, id int64, f ActionFields, now time.Time) (*Action, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	var updated Action
	err := r.write(ctx, project, func(t *tx) error {
		before := t.next.AnyAction(project, id)
		if before == nil {
			return ErrNotFound
		}
		updated = *before
		f.apply(&updated, at)
		if !updated.sameDefinition(before) {
			updated.ChangedAt = at
		}
		if updated.size() > before.size() { // also if it is deleted
			if err := updated.checkNew(); err != nil {
				return err
			}
		}
		if err := f.check(t, t.draft.project(project), &updated); err != nil {
			return err
		}
		a := updated
		return t.put(&a)
	})
	if err != nil {
		return nil, fmt.Errorf("updating action %d: %w", id, err)
	}
	return &updated, nil
}

// check validates the changed action.
func (f *ActionFields) check(t *tx, p *projectState, a *Action) error {
	if err := p.checkAction(a); err != nil || f.Check == nil {
		return err
	}
	return f.Check(t.next, a)
}

// checkAction reports an error if another action has the name of a.
func (p *projectState) checkAction(a *Action) error {
	name := a.code()
	if name == "" {
		return nil
	}
	if other := p.actions.coded(name); other != nil && other.ID != a.ID {
		return &FieldError{Field: "name", Code: CodeUnique, Message: fmt.Sprintf("This project already has an action with this name, ID %d", other.ID)}
	}
	return nil
}

// apply writes the fields into an action.
func (f *ActionFields) apply(a *Action, at time.Time) {
	a.Name, a.Description, a.PostToSlack = f.Name.or(a.Name), f.Description.or(a.Description), f.PostToSlack.or(a.PostToSlack)
	a.SlackMessageFormat = f.SlackMessageFormat.or(a.SlackMessageFormat)
	if f.Tags.Given {
		a.Tags = PlainTags(f.Tags.Value)
	}
	if f.Steps.Given {
		a.Steps = compactSteps(f.Steps.Value)
	}
	if deleted := f.Deleted.or(a.Deleted); deleted != a.Deleted {
		a.Deleted, a.DeletedAt = deleted, time.Time{}
		if deleted {
			a.DeletedAt = at
		}
	}
	switch pinned := f.Pinned.or(a.PinnedAt != nil); {
	case !pinned:
		a.PinnedAt = nil
	case a.PinnedAt == nil:
		a.PinnedAt = &at
	}
}

// compactSteps copies steps, without spaces in their filters. It never returns nil.
func compactSteps(steps []ActionStep) []ActionStep {
	copied := slices.Concat([]ActionStep{}, steps)
	for i := range copied {
		if copied[i].Properties != nil {
			copied[i].Properties = compact(copied[i].Properties)
		}
	}
	return copied
}

func (f *ActionFields) validate() error {
	if name := f.Name.Value; name != nil {
		switch {
		case strings.TrimSpace(*name) == "":
			return &FieldError{Field: "name", Code: CodeBlank, Message: "This field may not be blank."}
		case utf8.RuneCountInString(*name) > maxActionName:
			return tooLong("name", maxActionName)
		}
	}
	if n := len(f.Steps.Value); n > MaxActionSteps {
		return invalid("steps", "An action can have %d steps, and this one has %d.", MaxActionSteps, n)
	}
	for i := range f.Steps.Value {
		if err := f.Steps.Value[i].validate(i); err != nil {
			return err
		}
	}
	return validateTags(f.Tags.Value, MaxRecord)
}

// validate reports a mistake in step number i.
func (s *ActionStep) validate(i int) error {
	if s.Properties != nil && !isArray(s.Properties) {
		return invalid(stepField(i, "properties"), "Expected a list of property filters.")
	}
	for _, text := range []struct {
		name     string
		value    *string
		matching *TextMatching
	}{{"text", s.Text, s.TextMatching}, {"href", s.Href, s.HrefMatching}, {"url", s.URL, s.URLMatching}} {
		if text.matching == nil {
			continue
		}
		field := stepField(i, text.name)
		switch *text.matching {
		case MatchContains, MatchExact:
		case MatchRegex:
			if text.value == nil {
				continue
			}
			if wrong := pattern.Mistake(*text.value); wrong != "" {
				return invalid(field, "%s", wrong)
			}
		default:
			return notChoice(field+"_matching", string(*text.matching))
		}
	}
	return nil
}

// stepField returns the name that PostHog gives to a field of a step in errors.
func stepField(i int, name string) string { return fmt.Sprintf("steps__%d__%s", i, name) }

// Actions returns the actions of a project that are not deleted, newest first.
func (s *Snapshot) Actions(project int64) []*Action {
	if p := s.project(project); p != nil {
		return valuesOf(p.actions.list, nil)
	}
	return nil
}

// AnyAction returns an action, deleted or not; nil if there is none.
func (s *Snapshot) AnyAction(project, id int64) *Action {
	if p := s.project(project); p != nil {
		return p.actions.get(id)
	}
	return nil
}
