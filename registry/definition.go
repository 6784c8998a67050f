package registry

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Definition is what people wrote about an event or a property (contract: clients.md, section 4). There is none if nobody wrote anything.
type Definition struct {
	ID      string `json:"-"` // UUID
	Project int64  `json:"-"`
	Event   string `json:"event,omitempty"` // the name of an event; empty for a property
	// Property is the property, without its type; zero for an event.
	Property PropertyDefinition `json:"property,omitzero"`
	// ShownType is the type that is shown for a property that reads as text: PropertyDuration or NoType; empty for its own type.
	ShownType   PropertyType `json:"shown_type,omitempty"`
	Description *string      `json:"description,omitempty"`
	Tags        []string     `json:"tags,omitempty"`
	Hidden      bool         `json:"hidden,omitempty"`
	Verified    bool         `json:"verified,omitempty"`
	VerifiedBy  string       `json:"verified_by,omitempty"` // id of a key
	VerifiedAt  time.Time    `json:"verified_at,omitzero"`
	UpdatedBy   string       `json:"updated_by,omitempty"` // id of a key
	UpdatedAt   time.Time    `json:"updated_at"`
	// CreatedBy and CreatedAt are set for an event that was defined before it was seen.
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// Types that can be shown for properties that read as text.
const (
	PropertyDuration PropertyType = "Duration"
	NoType           PropertyType = "none"
)

func readDefinition(rec *Record) (entity, error) {
	d := &Definition{ID: rec.ID, Project: rec.Project}
	return d, decode(rec, d)
}

func (d *Definition) name() recordName { return recordName{d.Project, KindDefinition, d.ID} }
func (d *Definition) unique() []string { return nil }

func (d *Definition) size() int {
	return textBytes(&d.Event, &d.Property.Name, d.Description) + listBytes(d.Tags)
}

func (d *Definition) checkSize() error {
	return checkSize("description", "This definition", d.size(), MaxSmallRecord)
}

func (d *Definition) key() string  { return d.ID }
func (d *Definition) code() string { return "" }
func (d *Definition) listed() bool { return true }

func (d *Definition) compare(other *Definition) int {
	return cmp.Or(cmp.Compare(d.Event, other.Event), propertyOrder{}.Compare(d.Property, other.Property), cmp.Compare(d.ID, other.ID))
}

func (d *Definition) put(_ *draft, p *projectState) (Stored, error) { return p.definitions.put(d), nil }

func (d *Definition) remove(_ *draft, p *projectState) Stored { return p.definitions.remove(d.ID) }

// DefinitionFields holds the fields of a definition that are to be set. A field that is not given stays as it is.
type DefinitionFields struct {
	Description Field[*string]
	Tags        Field[[]string] // at most 255 characters each
	Hidden      Field[bool]     // what is hidden is not verified
	Verified    Field[bool]     // what is verified is not hidden
	Type        Field[PropertyType]
}

// Define changes the definition of an event or a property, and adds it if there is none. subject is identified by its id, its project, and its event or
// property; its other fields are ignored. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) Define(ctx context.Context, subject Definition, f DefinitionFields, by string, now time.Time) (*Definition, error) {
	return r.define(ctx, subject, f, by, now, false)
}

// CreateEvent defines an event that was not seen yet. An event that has a definition is a *FieldError.
func (r *Registry) CreateEvent(ctx context.Context, subject Definition, f DefinitionFields, by string, now time.Time) (*Definition, error) {
	switch {
	case strings.TrimSpace(subject.Event) == "":
		return nil, required("name")
	case utf8.RuneCountInString(subject.Event) > maxPropertyName:
		return nil, tooLong("name", maxPropertyName)
	}
	return r.define(ctx, subject, f, by, now, true)
}

func (r *Registry) define(ctx context.Context, subject Definition, f DefinitionFields, by string, now time.Time, isNew bool) (*Definition, error) {
	if f.Hidden.Value && f.Verified.Value {
		what := "An event"
		if subject.Event == "" {
			what = "A property"
		}
		return nil, invalid("", "%s cannot be both hidden and verified", what)
	}
	if err := validateTags(f.Tags.Value, MaxSmallRecord); err != nil {
		return nil, err
	}
	var defined *Definition
	err := r.write(ctx, subject.Project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		d := Definition{ID: subject.ID, Project: subject.Project, Event: subject.Event, Property: subject.Property.place()}
		before := p.definitions.get(d.ID)
		switch {
		case before != nil && isNew:
			return &FieldError{Field: "name", Code: CodeUnique, Message: "Event definition with this name already exists."}
		case before != nil:
			d = *before
		case isNew:
			d.CreatedBy, d.CreatedAt = by, moment(now)
		}
		f.apply(&d, by, moment(now))
		if err := f.putType(t, p, &d); err != nil {
			return err
		}
		defined = &d
		return t.put(&d)
	})
	if err != nil {
		return nil, fmt.Errorf("defining an event or a property: %w", err)
	}
	return defined, nil
}

func (f *DefinitionFields) apply(d *Definition, by string, at time.Time) {
	d.Description, d.UpdatedBy, d.UpdatedAt = f.Description.or(d.Description), by, at
	if f.Tags.Given {
		if d.Tags = PlainTags(f.Tags.Value); len(d.Tags) == 0 {
			d.Tags = nil
		}
	}
	verified := f.Verified.or(d.Verified) && !f.Hidden.Value
	d.Hidden = f.Hidden.or(d.Hidden) && !f.Verified.Value
	switch {
	case !verified:
		d.Verified, d.VerifiedBy, d.VerifiedAt = false, "", time.Time{}
	case !d.Verified:
		d.Verified, d.VerifiedBy, d.VerifiedAt = true, by, at
	}
}

// putType sets the type of a property.
func (f *DefinitionFields) putType(t *tx, p *projectState, d *Definition) error {
	if !f.Type.Given || d.Event != "" {
		return nil
	}
	def := d.Property
	def.Type, d.ShownType = f.Type.Value, ""
	if def.Type == PropertyDuration || def.Type == NoType {
		def.Type, d.ShownType = PropertyString, f.Type.Value
	}
	if err := def.validate(); err != nil {
		return err
	}
	return t.putProperties(p, []PropertyDefinition{def}, false)
}

// Definition returns what people wrote about an event or a property; nil if nobody did.
func (s *Snapshot) Definition(project int64, id string) *Definition {
	if p := s.project(project); p != nil {
		return p.definitions.get(id)
	}
	return nil
}

// Definitions returns what people wrote about a project: first about properties, then about events by name.
func (s *Snapshot) Definitions(project int64) []*Definition {
	if p := s.project(project); p != nil {
		return valuesOf(p.definitions.list, nil)
	}
	return nil
}
