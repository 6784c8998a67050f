package registry

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Cohort is a set of people of a project that has a name. Who they are is known to ClickHouse alone.
type Cohort struct {
	ID        int64 // unique within the project
	Project   int64
	Name      string // unique within the project
	CreatedAt time.Time
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
	err := r.write(ctx, c.Project, func(tx Tx) (err error) {
		if _, err := tx.Project(ctx, c.Project); err != nil {
			return fmt.Errorf("project %d: %w", c.Project, err)
		}
		c.ID, err = tx.InsertCohort(ctx, Cohort{ID: n.ID, Project: c.Project, Name: c.Name, CreatedAt: c.CreatedAt})
		if err == nil { // the next number may be too large
			err = c.validate()
		}
		return taken(taken(err, ConflictCohortName, "name", cohortNameTaken), ConflictID, "id", cohortTaken)
	}, func(d *draft) { d.putCohort(c) })
	if err != nil {
		return nil, fmt.Errorf("creating cohort %q: %w", c.Name, err)
	}
	return &c, nil
}

// RenameCohort gives a cohort another name. Mistakes are *FieldError; an unknown cohort is ErrNotFound.
func (r *Registry) RenameCohort(ctx context.Context, project, id int64, name string) (*Cohort, error) {
	var c Cohort
	err := r.write(ctx, project, func(tx Tx) (err error) {
		if c, err = tx.Cohort(ctx, project, id); err != nil {
			return err
		}
		c.Name = strings.TrimSpace(name)
		if err := c.validate(); err != nil {
			return err
		}
		return taken(tx.UpdateCohort(ctx, c), ConflictCohortName, "name", cohortNameTaken)
	}, func(d *draft) { d.putCohort(c) })
	if err != nil {
		return nil, fmt.Errorf("renaming cohort %d: %w", id, err)
	}
	return &c, nil
}

// DeleteCohort forgets a cohort. Its number is not given again; its members stay in ClickHouse. An unknown one is ErrNotFound.
func (r *Registry) DeleteCohort(ctx context.Context, project, id int64, now time.Time) error {
	err := r.write(ctx, project, func(tx Tx) error {
		return tx.DeleteCohort(ctx, project, id, moment(now))
	}, func(d *draft) { d.deleteCohort(project, id) })
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
	if p := s.projects.get(project); p != nil {
		return p.schema.Cohorts
	}
	return nil
}

// putCohort puts a cohort in place of the one with its number.
func (d *draft) putCohort(c Cohort) { d.setCohorts(c.Project, c.ID, &c) }

func (d *draft) deleteCohort(project, id int64) { d.setCohorts(project, id, nil) }

// setCohorts takes the cohort of a number out, and puts another one in; nil for none.
func (d *draft) setCohorts(project, id int64, with *Cohort) {
	p, _ := d.project(project)
	if p == nil {
		return // made by another process since; the reload that follows brings all of it
	}
	next := *p.schema
	next.Cohorts = nil
	for _, c := range p.schema.Cohorts {
		if c.ID != id {
			next.Cohorts = append(next.Cohorts, c)
		}
	}
	if with != nil {
		next.Cohorts = append(next.Cohorts, *with)
	}
	next.sort()
	p.schema = &next
}
