package cohorts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// duplicate answers GET cohorts/:id/duplicate_as_static_cohort/: a new static cohort with the current members.
func (s *Cohorts) duplicate(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	of, err := find(c, in)
	switch {
	case err != nil:
		return nil, err
	case of.Deleted:
		return nil, api.NotFound("Not found.")
	case of.Static:
		return nil, api.Invalid("", "invalid_input", "Cannot duplicate a static cohort as a static cohort.")
	}
	if err := s.writable(ctx, c.Project.ID); err != nil {
		return nil, err
	}
	if s.Executor.Cohorts != nil { // waits if the cohort was never computed
		if _, err := s.Executor.Cohorts.Used(ctx, of.Project, []int64{of.ID}); err != nil {
			return nil, err
		}
	}
	name := shortName(of.Title(), " (static copy)")
	members, err := json.Marshal(map[string]string{"kind": "HogQLQuery", "query": fmt.Sprintf("select id from persons where id in cohort %d", of.ID)})
	if err != nil {
		return nil, fmt.Errorf("writing a query: %w", err)
	}
	made, err := s.make(ctx, c, &given{CohortFields: registry.CohortFields{
		Name: registry.To(&name), Description: registry.To(of.Description), Static: registry.To(true), Query: registry.To(json.RawMessage(members)),
	}})
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusOK, c, made), nil
}

// shortName returns a name with an ending, within the maximum length of names.
func shortName(name, ending string) string {
	runes := []rune(name)
	return strings.TrimSpace(string(runes[:min(len(runes), registry.MaxCohortName-len(ending))])) + ending
}
