package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Cohort is a set of people of a project (contract: cohorts.md). Only ClickHouse knows the members.
type Cohort struct {
	ID          int64   `json:"-"` // unique within the project
	Project     int64   `json:"-"`
	Name        *string `json:"name"` // nil if none was given; need not be unique
	Description string  `json:"description,omitempty"`
	// Static says that people are put into the cohort and stay until they are taken out. The members of other cohorts are computed.
	Static bool `json:"static,omitempty"`
	// Filters and Groups, the older form, define the members of a computed cohort; Filters win. Query defines who is put into a static one. Each is nil for none.
	Filters json.RawMessage `json:"filters,omitempty"`
	Groups  json.RawMessage `json:"groups,omitempty"`
	Query   json.RawMessage `json:"query,omitempty"`

	// Version is the version of the members that queries read; it changes whenever they do. 0: no members were ever computed or, if the cohort is static, put into
	// it.
	Version uint64 `json:"version,omitempty"`
	// PendingVersion is the version that is being computed, or waits to be; 0 for none.
	PendingVersion uint64 `json:"pending_version,omitempty"`
	// LastVersion is the greatest version ever used. Versions are not reused, because a failed calculation may leave members.
	LastVersion uint64 `json:"last_version,omitempty"`
	// Count is how many members Version has; nil if that is not known.
	Count *int64 `json:"count,omitempty"`
	// LastCalculation is when Version was computed, or the members of a static cohort were last changed; zero for never.
	LastCalculation time.Time `json:"last_calculation,omitzero"`
	// Errors counts the failed calculations since the last successful one, LastError says what was wrong with the last one, and LastErrorAt when that was.
	Errors      int       `json:"errors,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`

	Deleted   bool      `json:"deleted,omitempty"`
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"` // id of a key; empty for the operator
	// ChangedAt is when an update last changed who is a member, or whether the cohort is deleted; zero for never.
	ChangedAt time.Time `json:"changed_at,omitzero"`
}

// SchemaCohort is what queries need to know about a cohort.
type SchemaCohort struct {
	ID              int64
	Name            string // empty for none
	Static, Deleted bool
	Version         uint64
}

// Title returns the name to show for a cohort: its own or, if it has none, Cohort and its number.
func (c *SchemaCohort) Title() string {
	if c.Name != "" {
		return c.Name
	}
	return "Cohort " + digits(c.ID)
}

// Title returns the name to show for a cohort: its own or, if it has none, Cohort and its number.
func (c *Cohort) Title() string {
	s := c.schema()
	return s.Title()
}

// Calculating reports whether the members are being computed, or wait to be.
func (c *Cohort) Calculating() bool { return c.PendingVersion != 0 }

func readCohort(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	c := &Cohort{ID: id, Project: rec.Project}
	return c, decode(rec, c)
}

// cohortHistory is the history of cohort records. Before cohorts could be computed, all were static, and a deleted one had only the time of its deletion.
var cohortHistory = []upgrade{func(fields map[string]json.RawMessage) error {
	fields["static"] = json.RawMessage("true")
	if at := fields["deleted_at"]; at != nil && string(at) != "null" {
		fields["deleted"] = json.RawMessage("true")
	}
	return nil
}}

func (c *Cohort) name() recordName { return recordName{c.Project, KindCohort, digits(c.ID)} }
func (c *Cohort) unique() []string { return nil }

func (c *Cohort) size() int {
	return len(c.Filters) + len(c.Groups) + len(c.Query) + len(c.LastError) + textBytes(c.Name, &c.Description)
}

func (c *Cohort) checkSize() error {
	if c.Deleted {
		return nil
	}
	return checkSize("filters", "This cohort", c.size(), MaxRecord)
}

func (c *Cohort) key() int64   { return c.ID }
func (c *Cohort) code() string { return "" }
func (c *Cohort) listed() bool { return !c.Deleted }

// compare puts the newest first.
func (c *Cohort) compare(other *Cohort) int {
	return cmp.Or(other.CreatedAt.Compare(c.CreatedAt), cmp.Compare(other.ID, c.ID))
}

func (c *Cohort) put(_ *draft, p *projectState) (Stored, error) {
	before := p.cohorts.get(c.ID)
	was := p.cohorts.put(c)
	if before == nil || before.schema() != c.schema() {
		p.schemaChanged()
	}
	return was, nil
}

func (c *Cohort) remove(_ *draft, p *projectState) Stored {
	was := p.cohorts.remove(c.ID)
	if was.Records > 0 {
		p.schemaChanged()
	}
	return was
}

