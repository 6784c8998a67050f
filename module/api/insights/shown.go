package insights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// resultParams are the parameters of the query string for the results of insights: contract api.md section 4.4.
type resultParams struct {
	mode     execution.RefreshMode
	over     result.Overrides
	clientID string
	text     bool    // results are text tables
	many     bool    // the response has many insights: if one is refused, that is no error of the whole
	written  bool    // the response is that of a write, which succeeded whatever happens to the results
	full     bool    // the response has no room for the result
	tables   *tables // the text tables with their limits; nil for other results
	// only are the ids of the tiles whose insights are requested; nil for all.
	only []int64
}

// readParams reads the parameters, and refuses mistakes that don't depend on the query. Writes call it before they write.
func readParams(c *api.Caller, in *api.Input) (resultParams, error) {
	given, err := in.Params()
	if err != nil {
		return resultParams{}, err
	}
	params := resultParams{mode: execution.RefreshForceCache, clientID: given.Get("client_query_id")}
	if given.Has("refresh") {
		name := given.Get("refresh")
		mode, ok := parseRefresh(name)
		if !ok {
			return params, api.Invalid("refresh", "invalid_choice", "%q is not a valid choice.", name)
		}
		params.mode = mode
	}
	if !result.ValidQueryID(params.clientID) {
		return params, api.Invalid("client_query_id", "invalid_input", "The id must be usable as a part of a path, and have at most %d characters.", result.MaxQueryID)
	}
	for _, over := range []struct {
		name string
		into *json.RawMessage
	}{{"filters_override", &params.over.Filters}, {"variables_override", &params.over.Variables}} {
		var object map[string]json.RawMessage
		if given, err := in.JSONParam(over.name, &object); err != nil {
			return params, err
		} else if given && object != nil { // null counts as not given, as on the query route
			*over.into = jsontext.Append(nil, object)
		}
	}
	if err := params.over.Check(); err != nil {
		return params, err
	}
	return params, result.MayOverride(c.Key, params.over.Filters)
}

// parseRefresh reads the name of a mode, or a boolean in any case. As in PostHog, the empty value counts as true.
func parseRefresh(name string) (execution.RefreshMode, bool) {
	switch word := strings.ToLower(name); {
	case word == "" || api.IsTrue(word):
		return execution.RefreshForceBlocking, true
	case word == "false" || word == "0" || word == "no":
		return execution.RefreshForceCache, true
	}
	return execution.ParseRefresh(name)
}

// afterWrite returns the parameters for the response of a successful write.
func (p resultParams) afterWrite() resultParams {
	p.written = true
	return p
}

// several returns the parameters for many insights at once, without clientID: one id can't stand for several runs.
func (p resultParams) several() resultParams {
	p.clientID, p.many = "", true
	return p
}

// shownInsight is an insight as a request refers to it: on its own, or on a dashboard.
type shownInsight struct {
	*registry.Insight
	tile      *registry.Tile // nil on its own
	dashboard *registry.Dashboard
}

// shownIn reads from_dashboard. Like PostHog, it ignores a dashboard that the insight is not on.
func shownIn(c *api.Caller, in *api.Input, i *registry.Insight) shownInsight {
	id, _ := parseNumber(in.URL.Query().Get("from_dashboard"))
	for _, t := range c.Snapshot.TilesOf(i.Project, i.ID) {
		if t.Dashboard == id {
			return shownInsight{i, t, c.Snapshot.Dashboard(i.Project, id)}
		}
	}
	return shownInsight{Insight: i}
}

// origin says what a run of the insight's query is for.
func (s shownInsight) origin() execution.Origin {
	from := execution.Origin{Insight: &s.ID}
	if s.tile != nil {
		from.Dashboard = &s.tile.Dashboard
	}
	return from
}

// overrides returns the overrides for the insight's query: the request's are merged over the dashboard's; a tile's filters replace both. As in PostHog, a
// query that takes no filters is not affected by those of a dashboard or tile.
func (s shownInsight) overrides(c *api.Caller, node query.Node, given result.Overrides) (result.Overrides, error) {
	given.Saved = true
	if s.tile == nil {
		return given, nil
	}
	var err error
	if given.Variables, err = merge(currentOverrides(c, s.dashboard.Variables, true), currentOverrides(c, given.Variables, true)); err != nil {
		return given, err
	}
	if !query.TakesOverrides(node) {
		return given, nil
	}
	if !isEmptyObject(s.tile.FilterOverrides) {
		given.Filters = s.tile.FilterOverrides
		return given, nil
	}
	given.Filters, err = merge(s.dashboard.Filters, given.Filters)
	return given, err
}

// overlaid returns the query with its overrides applied, for clients that run the query that they receive; nil if there are none. node is the query, with
// or without overrides.
func (s shownInsight) overlaid(c *api.Caller, node query.Node, given result.Overrides) (json.RawMessage, error) {
	over, err := s.overrides(c, node, given)
	if err != nil || isEmptyObject(over.Filters) && isEmptyObject(over.Variables) {
		return nil, err
	}
	return compiler.Overlaid(s.Query, over.Filters, over.Variables) // a mistake in the request, passed on as it is
}

func isEmptyObject(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "{}" }

// merge merges the members of over into below. If both are empty, so is the result.
func merge(below, over json.RawMessage) (json.RawMessage, error) {
	if isEmptyObject(below) {
		return over, nil
	}
	if isEmptyObject(over) {
		return below, nil
	}
	var all, more map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(below, &all), json.Unmarshal(over, &more)); err != nil {
		return nil, fmt.Errorf("reading overrides: %w", err)
	}
	maps.Copy(all, more)
	return jsontext.Append(nil, all), nil
}
