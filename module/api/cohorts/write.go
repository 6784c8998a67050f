package cohorts

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *Cohorts) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	g, err := readGiven(in)
	if err != nil {
		return nil, err
	}
	if err := g.check(nil); err != nil {
		return nil, err
	}
	if err := s.writable(ctx, c.Project.ID); err != nil {
		return nil, err
	}
	made, err := s.make(ctx, c, g)
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusCreated, c, made), nil
}

// make creates a cohort and adds people to it. If that fails, it deletes the cohort.
func (s *Cohorts) make(ctx context.Context, c *api.Caller, g *given) (*registry.Cohort, error) {
	g.Check = s.checkOf(c, nil)
	made, err := s.Registry.CreateCohort(ctx, registry.NewCohort{Project: c.Project.ID, CreatedBy: c.Key.ID, CohortFields: g.CohortFields}, c.Start)
	if err != nil {
		return nil, err
	}
	if made.Static && !made.Calculating() {
		filled, err := s.putIn(ctx, c, made, g.People)
		if err != nil {
			_, _ = s.Registry.UpdateCohort(context.WithoutCancel(ctx), c.Project.ID, made.ID, registry.CohortFields{Deleted: registry.To(true)}, c.Start)
			return nil, err
		}
		made = filled
	}
	s.begin(made)
	return made, nil
}

// update answers PUT and PATCH: no field is required, so both change the fields given. Every change but that of deleted recomputes the
// members.
func (s *Cohorts) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	before, err := find(c, in)
	if err != nil {
		return nil, err
	}
	g, err := readGiven(in)
	if err != nil {
		return nil, err
	}
	if err := g.check(before); err != nil {
		return nil, err
	}
	if err := s.writable(ctx, c.Project.ID); err != nil {
		return nil, err
	}
	g.Calculate = g.Name.Given || g.Description.Given || g.Static.Given || g.Query.Given
	g.Check = s.checkOf(c, before)
	updated, err := s.Registry.UpdateCohort(ctx, c.Project.ID, before.ID, g.CohortFields, c.Start)
	if err != nil {
		return nil, err
	}
	if updated.Static && len(g.People.names) > 0 {
		if updated, err = s.putIn(ctx, c, updated, g.People); err != nil {
			return nil, err
		}
	}
	s.begin(updated)
	return s.answer(http.StatusOK, c, updated), nil
}

// writable refuses to write cohorts in another product's tables, which assigns the ids and members itself.
func (s *Cohorts) writable(ctx context.Context, project int64) error {
	layout, err := s.Executor.Shards.Of(project).Layout(ctx)
	if err != nil {
		return err
	}
	if layout.Foreign() {
		return api.Invalid("", "invalid_input", "These ClickHouse tables belong to another product: its cohorts can be used here, but not changed.")
	}
	return nil
}

// begin starts the calculation of a cohort that waits for one.
func (s *Cohorts) begin(of *registry.Cohort) {
	if of.Calculating() {
		s.Calculate(of.Project, of.ID)
	}
}
