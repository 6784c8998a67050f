package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Annotation is a note on a moment of a chart (contract: clients.md, section 2).
type Annotation struct {
	ID        int64           `json:"-"`
	Project   int64           `json:"-"`
	Content   *string         `json:"content,omitempty"`
	At        time.Time       `json:"date_marker,omitzero"` // zero for no moment
	Scope     AnnotationScope `json:"scope"`
	Origin    string          `json:"creation_type"` // USR or GIT
	Insight   *int64          `json:"dashboard_item,omitempty"`
	Dashboard *int64          `json:"dashboard_id,omitempty"`
	Emoji     string          `json:"emoji,omitempty"`
	Hidden    *bool           `json:"hidden_in_user_interface,omitempty"`
	Deleted   bool            `json:"deleted,omitempty"`
	CreatedBy string          `json:"created_by,omitempty"` // id of a key
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// AnnotationScope is where an annotation is shown.
type AnnotationScope string

// The scopes of annotations.
const (
	OnInsight      AnnotationScope = "dashboard_item"
	OnDashboard    AnnotationScope = "dashboard"
	OnProject      AnnotationScope = "project"
	OnOrganization AnnotationScope = "organization"
)

// AnnotationScopes lists all scopes.
var AnnotationScopes = []AnnotationScope{OnInsight, OnDashboard, OnProject, OnOrganization}

const (
	maxAnnotation = 8192
	maxEmoji      = 32
)

func readAnnotation(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	a := &Annotation{ID: id, Project: rec.Project}
	return a, decode(rec, a)
}

func (a *Annotation) name() recordName { return recordName{a.Project, KindAnnotation, digits(a.ID)} }
func (a *Annotation) unique() []string { return nil }
func (a *Annotation) size() int        { return textBytes(a.Content, &a.Emoji) }

func (a *Annotation) checkSize() error {
	return checkSize("content", "This annotation", a.size(), MaxSmallRecord)
}

func (a *Annotation) key() int64   { return a.ID }
func (a *Annotation) code() string { return "" }
func (a *Annotation) listed() bool { return !a.Deleted }

// compare puts the latest moment first, after annotations without one.
func (a *Annotation) compare(other *Annotation) int {
	switch {
	case a.At.IsZero() != other.At.IsZero() && a.At.IsZero():
		return -1
	case a.At.IsZero() != other.At.IsZero():
		return 1
	}
	return cmp.Or(other.At.Compare(a.At), cmp.Compare(other.ID, a.ID))
}

func (a *Annotation) put(_ *draft, p *projectState) (Stored, error) { return p.annotations.put(a), nil }

func (a *Annotation) remove(_ *draft, p *projectState) Stored { return p.annotations.remove(a.ID) }

// AnnotationFields holds the fields of an annotation that are to be set. A field that is not given stays as it is, or takes its default in a new annotation.
type AnnotationFields struct {
	Content   Field[*string] // at most 8192 characters
	At        Field[time.Time]
	Scope     Field[AnnotationScope] // OnInsight by default
	Origin    Field[string]          // USR or GIT
	Insight   Field[*int64]          // must not be deleted
	Dashboard Field[*int64]          // must not be deleted
	Emoji     Field[string]
	Hidden    Field[*bool]
	Deleted   Field[bool]
}

// CreateAnnotation adds an annotation. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateAnnotation(ctx context.Context, project int64, f AnnotationFields, by string, now time.Time) (*Annotation, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	var created *Annotation
	err := r.write(ctx, project, func(t *tx) error {
		if _, err := t.state(); err != nil {
			return err
		}
		if err := f.checkParents(t.next, project); err != nil {
			return err
		}
		at := moment(now)
		a := Annotation{ID: t.number(KindAnnotation), Project: project, Scope: OnInsight, Origin: "USR", CreatedBy: by, CreatedAt: at, UpdatedAt: at}
		f.apply(&a)
		created = &a
		return t.put(&a)
	})
	if err != nil {
		return nil, fmt.Errorf("creating an annotation: %w", err)
	}
	return created, nil
}

