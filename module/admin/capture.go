package admin

import (
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *Server) listCaptureTokens(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	project, err := projectOf(snap, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return recordCaptureTokens(snap, project.ID), nil
}

func (s *Server) rotateCaptureToken(_ http.ResponseWriter, r *http.Request) (any, error) {
	project, err := projectOf(s.Registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if _, err := s.Registry.RotateCaptureToken(r.Context(), project.ID, time.Now()); err != nil {
		return nil, err
	}
	return recordCaptureTokens(s.Registry.Snapshot(), project.ID), nil
}

func (s *Server) revokeCaptureToken(_ http.ResponseWriter, r *http.Request) (any, error) {
	project, err := projectOf(s.Registry.Snapshot(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := s.Registry.RevokeCaptureToken(r.Context(), project.ID, r.PathValue("token")); err != nil {
		return nil, err
	}
	return recordCaptureTokens(s.Registry.Snapshot(), project.ID), nil
}

func (s *Server) captureStatus(_ http.ResponseWriter, _ *http.Request) (any, error) {
	waiting, delivered := s.Captured.Stats(), s.Captured.Status()
	status := adminapi.CaptureStatus{
		Waiting: waiting.Events, Bytes: waiting.Bytes, MaxBytes: waiting.MaxBytes, Lag: delivered.Lag.Seconds(), Failing: delivered.Failing,
		Accepted: s.Counters.Events.Load(), Ignored: s.Counters.Ignored.Load(), Refused: map[string]int64{}, Delivered: delivered.Delivered, SetAside: delivered.SetAside,
	}
	s.Counters.Refused(func(reason string, requests int64) {
		if requests > 0 {
			status.Refused[reason] = requests
		}
	})
	for _, one := range s.Captured.All() {
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
