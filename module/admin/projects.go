package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func recordProject(snap *registry.Snapshot, p *registry.Project) adminapi.Project {
	return adminapi.Project{
		ID: p.ID, APIToken: snap.CaptureToken(p.ID), Name: p.Name, Timezone: p.Timezone, WeekStart: p.WeekStart, CreatedAt: p.CreatedAt,
		TestAccountFilters:  json.RawMessage(cmp.Or(p.TestAccountFilters, "[]")),
		PathCleaningFilters: json.RawMessage(cmp.Or(p.PathCleaningFilters, "[]")),
		Shard:               p.Shard,
		Retention:           p.Retention, EventsFrom: api.OrNil(eventsFrom(snap, p)),
	}
}

// eventsFrom returns the time of the earliest events that a project shows now.
func eventsFrom(snap *registry.Snapshot, p *registry.Project) time.Time {
	if of := snap.Schema(p.ID); of != nil {
		return of.EventsFrom(time.Now())
	}
	return time.Time{}
}

func (s *Server) createProject(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.NewProject](r)
	if err != nil {
		return nil, err
	}
	done, err := s.Backups.Creating()
	if err != nil {
		return nil, err
	}
	defer done()
	shard := s.Shards.Emptiest(s.Registry.Snapshot().Projects())
	if body.Shard != nil {
		shard = *body.Shard
	}
	wh := s.Shards.Named(shard)
	if wh == nil {
		return nil, badRequest("the config names no shard %q; it names %q", shard, s.Shards.Names())
	}
	if err := checkTestAccounts(body.TestAccountFilters, execution.CohortsOf(nil, wh.Known())); err != nil {
		return nil, err
	}
	p, err := s.Registry.CreateProject(r.Context(), registry.NewProject{
		Name: body.Name, Timezone: body.Timezone, WeekStart: int(body.WeekStart),
		TestAccountFilters: string(body.TestAccountFilters), PathCleaningFilters: string(body.PathCleaningFilters),
		Retention: body.Retention, Shard: shard,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return recordProject(s.Registry.Snapshot(), p), nil
}

func (s *Server) setProject(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.ProjectChange](r)
	if err != nil {
		return nil, err
	}
	snap := s.Registry.Snapshot()
	before, err := projectOf(snap, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	change := registry.ProjectChange{Name: body.Name, Timezone: body.Timezone, WeekStart: body.WeekStart, Retention: body.Retention, At: time.Now()}
	for _, list := range []struct {
		given json.RawMessage
		into  **string
	}{{body.TestAccountFilters, &change.TestAccountFilters}, {body.PathCleaningFilters, &change.PathCleaningFilters}} {
		if list.given != nil {
			text := string(list.given)
			*list.into = &text
		}
	}
	if err := checkTestAccounts(body.TestAccountFilters, execution.CohortsOf(snap.Schema(before.ID).Cohorts, s.Shards.Of(before.ID).Known())); err != nil {
		return nil, err
	}
	p, err := s.Registry.UpdateProject(r.Context(), before.ID, change)
	if err != nil {
		return nil, err
	}
	return recordProject(s.Registry.Snapshot(), p), nil
}

// checkTestAccounts refuses filters that no query could use. It compiles their operators and expressions for a project with the given cohorts.
func checkTestAccounts(raw json.RawMessage, cohorts schema.Cohorts) error {
	if raw == nil {
		return nil
	}
	filters, err := query.ParseTestAccounts(raw)
	if err != nil {
		return badRequest("%w", err)
	}
	_, err = compiler.Compile(&events.Query{Select: []string{"uuid"}, FilterTestAccounts: true}, compiler.Env{
		Database: &schema.Database{Project: 1, Location: time.UTC, Cohorts: cohorts}, Now: time.Now(), TestAccounts: filters,
	})
	if compiler.Mistakes(err) != nil {
		return badRequest("%w", err)
	}
	return err
}

func (s *Server) listProjects(_ http.ResponseWriter, _ *http.Request) (any, error) {
	records := []adminapi.Project{}
	snap := s.Registry.Snapshot()
	for _, p := range snap.Projects() {
		records = append(records, recordProject(snap, p))
	}
	out := map[string]any{"projects": records}
	var deleted []adminapi.DeletedProject
	for _, r := range snap.Removals() {
		deleted = append(deleted, recordRemoval(r))
	}
	if deleted != nil {
		out["deleted"] = deleted
	}
	return out, nil
}

// projectOf returns the project that a parameter names.
func projectOf(snap *registry.Snapshot, text string) (*registry.Project, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, badRequest("%q is not a project id", text)
	}
	if p := snap.Project(id); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("project %d: %w", id, registry.ErrNotFound)
}

func (s *Server) purgeProject(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.Purge](r)
	if err != nil {
		return nil, err
	}
	p, err := projectOf(s.Registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	age := registry.PurgeAfter
	if body.OlderThan != "" {
		if age, err = caddy.ParseDuration(body.OlderThan); err != nil || age < 0 {
			return nil, badRequest("%q is not a valid age (want, for example, 30d)", body.OlderThan)
		}
	}
	purged, err := s.Registry.Purge(r.Context(), p.ID, time.Now().Add(-age))
	if err != nil {
		return nil, err // the error says what was being done
	}
	return adminapi.Purged{
		Project: p.ID, Insights: len(purged.Insights), Dashboards: len(purged.Dashboards), Tiles: len(purged.Tiles), Endpoints: purged.Endpoints,
		Keys: len(purged.Keys), Cohorts: purged.Cohorts, Actions: purged.Actions, Annotations: purged.Annotations, Deletions: purged.Deletions,
	}, nil
}

// deleteProject deletes a project; the request has to confirm its name.
func (s *Server) deleteProject(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.ProjectDeletion](r)
	if err != nil {
		return nil, err
	}
	p, err := projectOf(s.Registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if body.Confirm != p.Name {
		return nil, badRequest("project %d has another name: nothing is deleted", p.ID)
	}
	removed, err := s.Keeper.Delete(r.Context(), p.ID, body.Confirm)
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
