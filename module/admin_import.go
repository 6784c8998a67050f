package module

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// adminImport imports a file from the request's body into a project.
func adminImport(rt *runtime, w http.ResponseWriter, r *http.Request) (any, error) {
	// Caddy gives admin requests ten seconds; an import may take as long as its file keeps coming.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	limitStalls(w, r, importPause)
	query := r.URL.Query()
	project, err := adminProject(rt.registry.Snapshot(), query.Get("project"))
	if err != nil {
		return nil, err
	}
	format, err := formats.ParseFormat(query.Get("format"))
	if err != nil {
		return nil, badRequest("%w", err)
	}
	mapping, err := formats.ParseMapping(query["map"])
	if err != nil {
		return nil, badRequest("%w", err)
	}
	request := imports.Request{Project: project.ID, Name: query.Get("name"), Format: string(format), Map: mapping}
	if request.DryRun, err = api.ParseFlag(query.Get("dry_run"), false); err != nil {
		return nil, badRequest("dry_run: %w", err)
	}
	if request.LearnTypes, err = api.ParseFlag(query.Get("learn_types"), true); err != nil {
		return nil, badRequest("learn_types: %w", err)
	}
	progress, end := rt.imports.runs.begin(query.Get("run"))
	defer end()
	report, err := rt.imports.run(r.Context(), request, r.Body, progress)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// adminImportProgress reports the progress of a command's import.
func adminImportProgress(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	found, ok := rt.imports.runs.of(r.URL.Query().Get("run"))
	if !ok {
		return nil, fmt.Errorf("the import: %w", registry.ErrNotFound)
	}
	return found, nil
}
