package module

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func adminPurgeProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.Purge](r)
	if err != nil {
		return nil, err
	}
	p, err := adminProject(rt.registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	age := registry.PurgeAfter
	if body.OlderThan != "" {
		if age, err = caddy.ParseDuration(body.OlderThan); err != nil || age < 0 {
			return nil, badRequest("%q is not a valid age (want, for example, 30d)", body.OlderThan)
		}
	}
	purged, err := rt.registry.Purge(r.Context(), p.ID, time.Now().Add(-age))
	if err != nil {
		return nil, err // the error says what was being done
	}
	return adminapi.Purged{
		Project: p.ID, Insights: len(purged.Insights), Dashboards: len(purged.Dashboards), Tiles: len(purged.Tiles), Endpoints: purged.Endpoints,
		Keys: len(purged.Keys), Cohorts: purged.Cohorts, Actions: purged.Actions, Annotations: purged.Annotations,
	}, nil
}

// adminDeleteProject deletes a project; the request has to confirm its name.
func adminDeleteProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.ProjectDeletion](r)
	if err != nil {
		return nil, err
	}
	p, err := adminProject(rt.registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if body.Confirm != p.Name {
		return nil, badRequest("project %d has another name: nothing is deleted", p.ID)
	}
	removed, err := rt.keeper.Delete(r.Context(), p.ID, body.Confirm)
	if err != nil {
		return nil, err
	}
	out := recordRemoval(removed.Removal)
	out.Name, out.Events, out.Persons, out.Groups = p.Name, &removed.Contents.Events, &removed.Contents.Persons, &removed.Contents.Groups
	return out, nil
}

// recordRemoval returns what is known of a deleted project.
func recordRemoval(r *registry.Removal) adminapi.DeletedProject {
	out := adminapi.DeletedProject{
		ID: r.Project, Records: map[string]int{}, RequestedAt: r.RequestedAt, RemovedAt: api.OrNil(r.RemovedAt), ErasedAt: api.OrNil(r.ErasedAt),
	}
	for kind, n := range r.Records {
		out.Records[string(kind)] = n
	}
	return out
}
