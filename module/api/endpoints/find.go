package endpoints

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The scopes of the endpoint routes.
const (
	readScope  = "endpoint:read"
	writeScope = "endpoint:write"
)

// find finds an endpoint of the caller's project by its name.
func find(c *api.Caller, name string) (*registry.Endpoint, error) {
	if e := c.Snapshot.Endpoint(c.Project.ID, name); e != nil {
		return e, nil
	}
	return nil, noEndpoint(c, name)
}

// missing holds what a response about an unknown endpoint says besides the standard detail.
type missing struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the nearest name
}

// noEndpoint names the endpoint that does not exist, and the closest name among those that the caller may run.
func noEndpoint(c *api.Caller, name string) error {
	nearest := schema.Nearest(name, func(yield func(string) bool) {
		for _, e := range c.Snapshot.Endpoints(c.Project.ID) {
			if e.Active && c.Token == nil && c.Key.MayRun(e.Name) && !yield(e.Name) {
				return
			}
		}
	})
	const most = 128 // bytes of a name
	about := missing{Message: fmt.Sprintf("This project has no endpoint named %q.", strings.ToValidUTF8(name[:min(most, len(name))], "")), Hint: nearest}
	if nearest != "" {
		about.Message += fmt.Sprintf(" Did you mean %q?", nearest)
	}
	answer := api.NotFound("Not found.")
	answer.Extra = about
	return answer
}

// askedVersion finds the version in the query string, else the current one, and reports whether the query string has one.
func askedVersion(in *api.Input, e *registry.Endpoint) (v *registry.Version, asked bool, err error) {
	number, asked, err := in.QueryInt("version")
	if err != nil {
		return nil, false, err
	}
	v, err = versionOf(e, number, asked)
	return v, asked, err
}

// versionOf finds the version with a number if asked, else the current one.
func versionOf(e *registry.Endpoint, number int, asked bool) (*registry.Version, error) {
	v := e.Version(number)
	if v == nil || asked && number == 0 { // Version(0) is the current one
		return nil, api.NewRunError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found", number))
	}
	return v, nil
}
