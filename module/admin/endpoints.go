package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// endpointFiles plans the changes of files, and with the action apply makes them.
func (s *Server) endpointFiles(_ http.ResponseWriter, r *http.Request) (any, error) {
	action := r.PathValue("action")
	if action != "plan" && action != "apply" {
		return nil, badRequest("endpoint files can be planned or applied, not %q", action)
	}
	body, err := readBody[adminapi.EndpointFiles](r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	plan, err := s.readAndPlan(r.Context(), body, now)
	if mistakes := endpointfile.Mistakes(err); mistakes != nil {
		return adminapi.FilesReport{Mistakes: mistakes}, nil
	}
	if err != nil {
		return nil, err
	}
	report := adminapi.FilesReport{FilesPlan: plan.FilesPlan, Mistakes: []*endpointfile.Error{}}
	if action == "plan" || plan.Breaking && body.RefuseBreaking {
		return report, nil
	}
	report.Applied = true
	return report, s.Files.Apply(r.Context(), plan, now)
}

func (s *Server) readAndPlan(ctx context.Context, body adminapi.EndpointFiles, now time.Time) (*files.Plan, error) {
	parsed, err := endpointfile.ParseAll(body.Files)
	if err != nil {
		return nil, err // mistakes in files, which name the files
	}
	return s.Files.Plan(ctx, body.Project, parsed, body.Prune, now)
}

// exportEndpoints returns the endpoints of a project as files.
func (s *Server) exportEndpoints(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	project, err := projectOf(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	sources, err := files.Export(snap, project.ID)
	if err != nil {
		return nil, err
	}
	return adminapi.EndpointFiles{Project: project.ID, Files: sources}, nil
}
