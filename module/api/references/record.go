package references

import (
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// maxShown is the most references in a record.
const maxShown = 50

// Record is a reference in JSON. Its name, URL, time and author are null for a key that may not read the object.
type Record struct {
	Type      Type       `json:"type"`
	ID        any        `json:"id"` // a number; a UUID for an endpoint
	Name      *string    `json:"name"`
	URL       *string    `json:"url"` // of the object, relative to the origin of the API
	CreatedAt *time.Time `json:"created_at"`
	CreatedBy *api.User  `json:"created_by"`
	Versions  []int      `json:"versions,omitempty"` // of an endpoint
}

// Records returns the first maxShown references as the caller may see them.
func Records(c *api.Caller, list []Reference) []Record {
	out := make([]Record, min(len(list), maxShown))
	for i := range out {
		out[i] = recordOf(c, &list[i])
	}
	return out
}

// scopes are the scopes that a key needs to read the object of a reference.
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

// address returns the path of the object of a reference.
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
