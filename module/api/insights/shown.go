package insights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// resultParams are the parameters of the query string that decide about the results of insights: contract api.md section 4.4.
type resultParams struct {
	mode     execution.RefreshMode
	over     result.Overrides
	clientID string
	text     bool    // results are shown as tables of text
	many     bool    // the insight is one of many in the answer: what is refused to one is no error of all
	written  bool    // the answer is that of a write, which was made whatever becomes of the results
	full     bool    // the answer has no room for the result
	tables   *tables // of what is shown as text, if they have a limit
	// only are the numbers of the tiles whose insights are wanted of a dashboard; nil for all.
	only []int64
}

// readParams reads them, and refuses what is wrong with them whatever query they are for. What writes reads them before it writes.
func readParams(c *api.Caller, in *api.Input) (resultParams, error) {
	given := in.URL.Query()
	params := resultParams{mode: execution.RefreshForceCache, clientID: given.Get("client_query_id")}
	if name := given.Get("refresh"); api.IsTrue(name) {
		params.mode = execution.RefreshForceBlocking
	} else if name != "" && name != "false" {
		mode, ok := execution.ParseRefresh(name)
		if !ok {
			return params, api.Invalid("refresh", "invalid_choice", "%q is not a valid choice.", name)
		}
		params.mode = mode
	}
	if !result.ValidQueryID(params.clientID) || len(params.clientID) > result.MaxQueryID {
		return params, api.Invalid("client_query_id", "invalid_input", "The id must be usable as a part of a path, and have at most %d characters.", result.MaxQueryID)
	}
	for _, over := range []struct {
		name string
		into *json.RawMessage
	}{{"filters_override", &params.over.Filters}, {"variables_override", &params.over.Variables}} {
		var object map[string]json.RawMessage
		if given, err := in.JSONParam(over.name, &object); err != nil {
			return params, err
		} else if given {
			*over.into = jsontext.Append(nil, object)
		}
	}
	if err := params.over.Check(); err != nil {
		return params, err
	}
	return params, result.MayOverride(c.Key, params.over.Filters)
}

// afterWrite gives the parameters for the answer of a write that was made.
func (p resultParams) afterWrite() resultParams {
	p.written = true
	return p
}

// several gives the parameters for many insights at once: an id cannot stand for all of their runs.
func (p resultParams) several() resultParams {
	p.clientID, p.many = "", true
	return p
}

// shownInsight is an insight as one request asks for it: by itself, or as a part of a dashboard.
type shownInsight struct {
	*registry.Insight
	tile      *registry.Tile // nil by itself
	dashboard *registry.Dashboard
}

// shownIn reads from_dashboard. Like PostHog it ignores a dashboard that the insight is not on.
func shownIn(c *api.Caller, in *api.Input, i *registry.Insight) shownInsight {
	id, _ := parseNumber(in.URL.Query().Get("from_dashboard"))
	for _, t := range c.Snapshot.TilesOf(i.Project, i.ID) {
		if t.Dashboard == id {
			return shownInsight{i, t, c.Snapshot.Dashboard(i.Project, id)}
		}
	}
	return shownInsight{Insight: i}
}

// origin is what a run of its query is for.
func (s shownInsight) origin() execution.Origin {
	from := execution.Origin{Insight: &s.ID}
	if s.tile != nil {
		from.Dashboard = &s.tile.Dashboard
	}
	return from
}

// overrides are what goes over the insight's query: the request's own over the dashboard's; a tile's filters take the place
// of both.
func (s shownInsight) overrides(given result.Overrides) (result.Overrides, error) {
	if s.tile == nil {
		return given, nil
	}
	var err error
	if given.Variables, err = merge(s.dashboard.Variables, given.Variables); err != nil {
		return given, err
	}
	if !isEmptyObject(s.tile.FilterOverrides) {
		given.Filters = s.tile.FilterOverrides
		return given, nil
	}
	given.Filters, err = merge(s.dashboard.Filters, given.Filters)
	return given, err
}

// overlaid is the query with its overrides put over it, for clients that run what they were shown; nil when there are none.
func (s shownInsight) overlaid(given result.Overrides) (json.RawMessage, error) {
	over, err := s.overrides(given)
	if err != nil || isEmptyObject(over.Filters) && isEmptyObject(over.Variables) {
		return nil, err
	}
	return compiler.Overlaid(s.Query, over.Filters, over.Variables) // a mistake of the request, told as it is
}

func isEmptyObject(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "{}" }

// merge puts the members of one object over those of another. Two empty ones give nothing.
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
