package files

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Export returns a project's endpoints as files, sorted by name, with the current version of each.
func Export(snap *registry.Snapshot, project int64) ([]endpointfile.Source, error) {
	sources := []endpointfile.Source{}
	for _, e := range snap.Endpoints(project) {
		f, err := exportFile(snap, e)
		if err != nil {
			return nil, err
		}
		text, err := endpointfile.Marshal(f)
		if err != nil {
			return nil, err
		}
		sources = append(sources, endpointfile.Source{Path: f.Path, Text: string(text)})
	}
	slices.SortFunc(sources, func(a, b endpointfile.Source) int { return cmp.Compare(a.Path, b.Path) })
	return sources, nil
}

func exportFile(snap *registry.Snapshot, e *registry.Endpoint) (*endpointfile.File, error) {
	v := e.Current()
	f := &endpointfile.File{
		Path: e.Name + ".yaml", Name: e.Name, Description: v.Description, Freshness: time.Duration(v.FreshnessSeconds) * time.Second, Active: e.Active,
		Tags: e.Tags, OptionalBreakdowns: v.OptionalBreakdowns, RateLimit: e.RateLimit,
	}
	if v.Table != nil {
		f.Materialized, f.Buckets = true, v.Table.Buckets
	}
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(v.Query, &fields); err != nil {
		return nil, fmt.Errorf("reading the stored query of endpoint %s: %w", e.ID, err)
	}
	if q, ok := node.(*query.HogQL); ok {
		delete(fields, "variables")
		f.Variables = exportVariables(snap, e.Project, q)
	}
	f.Query = jsontext.Append(nil, fields)
	return f, nil
}

// exportVariables returns the variables of a query as a file defines them, sorted by name.
func exportVariables(snap *registry.Snapshot, project int64, q *query.HogQL) []endpointfile.Variable {
	var out []endpointfile.Variable
	for _, v := range q.Variables {
		def := snap.VariableByCode(project, v.CodeName)
		if def == nil {
			continue // deleted: reading the file reports the missing definition
		}
		variable := endpointfile.Variable{Name: def.CodeName, Type: def.Type, Multi: def.IsMulti}
		if def.Default != nil {
			variable.Default = jsontext.Append(nil, def.Default)
		}
		if def.Values != nil {
			variable.Values = jsontext.Append(nil, def.Values)
		}
		switch {
		case v.IsNull:
			variable.Value = json.RawMessage("null")
		case v.HasValue:
			variable.Value = jsontext.Append(nil, v.Value)
		}
		out = append(out, variable)
	}
	slices.SortFunc(out, func(a, b endpointfile.Variable) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
