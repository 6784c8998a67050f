package admin

import (
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *Server) setProperty(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.Property](r)
	if err != nil {
		return nil, err
	}
	err = s.Registry.SetProperty(r.Context(), body.Project, registry.PropertyDefinition{
		Scope: registry.PropertyScope(body.Type), GroupTypeIndex: body.Group, Name: body.Name, Type: registry.PropertyType(body.As),
	})
	if err != nil {
		return nil, err
	}
	return body, nil
}
