package cohorts

import (
	"bytes"
	"errors"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// checkOf returns the check of a cohort that is written; before is nil for a new one.
func (s *Cohorts) checkOf(c *api.Caller, before *registry.Cohort) func(*registry.Snapshot, *registry.Cohort) error {
	return func(now *registry.Snapshot, next *registry.Cohort) error {
		was := &registry.Cohort{Static: true}
		if before != nil {
			was = now.AnyCohort(next.Project, next.ID)
		}
		switch {
		case next.Deleted && !was.Deleted && before != nil:
			return s.References.Of(now, next.Project).RefuseDeletion(next.ID, c.Key)
		case next.Deleted || next.Static && next.Filters == nil && next.Groups == nil:
			return nil
		case was.Deleted || was.Static != next.Static || before == nil, !bytes.Equal(was.Filters, next.Filters), !bytes.Equal(was.Groups, next.Groups):
			return s.checkDefinition(now, next)
		}
		return nil
	}
}

// checkDefinition refuses filters that can't be read, that refer to missing actions or cohorts, or that depend on the cohort itself.
func (s *Cohorts) checkDefinition(now *registry.Snapshot, c *registry.Cohort) error {
	d, err := cohort.Read(c.Filters, c.Groups)
	if err != nil {
		return refusal(err)
	}
	for _, id := range cohort.Actions(d) {
		switch a := now.AnyAction(c.Project, id); {
		case a == nil:
			return api.Invalid("filters", "invalid_input", "%s", query.NoAction(id))
		case a.Deleted:
			return api.Invalid("filters", "invalid_input", "%s", query.DeletedAction(id, api.Deref(a.Name)))
		}
	}
	for _, id := range cohort.Cohorts(d) {
		if id != c.ID && now.Cohort(c.Project, id) == nil {
			return api.Invalid("filters", "invalid_input", "Invalid Cohort ID in filter")
		}
	}
	if slices.Contains(s.References.OfDefinition(now, c).Cohorts, c.ID) {
		return api.Invalid("filters", "invalid_input", "Cohorts cannot reference other cohorts in a loop.")
	}
	return nil
}

// refusal returns the error for filters that can't be read. As in PostHog, attr is the field, and the detail begins with the position in it.
func refusal(err error) error {
	mistake, ok := errors.AsType[*diag.Error](err)
	if !ok {
		return err
	}
	return api.Invalid(mistake.Attr, "invalid_input", "%s", mistake.Detail)
}