// UpdateAnnotation changes the given fields of an annotation, deleted or not. Mistakes are *FieldError; an annotation that is unknown, or whose insight or
// dashboard is deleted, is ErrNotFound.
func (r *Registry) UpdateAnnotation(ctx context.Context, project, id int64, f AnnotationFields, now time.Time) (*Annotation, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	var changed *Annotation
	err := r.write(ctx, project, func(t *tx) error {
		before := t.next.AnyAnnotation(project, id)
		if before == nil {
			return ErrNotFound
		}
		if err := f.checkParents(t.next, project); err != nil {
			return err
		}
		a := *before
		f.apply(&a)
		a.UpdatedAt = moment(now)
		changed = &a
		return t.put(&a)
	})
	if err != nil {
		return nil, fmt.Errorf("changing annotation %d: %w", id, err)
	}
	return changed, nil
}

func (f *AnnotationFields) apply(a *Annotation) {
	a.Content, a.Scope, a.Origin = f.Content.or(a.Content), f.Scope.or(a.Scope), f.Origin.or(a.Origin)
	if f.At.Given {
		a.At = moment(f.At.Value)
	}
	a.Insight, a.Dashboard, a.Emoji = f.Insight.or(a.Insight), f.Dashboard.or(a.Dashboard), f.Emoji.or(a.Emoji)
	a.Hidden, a.Deleted = f.Hidden.or(a.Hidden), f.Deleted.or(a.Deleted)
}

func (f *AnnotationFields) validate() error {
	switch {
	case f.Content.Value != nil && utf8.RuneCountInString(*f.Content.Value) > maxAnnotation:
		return tooLong("content", maxAnnotation)
	case utf8.RuneCountInString(f.Emoji.Value) > maxEmoji:
		return tooLong("emoji", maxEmoji)
	case f.Scope.Given && f.Scope.Value == "recording":
		return invalid("", "Recording scope is deprecated")
	case f.Scope.Given && !slices.Contains(AnnotationScopes, f.Scope.Value):
		return notChoice("scope", string(f.Scope.Value))
	case f.Origin.Given && f.Origin.Value != "USR" && f.Origin.Value != "GIT":
		return notChoice("creation_type", f.Origin.Value)
	}
	return nil
}

// checkParents refuses an insight or a dashboard that does not exist or is deleted.
func (f *AnnotationFields) checkParents(s *Snapshot, project int64) error {
	if id := f.Dashboard.Value; id != nil && s.Dashboard(project, *id) == nil {
		return invalid("dashboard_id", "Dashboard not found.")
	}
	if id := f.Insight.Value; id != nil && s.Insight(project, *id) == nil {
		return &FieldError{Field: "dashboard_item", Code: CodeNoObject, Message: fmt.Sprintf("Invalid pk \"%d\" - object does not exist.", *id)}
	}
	return nil
}

// AnyAnnotation returns an annotation, deleted or not; nil if there is none, or if its insight or dashboard is deleted.
func (s *Snapshot) AnyAnnotation(project, id int64) *Annotation {
	if p := s.project(project); p != nil {
		if a := p.annotations.get(id); a != nil && s.visible(a) {
			return a
		}
	}
	return nil
}

// Annotation is like AnyAnnotation, but returns nil for deleted annotations.
func (s *Snapshot) Annotation(project, id int64) *Annotation {
	if a := s.AnyAnnotation(project, id); a != nil && !a.Deleted {
		return a
	}
	return nil
}

// Annotations returns the annotations of a project that are not deleted, on insights and dashboards that are not deleted either: the latest moment first.
func (s *Snapshot) Annotations(project int64) []*Annotation {
	if p := s.project(project); p != nil {
		return valuesOf(p.annotations.list, s.visible)
	}
	return nil
}

// visible reports whether the insight or dashboard of an annotation, if it has one, is not deleted.
func (s *Snapshot) visible(a *Annotation) bool {
	switch {
	case a.Scope == OnInsight && a.Insight != nil:
		return s.Insight(a.Project, *a.Insight) != nil
	case a.Scope == OnDashboard && a.Dashboard != nil:
		return s.Dashboard(a.Project, *a.Dashboard) != nil
	}
	return true
}
