package module

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openKeeper takes a share of what removes old events and deleted projects. keys identify what it uses that a config may change.
func (a *App) openKeeper(rt *runtime, keys string) (*upkeep.Keeper, error) {
	return keep(a, "upkeep "+keys+" "+a.DataDir, func() (*upkeep.Keeper, func() error, error) {
		k := upkeep.New(upkeep.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("upkeep"),
			Outdated: func(project int64, before, from time.Time) {
				rt.Cache.EraseOutdated(project, before, from)
				rt.Runs.Erase(project, before)
			},
			Forget: rt.forgetProject, ForgetEndpoint: rt.forget, EraseImports: rt.imports.service.Forget,
			EraseCaptured: func(ctx context.Context, shard string) error {
				return rt.capturing.eraseProjects(ctx, shard, func(project int64) bool { return rt.registry.Snapshot().Removal(project) != nil })
			},
		})
		return k, k.Close, nil
	})
}

// forgetProject makes this server forget everything about a deleted project.
func (rt *runtime) forgetProject(project int64) {
	now := time.Now()
	rt.Cache.Erase(project, now)
	rt.Runs.Erase(project, now)
	rt.ForgetProject(project)
	rt.Log.Forget(project)
	rt.capturing.counters.Forget(project)
	rt.capturing.logs.Forget(project)
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
