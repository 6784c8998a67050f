package module

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/api/projects"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func init() { caddy.RegisterModule(adminAPI{}) }

// adminAPI serves the operator's commands below /analytics/ on Caddy's admin address, and the health paths.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.analytics", New: func() caddy.Module { return new(adminAPI) }}
}

// Routes returns the admin routes.
func (adminAPI) Routes() []caddy.AdminRoute {
	route := func(pattern string, methods map[string]adminHandler) caddy.AdminRoute {
		return caddy.AdminRoute{Pattern: pattern, Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return serveAdmin(methods, w, r)
		})}
	}
	return []caddy.AdminRoute{
		{Pattern: livePath, Handler: caddy.AdminHandlerFunc(adminHealth)},
		{Pattern: readyPath, Handler: caddy.AdminHandlerFunc(adminHealth)},
		route("/analytics/projects", map[string]adminHandler{http.MethodGet: adminListProjects, http.MethodPost: adminCreateProject}),
		route("/analytics/projects/{id}", map[string]adminHandler{http.MethodPatch: adminSetProject, http.MethodDelete: adminDeleteProject}),
		route("/analytics/projects/{id}/tokens", map[string]adminHandler{http.MethodGet: adminListCaptureTokens, http.MethodPost: adminRotateCaptureToken}),
		route("/analytics/projects/{id}/tokens/{token}", map[string]adminHandler{http.MethodDelete: adminRevokeCaptureToken}),
		route("/analytics/projects/{id}/purge", map[string]adminHandler{http.MethodPost: adminPurgeProject}),
		route("/analytics/keys", map[string]adminHandler{http.MethodGet: adminListKeys, http.MethodPost: adminCreateKey}),
		route("/analytics/keys/{id}/{action}", map[string]adminHandler{http.MethodPost: adminChangeKey}),
		route("/analytics/console", map[string]adminHandler{http.MethodPost: adminSignIn}),
		route("/analytics/tokens/rotate", map[string]adminHandler{http.MethodPost: adminRotateTokens}),
		route("/analytics/capture", map[string]adminHandler{http.MethodGet: adminCaptureStatus}),
		route("/analytics/properties", map[string]adminHandler{http.MethodPost: adminSetProperty}),
		route("/analytics/cohorts", map[string]adminHandler{http.MethodGet: adminListCohorts, http.MethodPost: adminCreateCohort}),
		route("/analytics/cohorts/{id}", map[string]adminHandler{http.MethodPatch: adminRenameCohort, http.MethodDelete: adminDeleteCohort}),
		route("/analytics/cohorts/{id}/recalculate", map[string]adminHandler{http.MethodPost: adminRecalculateCohort}),
		route("/analytics/alerts", map[string]adminHandler{http.MethodGet: adminListAlerts}),
		route("/analytics/alerts/{id}/check", map[string]adminHandler{http.MethodPost: adminCheckAlert}),
		route("/analytics/endpoints", map[string]adminHandler{http.MethodGet: adminExportEndpoints}),
		route("/analytics/endpoints/{action}", map[string]adminHandler{http.MethodPost: adminEndpointFiles}),
		route("/analytics/persons/delete", map[string]adminHandler{http.MethodPost: adminDeletePersons}),
		route("/analytics/persons/deletions", map[string]adminHandler{http.MethodGet: adminListDeletions}),
		route("/analytics/persons/erase", map[string]adminHandler{http.MethodPost: adminErase}),
		route("/analytics/import", map[string]adminHandler{http.MethodGet: adminImportProgress, http.MethodPost: adminImport}),
		streamed("/analytics/backups/create", adminCreateBackup),
		streamed("/analytics/backups/list", adminListBackups),
		streamed("/analytics/backups/restore", adminRestoreBackup),
		streamed("/analytics/backups/unpack", adminUnpackBackup),
	}
}

// adminHandler returns a value to send as JSON.
type adminHandler func(rt *runtime, w http.ResponseWriter, r *http.Request) (any, error)

// findAdmin returns the handler for a request, and the runtime of the running config.
func findAdmin(methods map[string]adminHandler, r *http.Request) (*runtime, adminHandler, error) {
	handle, ok := methods[r.Method]
	if !ok {
		return nil, nil, caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("method %s is not allowed here", r.Method)}
	}
	app, err := activeApp()
	if err != nil {
		return nil, nil, caddy.APIError{HTTPStatus: http.StatusConflict, Err: fmt.Errorf("the running config has no analytics: %w", err)}
	}
	rt, err := app.wait(r.Context())
	if errors.Is(err, errStarting) {
		err = caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
	}
	return rt, handle, err
}

