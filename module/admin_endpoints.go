package module

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// adminEndpointFiles plans the changes of files, and with the action apply makes them.
func adminEndpointFiles(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	action := r.PathValue("action")
	if action != "plan" && action != "apply" {
		return nil, badRequest("endpoint files can be planned or applied, not %q", action)
	}
	body, err := readAdmin[adminapi.EndpointFiles](r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	plan, err := rt.readAndPlan(r.Context(), body, now)
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
	return report, rt.files().Apply(r.Context(), plan, now)
}

func (rt *runtime) readAndPlan(ctx context.Context, body adminapi.EndpointFiles, now time.Time) (*files.Plan, error) {
	parsed, err := endpointfile.ParseAll(body.Files)
	if err != nil {
		return nil, err // mistakes in files, which name the files
	}
	return rt.files().Plan(ctx, body.Project, parsed, body.Prune, now)
}

// adminExportEndpoints returns the endpoints of a project as files.
func adminExportEndpoints(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	snap := rt.registry.Snapshot()
	project, err := adminProject(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	sources, err := files.Export(snap, project.ID)
	if err != nil {
		return nil, err
	}
	return adminapi.EndpointFiles{Project: project.ID, Files: sources}, nil
}