func (c *Cohort) schema() SchemaCohort {
	s := SchemaCohort{ID: c.ID, Static: c.Static, Deleted: c.Deleted, Version: c.Version}
	if c.Name != nil {
		s.Name = *c.Name
	}
	return s
}

// cohort returns a cohort that is not deleted; nil if there is none.
func (p *projectState) cohort(id int64) *Cohort {
	if p == nil {
		return nil
	}
	if c := p.cohorts.get(id); c != nil && !c.Deleted {
		return c
	}
	return nil
}

// lastCohort returns the greatest number of a cohort, deleted or not; 0 for none.
func (p *projectState) lastCohort() int64 {
	each := p.cohorts.byID.Iterator()
	each.Last()
	id, _, _ := each.Next()
	return id
}

// MaxCohortName is the most characters of the name of a cohort.
const MaxCohortName = 400

const (
	maxCohortDescription = 1000
	maxCohortID          = math.MaxInt32 // as in PostHog
	cohortTaken          = "A cohort with this id exists already."
)

// CohortFields holds the fields of a cohort that are to be set. A field that is not given stays as it is, or takes its default in a new cohort.
type CohortFields struct {
	Name                   Field[*string] // at most 400 characters
	Description            Field[string]  // at most 1000 characters
	Static                 Field[bool]
	Filters, Groups, Query Field[json.RawMessage] // nil, or JSON that the caller has checked
	Deleted                Field[bool]
	// Calculate asks for a calculation even if what defines the members does not change. Static cohorts have none.
	Calculate bool
	// Check looks at the changed cohort, and at the registry as it is at that moment; an error prevents the write. It may run more than once. Nil
	// checks nothing.
	Check func(now *Snapshot, c *Cohort) error
}

// NewCohort describes a new cohort.
type NewCohort struct {
	CohortFields

	Project int64
	// ID is the number of a cohort whose members are in ClickHouse already; 0: one above the greatest number that the project ever had, or that is reserved.
	ID        int64
	CreatedBy string // id of a key; empty for the operator
}

// CreateCohort adds a cohort. A computed one waits for its calculation. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateCohort(ctx context.Context, n NewCohort, now time.Time) (*Cohort, error) {
	if err := n.validate(); err != nil {
		return nil, err
	}
	var created Cohort
	err := r.write(ctx, n.Project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		c := Cohort{ID: n.ID, Project: n.Project, CreatedAt: moment(now), CreatedBy: n.CreatedBy}
		if c.ID == 0 {
			c.ID = max(p.lastCohort(), t.next.sequences[KindCohort]) + 1
		}
		if p.cohort(c.ID) != nil {
			return &FieldError{Field: "id", Code: CodeUnique, Message: cohortTaken}
		}
		if err := checkCohortID(c.ID); err != nil {
			return err
		}
		if deleted := p.cohorts.get(c.ID); deleted != nil {
			c.LastVersion = deleted.LastVersion
		}
		n.apply(&c, now)
		if err := n.check(t, &c); err != nil {
			return err
		}
		created = c
		return t.put(&c)
	})
	if err != nil {
		return nil, fmt.Errorf("creating a cohort: %w", err)
	}
	return &created, nil
}

// UpdateCohort changes the given fields of a cohort, deleted or not, as it is stored at that moment: the last write wins. A change of what defines the members
// makes the cohort wait for a calculation, and so does restoring it. Mistakes are *FieldError; an unknown cohort is ErrNotFound.
func (r *Registry) UpdateCohort(ctx context.Context, project, id int64, f CohortFields, now time.Time) (*Cohort, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	return r.changeCohort(ctx, project, id, func(t *tx, c *Cohort) error {
		before := *c
		f.apply(c, now)
		if !c.sameDefinition(&before) {
			c.ChangedAt = moment(now)
		}
		return f.check(t, c)
	})
}

// check validates the changed cohort.
func (f *CohortFields) check(t *tx, c *Cohort) error {
	if err := c.checkSize(); err != nil || f.Check == nil {
		return err
	}
	return f.Check(t.next, c)
}

// sameDefinition reports whether the same people are members of both, and both or neither are deleted.
func (c *Cohort) sameDefinition(other *Cohort) bool {
	return c.Deleted == other.Deleted && c.Static == other.Static && bytes.Equal(c.Filters, other.Filters) && bytes.Equal(c.Groups, other.Groups) &&
		bytes.Equal(c.Query, other.Query)
}

// errUnchanged says that a cohort or an alert is to stay as it is.
var errUnchanged = errors.New("unchanged")