func serveAdmin(methods map[string]adminHandler, w http.ResponseWriter, r *http.Request) error {
	rt, handle, err := findAdmin(methods, r)
	if err != nil {
		return err
	}
	rt.inProgress.Add(1)
	defer rt.inProgress.Add(-1)
	result, err := handle(rt, w, r)
	if err != nil {
		return adminError(err)
	}
	writeJSON(w, http.StatusOK, result)
	return nil
}

// adminError returns an error with its full reason: unlike customers, operators may see it.
func adminError(err error) error {
	status := http.StatusInternalServerError
	var mistake *registry.FieldError
	var file *imports.FileError
	switch {
	case errors.As(err, &file):
		status = http.StatusBadRequest
	case errors.As(err, &mistake), errors.Is(err, errBadRequest), errors.Is(err, registry.ErrRevoked), errors.As(err, new(*backups.RefusedError)):
		status = http.StatusBadRequest
	case errors.As(err, new(*backups.BrokenOffError)), errors.As(err, new(*deletions.RefusedError)):
		status = http.StatusConflict
	case errors.Is(err, registry.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, registry.ErrInDoubt), errors.Is(err, errClosed), files.IsPassing(err):
		status = http.StatusServiceUnavailable
	}
	return caddy.APIError{HTTPStatus: status, Err: err, Message: err.Error()}
}

// errBadRequest marks a mistake in an operator's request.
var errBadRequest = errors.New("bad request")

func badRequest(format string, args ...any) error {
	return badRequestError{fmt.Errorf(format, args...)}
}

// badRequestError is errBadRequest, and says only what is wrong.
type badRequestError struct{ error }

func (e badRequestError) Unwrap() []error { return []error{errBadRequest, e.error} }

func readAdmin[T any](r *http.Request) (T, error) {
	var body T
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, badRequest("reading the request: %w", err)
	}
	return body, nil
}

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

func adminCreateProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.NewProject](r)
	if err != nil {
		return nil, err
	}
	done, err := rt.backups.Creating()
	if err != nil {
		return nil, err
	}
	defer done()
	shard := rt.Shards.Emptiest(rt.registry.Snapshot().Projects())
	if body.Shard != nil {
		shard = *body.Shard
	}
	house := rt.Shards.Named(shard)
	if house == nil {
		return nil, badRequest("the config names no shard %q; it names %q", shard, rt.Shards.Names())
	}
	if err := checkTestAccounts(body.TestAccountFilters, execution.CohortsOf(nil, house.Known())); err != nil {
		return nil, err
	}
	p, err := rt.registry.CreateProject(r.Context(), registry.NewProject{
		Name: body.Name, Timezone: body.Timezone, WeekStart: int(body.WeekStart),
		TestAccountFilters: string(body.TestAccountFilters), PathCleaningFilters: string(body.PathCleaningFilters),
		Retention: body.Retention, Shard: shard,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return recordProject(rt.registry.Snapshot(), p), nil
}

func adminSetProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.ProjectChange](r)
	if err != nil {
		return nil, err
	}
	snap := rt.registry.Snapshot()
	before, err := adminProject(snap, r.PathValue("id"))
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
	if err := checkTestAccounts(body.TestAccountFilters, execution.CohortsOf(snap.Schema(before.ID).Cohorts, rt.Shards.Of(before.ID).Known())); err != nil {
		return nil, err
	}
	p, err := rt.registry.UpdateProject(r.Context(), before.ID, change)
	if err != nil {
		return nil, err
	}
	return recordProject(rt.registry.Snapshot(), p), nil
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

