package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/projects"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func recordKey(snap *registry.Snapshot, k *registry.Key, secret string) adminapi.Key {
	return adminapi.Key{
		ID: k.ID, Key: secret, Project: k.Project, Kind: string(k.Kind), Label: k.Label, Mask: k.Mask, Scopes: k.Scopes, CreatedAt: k.CreatedAt,
		ExpiresAt: api.OrNil(k.ExpiresAt), LastUsedAt: api.OrNil(snap.LastUsed(k)), LastRolledAt: api.OrNil(k.LastRolledAt), RevokedAt: api.OrNil(k.RevokedAt),
		Parent: k.Parent, Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
	}
}

func (s *Server) createKey(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.NewKey](r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	wanted := registry.NewKey{Project: body.Project, Label: body.Label, Scopes: body.Scopes}
	switch body.Kind {
	case "", "personal":
		wanted.Kind = registry.Personal
	case "secret":
		wanted.Kind = registry.Secret
	default:
		return nil, badRequest("a key's kind is personal or secret, not %q", body.Kind)
	}
	if body.Expires != "" {
		life, err := caddy.ParseDuration(body.Expires)
		if err != nil || life <= 0 {
			return nil, badRequest("%q is not a valid time from now (want, for example, 90d)", body.Expires)
		}
		wanted.ExpiresAt = now.Add(life)
	}
	if wanted.Fixed, err = projects.BindKey(s.Registry.Snapshot(), wanted.Project, body.Fix, body.Endpoints); err != nil {
		return nil, badRequest("%w", err)
	}
	wanted.Endpoints = body.Endpoints
	key, secret, err := addKey(r.Context(), s.Registry, wanted, now)
	if err != nil {
		return nil, err
	}
	return recordKey(s.Registry.Snapshot(), key, secret), nil
}

// addKey creates an operator's key. The labels of a project's secret keys are unique (contract api.md, section 6.3), but an operator's label is only a
// note: if it is taken, it gets a number.
func addKey(ctx context.Context, keys *registry.Registry, wanted registry.NewKey, now time.Time) (*registry.Key, string, error) {
	label := strings.TrimSpace(wanted.Label)
	for n := 2; ; n++ {
		key, secret, err := keys.CreateKey(ctx, wanted, now)
		if mistake, ok := errors.AsType[*registry.FieldError](err); !ok || mistake.Field != "label" || mistake.Code != registry.CodeUnique {
			return key, secret, err // the error says what was being done
		}
		number := fmt.Sprintf(" %d", n)
		runes := []rune(label)
		wanted.Label = string(runes[:min(len(runes), registry.MaxKeyLabel-len(number))]) + number
	}
}

func (s *Server) listKeys(_ http.ResponseWriter, r *http.Request) (any, error) {
	snap := s.Registry.Snapshot()
	projects := snap.Projects()
	if text := r.URL.Query().Get("project"); text != "" && text != "0" {
		project, err := projectOf(snap, text)
		if err != nil {
			return nil, err
		}
		projects = []*registry.Project{project}
	}
	records := []adminapi.Key{}
	for _, p := range projects {
		for _, k := range snap.Keys(p.ID) {
			records = append(records, recordKey(snap, k, ""))
		}
	}
	return map[string]any{"keys": records}, nil
}

func (s *Server) changeKey(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	switch r.PathValue("action") {
	case "revoke":
		key, err := s.Registry.RevokeKey(r.Context(), id, time.Now())
		if err != nil {
			return nil, err
		}
		return recordKey(s.Registry.Snapshot(), key, ""), nil
	case "roll":
		key, secret, err := s.Registry.RollKey(r.Context(), id, nil, time.Now())
		if err != nil {
			return nil, err
		}
		return recordKey(s.Registry.Snapshot(), key, secret), nil
	}
	return nil, badRequest("a key can be rolled or revoked, not %q", r.PathValue("action"))
}
