package module

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func adminPurgeProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.Purge](r)
	if err != nil {
		return nil, err
	}
	p, err := adminProject(rt.registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	age := registry.PurgeAfter
	if body.OlderThan != "" {
		if age, err = caddy.ParseDuration(body.OlderThan); err != nil || age < 0 {
			return nil, badRequest("%q is not a valid age (want, for example, 30d)", body.OlderThan)
		}
	}
	purged, err := rt.registry.Purge(r.Context(), p.ID, time.Now().Add(-age))
	if err != nil {
		return nil, err // the error says what was being done
	}
	return adminapi.Purged{
		Project: p.ID, Insights: len(purged.Insights), Dashboards: len(purged.Dashboards), Tiles: len(purged.Tiles), Endpoints: purged.Endpoints,
		Keys: len(purged.Keys), Cohorts: purged.Cohorts, Actions: purged.Actions, Annotations: purged.Annotations,
	}, nil
}
