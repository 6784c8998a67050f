package module

import (
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func adminListCaptureTokens(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	snap := rt.registry.Snapshot()
	project, err := adminProject(snap, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return recordCaptureTokens(snap, project.ID), nil
}

func adminRotateCaptureToken(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	project, err := adminProject(rt.registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if _, err := rt.registry.RotateCaptureToken(r.Context(), project.ID, time.Now()); err != nil {
		return nil, err
	}
	return recordCaptureTokens(rt.registry.Snapshot(), project.ID), nil
}

func adminRevokeCaptureToken(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	project, err := adminProject(rt.registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := rt.registry.RevokeCaptureToken(r.Context(), project.ID, r.PathValue("token")); err != nil {
		return nil, err
	}
	return recordCaptureTokens(rt.registry.Snapshot(), project.ID), nil
}

func adminCaptureStatus(rt *runtime, _ http.ResponseWriter, _ *http.Request) (any, error) {
	c := rt.capturing
	waiting, delivered := c.logs.Stats(), c.logs.Status()
	status := adminapi.CaptureStatus{
		Waiting: waiting.Events, Bytes: waiting.Bytes, MaxBytes: waiting.MaxBytes, Lag: delivered.Lag.Seconds(), Failing: delivered.Failing,
		Accepted: c.counters.Events.Load(), Refused: map[string]int64{}, Delivered: delivered.Delivered, SetAside: delivered.SetAside,
	}
	c.counters.Refused(func(reason string, requests int64) {
		if requests > 0 {
			status.Refused[reason] = requests
		}
	})
	for _, one := range c.logs.All() {
		waiting, delivered := one.Journal.Stats(), one.Delivery.Status()
		aside := ""
		if waiting.Aside > 0 {
			aside = one.Journal.AsideDir()
		}
		if one.Shard == "" {
			status.Aside = aside
			continue
		}
		status.Shards = append(status.Shards, adminapi.CaptureShard{
			Shard: one.Shard, Waiting: waiting.Events, Bytes: waiting.Bytes, MaxBytes: waiting.MaxBytes, Lag: delivered.Lag.Seconds(),
			Failing: delivered.Failing, Aside: aside,
		})
	}
	return status, nil
}

func recordCaptureTokens(snap *registry.Snapshot, project int64) adminapi.CaptureTokens {
	list := adminapi.CaptureTokens{Project: project, Tokens: []adminapi.CaptureToken{}}
	for _, c := range snap.CaptureTokens(project) {
		list.Tokens = append(list.Tokens, adminapi.CaptureToken{Token: c.Token, CreatedAt: c.CreatedAt})
	}
	return list
}
