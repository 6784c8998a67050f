package admin

import (
	"fmt"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func recordAlert(a *registry.Alert) adminapi.Alert {
	r := adminapi.Alert{
		ID: a.ID, Project: a.Project, Insight: a.Insight, Name: a.Name, Enabled: a.Enabled, State: string(a.State), LastValue: a.LastValue,
		LastCheckedAt: api.OrNil(a.LastCheckedAt), NextCheckAt: api.OrNil(a.NextCheckAt), NotifiedAt: api.OrNil(a.LastNotifiedAt),
		WebhookURL: a.Webhook.URL, Waiting: []adminapi.AlertDelivery{},
	}
	for _, d := range a.Deliveries {
		r.Waiting = append(r.Waiting, adminapi.AlertDelivery{
			ID: d.ID, CheckedAt: d.CheckedAt, Tries: d.Tries, NextTryAt: d.NextTryAt, LastError: d.LastError,
		})
	}
	return r
}

func (s *Server) listAlerts(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	project, err := projectOf(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	records := []adminapi.Alert{}
	for _, a := range snap.Alerts(project.ID) {
		records = append(records, recordAlert(a))
	}
	return map[string]any{"alerts": records}, nil
}

// checkAlert makes an alert be checked now, whenever it is due.
func (s *Server) checkAlert(_ http.ResponseWriter, r *http.Request) (any, error) {
	project, err := projectOf(s.Registry.Snapshot(), r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	known := s.Registry.Snapshot().Alert(project.ID, r.PathValue("id"))
	switch {
	case known == nil:
		return nil, fmt.Errorf("alert %s of project %d: %w", r.PathValue("id"), project.ID, registry.ErrNotFound)
	case !known.Enabled:
		return nil, badRequest("the alert is disabled: it is not checked")
	}
	a, err := s.Registry.AskAlertCheck(r.Context(), project.ID, known.ID)
	if err != nil {
		return nil, err
	}
	s.Alerts.Look()
	return recordAlert(a), nil
}
