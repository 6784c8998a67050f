package admin

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// importFile imports a file from the request's body into a project.
func (s *Server) importFile(w http.ResponseWriter, r *http.Request) (any, error) {
	// Caddy gives admin requests ten seconds; an import may take as long as its file keeps coming.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	limitStalls(w, r, importPause)
	query := r.URL.Query()
	project, err := projectOf(s.Registry.Snapshot(), query.Get("project"))
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
	progress, end := s.ImportRuns.begin(query.Get("run"))
	defer end()
	report, err := s.Import(r.Context(), request, r.Body, progress)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// importProgress reports the progress of a command's import.
func (s *Server) importProgress(_ http.ResponseWriter, r *http.Request) (any, error) {
	found, ok := s.ImportRuns.of(r.URL.Query().Get("run"))
	if !ok {
		return nil, fmt.Errorf("the import: %w", registry.ErrNotFound)
	}
	return found, nil
}

// ImportRuns remembers the progress of recent imports by commands, for a command that is interrupted. It is safe for concurrent use; the zero value remembers
// none.
type ImportRuns struct {
	mu    sync.Mutex
	byRun map[string]adminapi.ImportProgress
	order []string
}

const (
	maxRuns    = 100 // imports that are remembered
	maxRunName = 100 // bytes of the name of one
)

// begin begins to remember an import by the name that its command gave it.
func (r *ImportRuns) begin(name string) (progress func(line, events int), end func()) {
	if name == "" || len(name) > maxRunName {
		return func(int, int) {}, func() {}
	}
	set := func(change func(*adminapi.ImportProgress)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.byRun == nil {
			r.byRun = map[string]adminapi.ImportProgress{}
		}
		one, ok := r.byRun[name]
		if !ok {
			if r.order = append(r.order, name); len(r.order) > maxRuns {
				delete(r.byRun, r.order[0])
				r.order = r.order[1:]
			}
		}
		change(&one)
		r.byRun[name] = one
	}
	set(func(p *adminapi.ImportProgress) { p.Running = true })
	return func(line, events int) { set(func(p *adminapi.ImportProgress) { p.Line, p.Events = line, events }) },
		func() { set(func(p *adminapi.ImportProgress) { p.Running = false }) }
}

func (r *ImportRuns) of(name string) (adminapi.ImportProgress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.byRun[name]
	return one, ok
}