// changeCohort writes a cohort that change has changed, and returns it; errUnchanged writes nothing. An unknown cohort is ErrNotFound.
func (r *Registry) changeCohort(ctx context.Context, project, id int64, change func(*tx, *Cohort) error) (*Cohort, error) {
	var changed Cohort
	err := r.write(ctx, project, func(t *tx) error {
		p := t.draft.project(project)
		if p == nil {
			return ErrNotFound
		}
		before := p.cohorts.get(id)
		if before == nil {
			return ErrNotFound
		}
		c := *before
		err := change(t, &c)
		if changed = c; errors.Is(err, errUnchanged) {
			return nil
		}
		if err != nil {
			return err
		}
		return t.put(&c)
	})
	if err != nil {
		return nil, fmt.Errorf("changing cohort %d: %w", id, err)
	}
	return &changed, nil
}

func (f *CohortFields) validate() error {
	if name := f.Name.Value; name != nil && utf8.RuneCountInString(*name) > MaxCohortName {
		return tooLong("name", MaxCohortName)
	}
	if utf8.RuneCountInString(f.Description.Value) > maxCohortDescription {
		return tooLong("description", maxCohortDescription)
	}
	return nil
}

func checkCohortID(id int64) error {
	return inRange("id", int(max(math.MinInt32, min(id, maxCohortID+1))), 1, maxCohortID)
}

// apply writes the fields into a cohort, and makes it wait for a calculation if it needs one.
func (f *CohortFields) apply(c *Cohort, now time.Time) {
	before := *c
	if f.Name.Given {
		c.Name = nil
		if f.Name.Value != nil {
			c.Name = new(strings.TrimSpace(*f.Name.Value))
		}
	}
	c.Description = strings.TrimSpace(f.Description.or(c.Description))
	c.Filters, c.Groups, c.Query = canonical(f.Filters, c.Filters), canonical(f.Groups, c.Groups), canonical(f.Query, c.Query)
	if f.Deleted.Given && f.Deleted.Value != c.Deleted {
		c.Deleted, c.DeletedAt = f.Deleted.Value, time.Time{}
		if c.Deleted {
			c.DeletedAt = moment(now)
		}
	}
	f.become(c)
	if before.Deleted && !c.Deleted && !c.Static { // the computed members may be gone
		c.Version, c.Count = 0, nil
	}
	never := c.Version == 0 && c.PendingVersion == 0 && c.Errors == 0
	switch {
	case c.Deleted:
		c.PendingVersion = 0
	case c.Static && c.Query != nil && (f.Query.Given || before.Deleted && never):
		c.await()
	case !c.Static && (f.Calculate || never || before.Deleted || f.Filters.Given || f.Groups.Given):
		c.await()
	}
}

// become turns a computed cohort into a static one, or the other way round. It forgets the members that the cohort had.
func (f *CohortFields) become(c *Cohort) {
	if !f.Static.Given || f.Static.Value == c.Static {
		return
	}
	c.Static = f.Static.Value
	c.Version, c.PendingVersion, c.Count, c.LastCalculation = 0, 0, nil, time.Time{}
	c.Errors, c.LastError, c.LastErrorAt = 0, "", time.Time{}
}

// canonical returns the value of a field without spaces, or before if it is not given.
func canonical(f Field[json.RawMessage], before json.RawMessage) json.RawMessage {
	switch {
	case !f.Given:
		return before
	case f.Value == nil:
		return nil
	}
	return compact(f.Value)
}

// await makes the cohort wait for a new calculation; one in progress no longer counts.
func (c *Cohort) await() {
	c.LastVersion++
	c.PendingVersion = c.LastVersion
}

// Cohorts returns the cohorts of a project that are not deleted, newest first. Its cost grows with the number of cohorts.
func (s *Snapshot) Cohorts(project int64) []*Cohort {
	if p := s.project(project); p != nil {
		return valuesOf(p.cohorts.list, nil)
	}
	return nil
}

// AllCohorts returns the cohorts of a project by number, including deleted ones.
func (s *Snapshot) AllCohorts(project int64) []*Cohort {
	if p := s.project(project); p != nil {
		return valuesOf(p.cohorts.byID, nil)
	}
	return nil
}

// Cohort returns a cohort; nil if there is none, or it is deleted.
func (s *Snapshot) Cohort(project, id int64) *Cohort {
	return s.project(project).cohort(id)
}

// AnyCohort returns a cohort, deleted or not; nil if there is none.
func (s *Snapshot) AnyCohort(project, id int64) *Cohort {
	if p := s.project(project); p != nil {
		return p.cohorts.get(id)
	}
	return nil
}
