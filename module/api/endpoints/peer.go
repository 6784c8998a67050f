package endpoints

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// recipe returns what another server needs to plan the same run. It leaves out fields that don't affect the rows. It is nil for a run whose rows bypass the
// cache.
func (p *planner) recipe() *execution.Recipe {
	if p.exec.Peers == nil || p.Streams() {
		return nil
	}
	run := map[string]any{"version": p.Version.Number}
	for _, name := range [...]string{"variables", "filters_override"} {
		if raw, ok := p.fields[name]; ok {
			run[name] = raw
		}
	}
	if p.IsPage() {
		run["limit"], run["offset"] = p.Limit, p.Offset
	}
	if p.direct {
		run["refresh"] = "direct"
	}
	return &execution.Recipe{Endpoint: p.Endpoint.Name, Run: jsontext.Append(nil, run)}
}

// ForPeer answers another server that asks for the result of a run or for a page of one. It checks here whether the caller may have it.
func (s *Runs) ForPeer(ctx context.Context, c *api.Caller, asked *execution.PeerRequest) peers.Answer {
	e := c.Snapshot.Endpoint(c.Project.ID, asked.Recipe.Endpoint)
	if e == nil || !e.Active || !c.Key.Allows(readScope) || !c.Key.MayRun(e.Name) || !json.Valid(asked.Recipe.Run) {
		return peers.Declined("the run is not allowed")
	}
	in := &api.Input{Request: &http.Request{Method: http.MethodPost, URL: new(url.URL), Header: make(http.Header)}, At: api.Address{Resource: "endpoints", Name: e.Name}}
	local := *s
	executor := *s.Executor
	executor.Peers = nil // the server that is asked doesn't ask others
	local.Executor = &executor
	p, err := local.Plan(ctx, c, in, e, asked.Recipe.Run)
	if err != nil || p.Version.Draft() && (c.Key.Kind == registry.Secret || c.Key.Bound()) || p.Streams() {
		if asked.Key == "" && (err == nil || api.ErrorOf(err).Status < http.StatusInternalServerError) { // asking again would not help
			return execution.NoCutForPeer(asked)
		}
		return peers.Declined("the run is not allowed")
	}
	if p.Ref == (cache.Ref{}) {
		return local.Executor.ForPeer(ctx, &c.Caller, p.Query, &p.Freshness, asked)
	}
	got, err := local.Executor.Pinned(p.Query, &p.Freshness, p.Ref, c.Start)
	if err == nil {
		err = checkPage(p, got.Entry)
	}
	if err != nil {
		return execution.NoCutForPeer(asked)
	}
	page := &execution.PeerPage{Offset: p.Offset, Limit: p.Limit, Fresh: got.FreshFor}
	if next, ok := appendNextCursor(nil, local.Executor.Cache, p, got); ok {
		page.Next = string(next)
	}
	return execution.CutForPeer(got, p.Key, asked, c.Start, page)
}
