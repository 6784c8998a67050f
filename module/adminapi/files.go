package adminapi

import (
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// EndpointFiles are the endpoints of a project as files. The texts are sent because the server may be on another machine.
type EndpointFiles struct {
	Project        int64                 `json:"project"`
	Files          []endpointfile.Source `json:"files"`
	Prune          bool                  `json:"prune"`           // delete the endpoints that no file names
	RefuseBreaking bool                  `json:"refuse_breaking"` // for apply: change nothing if callers would notice
}

// FilesPlan is what has to change in a project to make its endpoints match their files.
type FilesPlan struct {
	Project   int64             `json:"project"`
	Changed   bool              `json:"changed"`  // there is something to do
	Breaking  bool              `json:"breaking"` // callers of an endpoint would notice
	Endpoints []PlannedEndpoint `json:"endpoints"`
	Variables []PlannedVariable `json:"variables"`
	Unmanaged []string          `json:"unmanaged"` // endpoints that no file names; they stay unless they are pruned
}

// Action is what happens to one thing.
type Action string

// The actions on an endpoint or a variable.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
	Keep   Action = "none"
)

// PlannedEndpoint is what happens to one endpoint.
type PlannedEndpoint struct {
	Name    string           `json:"name"`
	Path    string           `json:"path,omitempty"` // of its file; empty if it is pruned
	Action  Action           `json:"action"`
	Fields  []string         `json:"fields"`            // that change
	Version int              `json:"version,omitempty"` // the new version's number
	Changes *changes.Changes `json:"changes,omitempty"` // what callers notice
}

// PlannedVariable is what happens to one insight variable.
type PlannedVariable struct {
	Name   string   `json:"name"`
	Action Action   `json:"action"`
	Fields []string `json:"fields"`
}

// FilesReport is the plan for files and whether it was carried out, or the mistakes that prevent a plan.
type FilesReport struct {
	FilesPlan

	Applied  bool                  `json:"applied"`
	Mistakes []*endpointfile.Error `json:"mistakes"`
}
