package module

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// purgeBody says how long ago something must have been deleted to be purged, such as 30d; empty for registry.PurgeAfter.
type purgeBody struct {
	OlderThan string `json:"older_than"`
}

// purgedRecord says how much of a project was removed for good.
type purgedRecord struct {
	Project    int64 `json:"project"`
	Insights   int   `json:"insights"`
	Dashboards int   `json:"dashboards"`
	Tiles      int   `json:"tiles"`
	Endpoints  int   `json:"endpoints"`
	Keys       int   `json:"keys"`
	Cohorts    int   `json:"cohorts"`
}

func adminPurgeProject(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[purgeBody](r)
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
		return nil, err // it says what was being done
	}
	return purgedRecord{
		Project: p.ID, Insights: len(purged.Insights), Dashboards: len(purged.Dashboards), Tiles: len(purged.Tiles), Endpoints: purged.Endpoints,
		Keys: len(purged.Keys), Cohorts: purged.Cohorts,
	}, nil
}
