package endpoints

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/openapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Documents describes endpoints in OpenAPI documents: contract api.md, section 5.6.
type Documents struct {
	Runs *Runs // for examples
}

// EveryEndpoint replaces the name in the path of the document of all endpoints. It contains a dot, so no endpoint can have it.
const EveryEndpoint = "openapi.json"

// maxDocumentValues is how many bytes the values of variables take in the document of all endpoints: each endpoint repeats those of its own.
const maxDocumentValues = 16 << 20

// Routes returns the routes of the documents.
func (s *Documents) Routes() []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: "endpoints/:name/openapi.json", Scope: readScope, Handler: s.one},
		{Method: http.MethodGet, Pattern: "endpoints/" + EveryEndpoint, Scope: readScope, Handler: s.all},
	}
}

// one answers with the document of one version of an endpoint.
func (s *Documents) one(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	v, _, err := askedVersion(in, e)
	if err != nil {
		return nil, err
	}
	withRows, err := showsRows(in)
	if err != nil {
		return nil, err
	}
	site := openapi.Site{URL: in.Base()}
	if site.WideAsText, err = wideAsText(in); err != nil {
		return nil, err
	}
	described, err := s.describe(ctx, c, e, v, withRows, site)
	if err != nil {
		return nil, err
	}
	return s.document(in, openapi.One(described, site)), nil
}

// all answers with one document for the active endpoints of the project.
func (s *Documents) all(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	withRows, err := showsRows(in)
	if err != nil {
		return nil, err
	}
	site := openapi.Site{URL: in.Base()}
	if site.WideAsText, err = wideAsText(in); err != nil {
		return nil, err
	}
	var described []*openapi.Endpoint
	var newest time.Time
	values, lent := openapi.ValuesRoom(maxDocumentValues), api.Parts{Loan: in.Memory}
	endpoints := slices.Clone(c.Snapshot.Endpoints(c.Project.ID))
	slices.SortFunc(endpoints, func(a, b *registry.Endpoint) int { // by age, so that a new endpoint doesn't change the names of others
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, e := range endpoints {
		if !e.Active || !e.Current().Active {
			continue
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("describing endpoints: %w", context.Cause(ctx))
		}
		d, err := s.describe(ctx, c, e, e.Current(), withRows, site)
		if err != nil {
			return nil, err
		}
		values.Fit(d)
		if err := lent.Add(ctx, d.Size()); err != nil {
			return nil, err
		}
		described = append(described, d)
		if e.UpdatedAt.After(newest) {
			newest = e.UpdatedAt
		}
	}
	version := "0" // if there are no endpoints
	if len(described) > 0 {
		version = newest.UTC().Format(time.RFC3339)
	}
	return s.document(in, openapi.All(described, "Endpoints of "+c.Project.Name, version, site)), nil
}

// showsRows reports whether the document can show rows: the parameter examples is run, the default, or types.
func showsRows(in *api.Input) (bool, error) {
	switch choice := in.URL.Query().Get("examples"); choice {
	case "", "run":
		return true, nil
	case "types":
		return false, nil
	default:
		return false, api.Invalid("examples", "invalid_input", "Input should be 'run' or 'types'")
	}
}

// document returns a document, with an ETag by which clients learn that it has not changed.
func (s *Documents) document(in *api.Input, doc *openapi3.T) *api.Response {
	body := s.Runs.Executor.Cache.Render(cache.Negotiate(in.Header.Get("Accept-Encoding")), func(dst []byte) []byte { return jsontext.Append(dst, doc) })
	return &api.Response{Body: body, Cache: api.Revalidate}
}

// describe returns a version of an endpoint for its document. With withRows, it includes rows of a cached run.
func (s *Documents) describe(
	ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version, withRows bool, site openapi.Site,
) (*openapi.Endpoint, error) {
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	d := &openapi.Endpoint{
		Project: e.Project, Name: e.Name, Version: v.Number, Pinned: v.Number != e.CurrentVersion, Description: v.Description,
		Deprecated: !v.DeprecatedAt.IsZero(), Materialized: v.Table != nil,
	}
	for _, column := range v.Columns {
		d.Columns = append(d.Columns, openapi.Column{Name: column.Name, Type: column.ClickHouse, Wire: column.Type})
	}
	if n, ok := node.(query.Insight); ok {
		describeInsight(d, n)
	}
	if n, ok := node.(*query.HogQL); ok {
		d.Variables = describeVariables(c, n)
	}
	if v.Table != nil {
		s.requireVariables(ctx, c, d, e, v, node)
	}
	if withRows {
		d.Example = s.Runs.example(ctx, c, e, v, node, site.WideAsText)
	}
	return d, nil
}

// requireVariables marks the variables as required that runs of a materialized version must give. It drops those for the date range, which is fixed in a
// table.
func (s *Documents) requireVariables(ctx context.Context, c *api.Caller, d *openapi.Endpoint, e *registry.Endpoint, v *registry.Version, node query.Node) {
	plan, _ := shownTable(ctx, s.Runs.Executor, c, e, v, node) // without a plan, nothing is required
	required := requiredVariables(v, node, plan)
	_, isInsight := node.(query.Insight)
	d.Variables = slices.DeleteFunc(d.Variables, func(v openapi.Variable) bool { return isInsight && isDate(v.Name) })
	for i := range d.Variables {
		if slices.Contains(required, d.Variables[i].Name) {
			d.Variables[i].Default, d.Variables[i].HasDefault = nil, false
		}
	}
}

// describeVariables lists the variables of SQL: contract api.md, section 5.5. A variable without a definition takes any text.
func describeVariables(c *api.Caller, n *query.HogQL) []openapi.Variable {
	var all []openapi.Variable
	for _, v := range n.Variables {
		described := openapi.Variable{Name: v.CodeName, Type: string(registry.VariableString)}
		if def := c.Snapshot.VariableByCode(c.Project.ID, v.CodeName); def != nil {
			described.Type, described.Description, described.Values, described.Several = string(def.Type), def.Name, def.Values, def.IsMulti
			described.Default, described.HasDefault = def.Default, def.Default != nil
		}
		if v.HasValue && v.Value != nil {
			described.Default, described.HasDefault = v.Value, true
		}
		if v.IsNull {
			described.Default, described.HasDefault = nil, true
		}
		all = append(all, described)
	}
	slices.SortFunc(all, func(a, b openapi.Variable) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// describeInsight adds the variables of an insight and the form of its result.
func describeInsight(d *openapi.Endpoint, n query.Insight) {
	for _, name := range query.VariableNames(n) {
		v := openapi.Variable{Name: name, HasDefault: true, Description: "Keeps the events with this value; an empty text those without one."}
		if name == "date_from" || name == "date_to" {
			v.Description = "Replaces that end of the range: a date, a time, or a relative one such as -30d."
		}
		d.Variables = append(d.Variables, v)
	}
	kind := compiler.KindOf(n)
	results := kind.Form(n)
	d.Results, d.HasMore = &results, kind.HasMore
}
