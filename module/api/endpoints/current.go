package endpoints

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/publish"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// promote answers POST endpoints/:name/promote/: it makes a version, such as a draft, the current one.
func (s *Endpoints) promote(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return s.setCurrent(ctx, c, in, func(_ *registry.Endpoint, number int, given bool) (int, error) {
		if !given {
			return 0, api.Invalid("version", "required", "This field is required.")
		}
		return number, nil
	})
}

// rollBack answers POST endpoints/:name/rollback/: it makes an older version current again. Unless the body names one, it is the one with the highest number
// below that of the current version that is active and no draft.
func (s *Endpoints) rollBack(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return s.setCurrent(ctx, c, in, func(e *registry.Endpoint, number int, given bool) (int, error) {
		if given {
			if v := e.Version(number); v != nil && number != 0 && v.Draft() {
				return 0, api.Invalid("version", "invalid_input", "Version %d is a draft: it never was the current one. Promote it instead.", number)
			}
			return number, nil
		}
		for n := e.CurrentVersion - 1; n > 0; n-- {
			if v := e.Version(n); v.Active && !v.Draft() {
				return n, nil
			}
		}
		return 0, api.Invalid("version", "invalid_input", "There is no older version to go back to.")
	})
}

// setCurrent makes the version that choose returns the current one, and reports what that changes for callers.
func (s *Endpoints) setCurrent(
	ctx context.Context, c *api.Caller, in *api.Input, choose func(e *registry.Endpoint, number int, given bool) (int, error),
) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	body, err := in.ReadFields("version", "refuse_breaking")
	if err != nil {
		return nil, err
	}
	var number int
	given, err := api.Field(body, "version", &number)
	if err != nil {
		return nil, err
	}
	refuse, err := api.BoolField(body, "refuse_breaking")
	if err != nil {
		return nil, err
	}
	if number, err = choose(e, number, given); err != nil {
		return nil, err
	}
	comparison := publish.Comparison{Snapshot: c.Snapshot, References: s.References, Project: c.Project.ID, RefuseBreaking: refuse, Attr: "version"}
	updated, err := s.Registry.Promote(ctx, c.Project.ID, e.Name, number, comparison.Check, c.Start)
	if err != nil {
		return nil, err
	}
	shown := s.recordOf(ctx, c, in, updated)
	shown.Changes = comparison.Found
	return api.JSON(http.StatusOK, shown), nil
}