func adminListProjects(rt *runtime, _ http.ResponseWriter, _ *http.Request) (any, error) {
	records := []adminapi.Project{}
	snap := rt.registry.Snapshot()
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

func recordKey(snap *registry.Snapshot, k *registry.Key, secret string) adminapi.Key {
	return adminapi.Key{
		ID: k.ID, Key: secret, Project: k.Project, Kind: string(k.Kind), Label: k.Label, Mask: k.Mask, Scopes: k.Scopes, CreatedAt: k.CreatedAt,
		ExpiresAt: api.OrNil(k.ExpiresAt), LastUsedAt: api.OrNil(snap.LastUsed(k)), LastRolledAt: api.OrNil(k.LastRolledAt), RevokedAt: api.OrNil(k.RevokedAt),
		Parent: k.Parent, Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
	}
}

func adminCreateKey(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.NewKey](r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	wanted := registry.NewKey{Project: body.Project, Label: body.Label, Scopes: body.Scopes}
	switch body.Kind {
	case "", "personal":
		wanted.Kind = registry.Personal
	case "secret":
		wanted.Kind = registry.Secret
	default:
		return nil, badRequest("a key's kind is personal or secret, not %q", body.Kind)
	}
	if body.Expires != "" {
		life, err := caddy.ParseDuration(body.Expires)
		if err != nil || life <= 0 {
			return nil, badRequest("%q is not a valid time from now (want, for example, 90d)", body.Expires)
		}
		wanted.ExpiresAt = now.Add(life)
	}
	if wanted.Fixed, err = projects.BindKey(rt.registry.Snapshot(), wanted.Project, body.Fix, body.Endpoints); err != nil {
		return nil, badRequest("%w", err)
	}
	wanted.Endpoints = body.Endpoints
	key, secret, err := createKey(r.Context(), rt.registry, wanted, now)
	if err != nil {
		return nil, err
	}
	return recordKey(rt.registry.Snapshot(), key, secret), nil
}

// createKey creates an operator's key. The labels of a project's secret keys are unique (contract api.md, section 6.3), but an operator's label is only a
// note: if it is taken, it gets a number.
func createKey(ctx context.Context, keys *registry.Registry, wanted registry.NewKey, now time.Time) (*registry.Key, string, error) {
	label := strings.TrimSpace(wanted.Label)
	for n := 2; ; n++ {
		key, secret, err := keys.CreateKey(ctx, wanted, now)
		if mistake, ok := errors.AsType[*registry.FieldError](err); !ok || mistake.Field != "label" || mistake.Code != registry.CodeUnique {
			return key, secret, err // the error says what was being done
		}
		number := fmt.Sprintf(" %d", n)
		runes := []rune(label)
		wanted.Label = string(runes[:min(len(runes), registry.MaxKeyLabel-len(number))]) + number
	}
}

func adminListKeys(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	snap := rt.registry.Snapshot()
	projects := snap.Projects()
	if text := r.URL.Query().Get("project"); text != "" && text != "0" {
		project, err := adminProject(snap, text)
		if err != nil {
			return nil, err
		}
		projects = []*registry.Project{project}
	}
	records := []adminapi.Key{}
	for _, p := range projects {
		for _, k := range snap.Keys(p.ID) {
			records = append(records, recordKey(snap, k, ""))
		}
	}
	return map[string]any{"keys": records}, nil
}

func adminChangeKey(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	switch r.PathValue("action") {
	case "revoke":
		key, err := rt.registry.RevokeKey(r.Context(), id, time.Now())
		if err != nil {
			return nil, err
		}
		return recordKey(rt.registry.Snapshot(), key, ""), nil
	case "roll":
		key, secret, err := rt.registry.RollKey(r.Context(), id, nil, time.Now())
		if err != nil {
			return nil, err
		}
		return recordKey(rt.registry.Snapshot(), key, secret), nil
	}
	return nil, badRequest("a key can be rolled or revoked, not %q", r.PathValue("action"))
}

// adminProject returns the project that a parameter names.
func adminProject(snap *registry.Snapshot, text string) (*registry.Project, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, badRequest("%q is not the number of a project", text)
	}
	if p := snap.Project(id); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("project %d: %w", id, registry.ErrNotFound)
}

func adminSetProperty(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.Property](r)
	if err != nil {
		return nil, err
	}
	err = rt.registry.SetProperty(r.Context(), body.Project, registry.PropertyDefinition{
		Scope: registry.PropertyScope(body.Type), GroupTypeIndex: body.Group, Name: body.Name, Type: registry.PropertyType(body.As),
	})
	if err != nil {
		return nil, err
	}
	return body, nil
}

// Interface guard.
var _ caddy.AdminRouter = adminAPI{}
