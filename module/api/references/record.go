package references

import (
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// MaxShown is the most references that a record shows.
const MaxShown = 50

// Record is a reference in JSON. Its name, its address and its author are null for a key that may not read what it names.
type Record struct {
	Type      Type       `json:"type"`
	ID        any        `json:"id"` // a number; a UUID for an endpoint
	Name      *string    `json:"name"`
	URL       *string    `json:"url"` // of the record, below the origin of the API
	CreatedAt *time.Time `json:"created_at"`
	CreatedBy *api.User  `json:"created_by"`
	Versions  []int      `json:"versions,omitempty"` // of an endpoint
}

// Records are the first MaxShown references as a caller may see them.
func Records(c *api.Caller, list []Reference) []Record {
	out := make([]Record, min(len(list), MaxShown))
	for i := range out {
		out[i] = recordOf(c, &list[i])
	}
	return out
}

// scopes are what a key needs to read what references name.
var scopes = map[Type]string{
	Insight: "insight:read", Dashboard: "dashboard:read", Endpoint: "endpoint:read", Cohort: "cohort:read", Action: "action:read",
	TestAccounts: "project:read",
}

func recordOf(c *api.Caller, r *Reference) Record {
	out := Record{Type: r.Type, ID: r.ID, Versions: r.Versions}
	if r.Type == Endpoint {
		out.ID = r.UUID
	}
	if !c.Key.Allows(scopes[r.Type]) {
		return out
	}
	address := r.address(c.Project.ID)
	out.Name, out.URL, out.CreatedAt, out.CreatedBy = r.Name, &address, api.OrNil(r.CreatedAt), c.User(r.CreatedBy)
	return out
}

// address is the path of the record of what uses it.
func (r *Reference) address(project int64) string {
	base := fmt.Sprintf("/api/projects/%d/", project)
	switch r.Type {
	case Endpoint:
		return base + "endpoints/" + url.PathEscape(api.Deref(r.Name)) + "/"
	case TestAccounts:
		return base
	case Insight, Dashboard, Cohort, Action:
	}
	return fmt.Sprintf("%s%ss/%d/", base, r.Type, r.ID)
}
