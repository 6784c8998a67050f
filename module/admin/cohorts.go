package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func recordCohort(c *registry.Cohort) adminapi.Cohort {
	return adminapi.Cohort{
		ID: c.ID, Project: c.Project, Name: c.Title(), Static: c.Static, Count: c.Count, Calculating: c.Calculating(), LastError: c.LastError,
		CreatedAt: c.CreatedAt,
	}
}

// createCohort creates a cohort. If another product fills the tables, the operator must give the cohort's id there: an id of our own could
// belong to another cohort.
func (s *Server) createCohort(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.CohortFields](r)
	if err != nil {
		return nil, err
	}
	if body.ID == 0 {
		layout, err := s.Shards.Of(body.Project).Layout(r.Context())
		if err != nil {
			return nil, err
		}
		if layout.Foreign() {
			return nil, badRequest("the tables are another product's, whose cohorts have numbers already: give the id of the one to name")
		}
	}
	if err := checkCohortName(body.Name); err != nil {
		return nil, err
	}
	c, err := s.Registry.CreateCohort(r.Context(), registry.NewCohort{
		Project: body.Project, ID: body.ID, CohortFields: registry.CohortFields{Name: registry.To(&body.Name), Static: registry.To(true)},
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return recordCohort(c), nil
}

func (s *Server) listCohorts(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	project, err := projectOf(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	records := []adminapi.Cohort{}
	for _, c := range snap.Cohorts(project.ID) {
		records = append(records, recordCohort(c))
	}
	return map[string]any{"cohorts": records}, nil
}

func noCohort(project, id int64) error {
	return fmt.Errorf("cohort %d of project %d: %w", id, project, registry.ErrNotFound)
}

func (s *Server) renameCohort(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.CohortFields](r)
	if err != nil {
		return nil, err
	}
	id, err := cohortID(r)
	if err != nil {
		return nil, err
	}
	if err := checkCohortName(body.Name); err != nil {
		return nil, err
	}
	if s.Registry.Snapshot().Cohort(body.Project, id) == nil {
		return nil, noCohort(body.Project, id)
	}
	c, err := s.Registry.UpdateCohort(r.Context(), body.Project, id, registry.CohortFields{Name: registry.To(&body.Name)}, time.Now())
	if err != nil {
		return nil, err
	}
	return recordCohort(c), nil
}

func (s *Server) deleteCohort(_ http.ResponseWriter, r *http.Request) (any, error) {
	known, err := s.cohortOf(r)
	if err != nil {
		return nil, err
	}
	deleted := registry.CohortFields{Deleted: registry.To(true), Check: func(now *registry.Snapshot, c *registry.Cohort) error {
		if err := s.References.Of(now, c.Project).RefuseDeletion(c.ID, nil); err != nil {
			return badRequest("%s", api.ErrorOf(err).Detail)
		}
		return nil
	}}
	if _, err := s.Registry.UpdateCohort(r.Context(), known.Project, known.ID, deleted, time.Now()); err != nil {
		return nil, err
	}
	return map[string]any{"id": known.ID, "project": known.Project, "deleted": true}, nil
}

// recalculateCohort makes the members of a cohort be computed again, however old they are.
func (s *Server) recalculateCohort(_ http.ResponseWriter, r *http.Request) (any, error) {
	known, err := s.cohortOf(r)
	if err != nil {
		return nil, err
	}
	if known.Static {
		return nil, badRequest("cohort %d is static: its members are not computed", known.ID)
	}
	c, err := s.Registry.UpdateCohort(r.Context(), known.Project, known.ID, registry.CohortFields{Calculate: true}, time.Now())
	if err != nil {
		return nil, err
	}
	s.Cohorts.Calculate(known.Project, known.ID)
	return recordCohort(c), nil
}

// cohortOf returns the cohort that a request names by its path and the parameter project.
func (s *Server) cohortOf(r *http.Request) (*registry.Cohort, error) {
	project, err := projectOf(s.Registry.Snapshot(), r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	id, err := cohortID(r)
	if err != nil {
		return nil, err
	}
	known := s.Registry.Snapshot().Cohort(project.ID, id)
	if known == nil {
		return nil, noCohort(project.ID, id)
	}
	return known, nil
}

// checkCohortName refuses an empty name.
func checkCohortName(name string) error {
	if strings.TrimSpace(name) == "" {
		return badRequest("name: This field is required.")
	}
	return nil
}

// cohortID returns the id of the cohort that a request is about.
func cohortID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, badRequest("%q is not the number of a cohort", r.PathValue("id"))
	}
	return id, nil
}
