package module

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// filesBody is what the commands on endpoint files send: the files themselves, since the server may be on another machine.
type filesBody struct {
	Project        int64                 `json:"project"`
	Files          []endpointfile.Source `json:"files"`
	Prune          bool                  `json:"prune"`           // delete the endpoints that no file names
	RefuseBreaking bool                  `json:"refuse_breaking"` // of apply: change nothing when callers would notice
}

// filesReport is what became of files: a plan, or the mistakes that keep them from having one.
type filesReport struct {
	filesPlan

	Applied  bool                  `json:"applied"`
	Mistakes []*endpointfile.Error `json:"mistakes"`
}

// adminEndpointFiles plans what files change, and with the action apply it makes the changes.
func adminEndpointFiles(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	action := r.PathValue("action")
	if action != "plan" && action != "apply" {
		return nil, badRequest("endpoint files can be planned or applied, not %q", action)
	}
	body, err := readAdmin[filesBody](r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	plan, err := rt.readAndPlan(r.Context(), body, now)
	if mistakes := endpointfile.Mistakes(err); mistakes != nil {
		return filesReport{Mistakes: mistakes}, nil
	}
	if err != nil {
		return nil, err
	}
	report := filesReport{filesPlan: *plan, Mistakes: []*endpointfile.Error{}}
	if action == "plan" || plan.Breaking && body.RefuseBreaking {
		return report, nil
	}
	report.Applied = true
	return report, rt.applyFiles(r.Context(), plan, now)
}

func (rt *runtime) readAndPlan(ctx context.Context, body filesBody, now time.Time) (*filesPlan, error) {
	files, err := endpointfile.ParseAll(body.Files)
	if err != nil {
		return nil, err // mistakes in files, told as they are
	}
	return rt.planFiles(ctx, body.Project, files, body.Prune, now)
}

// adminExportEndpoints gives the endpoints of a project as files.
func adminExportEndpoints(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	snap := rt.registry.Snapshot()
	project, err := adminProject(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	files, err := exportFiles(snap, project.ID)
	if err != nil {
		return nil, err
	}
	return filesBody{Project: project.ID, Files: files}, nil
}
