package registry

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Cohort is a set of people of a project that has a name. Who they are is known to ClickHouse alone.
type Cohort struct {
	ID        int64     `json:"id"` // unique within the project
	Project   int64     `json:"-"`
	Name      string    `json:"name"` // unique within the project
	CreatedAt time.Time `json:"created_at"`
}

// cohortEntry is the record of a cohort. A deleted one stays for some time, so that its number is not given again.
type cohortEntry struct {
	Cohort

	DeletedAt time.Time `json:"deleted_at,omitzero"` // zero: it is not deleted
}

func readCohort(rec *Record) (entity, error) {
	id, err := number(rec)
	if err != nil {
		return nil, err
	}
	c := &cohortEntry{Cohort: Cohort{ID: id, Project: rec.Project}}
	return c, decode(rec, c)
}

func (c *cohortEntry) name() recordName { return recordName{c.Project, KindCohort, digits(c.ID)} }

func (c *cohortEntry) unique() []string {
	if !c.DeletedAt.IsZero() {
		return nil
	}
	return []string{within(c.Project, IDText(c.Name))}
}

func (c *cohortEntry) size() int        { return len(c.Name) }
func (c *cohortEntry) checkSize() error { return nil } // the name has a limit

func (c *cohortEntry) put(_ *draft, p *projectState) (Stored, error) {
	before := p.cohorts.get(c.ID)
	was := p.cohorts.put(c)
	if shown := before != nil && before.listed(); shown != c.listed() || shown && before.Cohort != c.Cohort {
		p.schemaChanged()
	}
	return was, nil
}

func (c *cohortEntry) remove(_ *draft, p *projectState) Stored {
	shown := p.cohort(c.ID) != nil
	was := p.cohorts.remove(c.ID)
	if shown {
		p.schemaChanged()
	}
	return was
}

func (c *cohortEntry) key() int64                     { return c.ID }
func (c *cohortEntry) listed() bool                   { return c.DeletedAt.IsZero() }
func (c *cohortEntry) compare(other *cohortEntry) int { return cmp.Compare(c.ID, other.ID) }

// code returns the name, which a deleted cohort leaves to others.
func (c *cohortEntry) code() string {
	if c.listed() {
		return c.Name
	}
	return ""
}

// cohort returns a cohort that is not deleted; nil when there is none.
func (p *projectState) cohort(id int64) *cohortEntry {
	if p == nil {
		return nil
	}
	if c := p.cohorts.get(id); c != nil && c.listed() {
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

// checkCohort reports that another cohort has the name of c.
func (p *projectState) checkCohort(c *Cohort) error {
	if other := p.cohorts.coded(c.Name); other != nil && other.ID != c.ID {
		return &FieldError{Field: "name", Code: CodeUnique, Message: cohortNameTaken}
	}
	return nil
}

const (
	maxCohortName   = 400
	maxCohortID     = math.MaxInt32 // as in PostHog
	cohortNameTaken = "A cohort with this name exists already."
	cohortTaken     = "A cohort with this id exists already."
)

// NewCohort says what a cohort is to be.
type NewCohort struct {
	Project int64
	// ID is the number of a cohort whose members are in ClickHouse already; 0: one above the greatest that the project ever had.
	ID   int64
	Name string // required, at most 400 characters
}

// CreateCohort gives a name to a cohort. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateCohort(ctx context.Context, n NewCohort, now time.Time) (*Cohort, error) {
	c := Cohort{ID: n.ID, Project: n.Project, Name: strings.TrimSpace(n.Name), CreatedAt: moment(now)}
	if err := c.validate(); err != nil {
		return nil, err
	}
	err := r.write(ctx, c.Project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		if c.ID = n.ID; c.ID == 0 {
			c.ID = p.lastCohort() + 1
		}
		if p.cohort(c.ID) != nil {
			return &FieldError{Field: "id", Code: CodeUnique, Message: cohortTaken}
		}
		if err := p.checkCohort(&c); err != nil {
			return err
		}
		if err := c.validate(); err != nil { // the next number may be too large
			return err
		}
		return t.put(&cohortEntry{Cohort: c})
	})
	if err != nil {
		return nil, fmt.Errorf("creating cohort %q: %w", c.Name, err)
	}
	return &c, nil
}

// RenameCohort gives a cohort another name. Mistakes are *FieldError; an unknown cohort is ErrNotFound.
func (r *Registry) RenameCohort(ctx context.Context, project, id int64, name string) (*Cohort, error) {
	var c Cohort
	err := r.write(ctx, project, func(t *tx) error {
		p := t.draft.project(project)
		before := p.cohort(id)
		if before == nil {
			return ErrNotFound
		}
		c = before.Cohort
		c.Name = strings.TrimSpace(name)
		if err := c.validate(); err != nil {
			return err
		}
		if err := p.checkCohort(&c); err != nil {
			return err
		}
		return t.put(&cohortEntry{Cohort: c})
	})
	if err != nil {
		return nil, fmt.Errorf("renaming cohort %d: %w", id, err)
	}
	return &c, nil
}

// DeleteCohort forgets a cohort. Its number is not given again; its members stay in ClickHouse. An unknown one is ErrNotFound.
func (r *Registry) DeleteCohort(ctx context.Context, project, id int64, now time.Time) error {
	err := r.write(ctx, project, func(t *tx) error {
		c := t.draft.project(project).cohort(id)
		if c == nil {
			return ErrNotFound
		}
		return t.put(&cohortEntry{Cohort: c.Cohort, DeletedAt: moment(now)})
	})
	if err != nil {
		return fmt.Errorf("deleting cohort %d: %w", id, err)
	}
	return nil
}

func (c *Cohort) validate() error {
	switch {
	case c.Name == "":
		return required("name")
	case utf8.RuneCountInString(c.Name) > maxCohortName:
		return tooLong("name", maxCohortName)
	case c.ID == 0: // the next one
		return nil
	}
	return inRange("id", int(max(math.MinInt32, min(c.ID, maxCohortID+1))), 1, maxCohortID)
}

// Cohorts returns the cohorts of a project that have names, by number.
func (s *Snapshot) Cohorts(project int64) []Cohort {
	if p := s.project(project); p != nil {
		return p.schema().Cohorts
	}
	return nil
}
