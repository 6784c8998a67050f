package module

import (
	"cmp"
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

// everyEndpoint is where the document of all endpoints is, in the place of a name. It has a dot, so that no endpoint can have it.
const everyEndpoint = "openapi.json"

// getOpenAPI answers with the OpenAPI document of one version of an endpoint: contract section 5.6.
func (rq *request) getOpenAPI() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	v, _, err := rq.askedVersion(e)
	if err != nil {
		return err
	}
	real, err := rq.realExamples()
	if err != nil {
		return err
	}
	described, err := rq.describeEndpoint(e, v, real)
	if err != nil {
		return err
	}
	rq.writeDocument(openapi.One(described, rq.origin()))
	return nil
}

// getOpenAPIOfAll answers with one document for the endpoints of the project that are switched on.
func (rq *request) getOpenAPIOfAll() error {
	real, err := rq.realExamples()
	if err != nil {
		return err
	}
	var described []*openapi.Endpoint
	var newest time.Time
	endpoints := slices.Clone(rq.Snapshot.Endpoints(rq.Project.ID))
	slices.SortFunc(endpoints, func(a, b *registry.Endpoint) int { // by age, so that a new endpoint changes no other's names
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, e := range endpoints {
		if !e.Active || !e.Current().Active {
			continue
		}
		d, err := rq.describeEndpoint(e, e.Current(), real)
		if err != nil {
			return err
		}
		described = append(described, d)
		if e.UpdatedAt.After(newest) {
			newest = e.UpdatedAt
		}
	}
	version := "0" // of no endpoints
	if len(described) > 0 {
		version = newest.UTC().Format(time.RFC3339)
	}
	rq.writeDocument(openapi.All(described, "Endpoints of "+rq.Project.Name, version, rq.origin()))
	return nil
}

// realExamples reports whether the document may show rows: the parameter examples is run, the default, or types.
func (rq *request) realExamples() (bool, error) {
	switch choice := rq.r.URL.Query().Get("examples"); choice {
	case "", "run":
		return true, nil
	case "types":
		return false, nil
	default:
		return false, api.Invalid("examples", "invalid_input", "Input should be 'run' or 'types'")
	}
}

// writeDocument sends a document, with a tag by which a client learns that it has not changed.
func (rq *request) writeDocument(doc *openapi3.T) {
	body := rq.rt.Cache.Render(cache.Negotiate(rq.r.Header.Get("Accept-Encoding")), func(dst []byte) []byte { return jsontext.Append(dst, doc) })
	rq.write(api.Response{Body: body, Cache: api.Revalidate})
}

// describeEndpoint is a version of an endpoint as its document shows it. real lets it show rows of a run that is in the cache.
func (rq *request) describeEndpoint(e *registry.Endpoint, v *registry.Version, real bool) (*openapi.Endpoint, error) {
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	d := &openapi.Endpoint{
		Project: e.Project, Name: e.Name, Version: v.Number, Pinned: v.Number != e.CurrentVersion, Description: v.Description,
		Deprecated: !v.DeprecatedAt.IsZero(),
	}
	for _, c := range v.Columns {
		d.Columns = append(d.Columns, openapi.Column{Name: c.Name, Type: c.ClickHouse, Wire: c.Type})
	}
	if n, ok := node.(query.Insight); ok {
		describeInsight(d, n)
	}
	if n, ok := node.(*query.HogQL); ok {
		d.Variables = rq.describeVariables(n)
	}
	if real {
		d.Example = rq.rt.runs().Example(&rq.Caller, e, v, node)
	}
	return d, nil
}

// describeVariables lists the variables of SQL: contract section 5.5. One whose definition is gone takes any text.
func (rq *request) describeVariables(n *query.HogQL) []openapi.Variable {
	var all []openapi.Variable
	for _, v := range n.Variables {
		described := openapi.Variable{Name: v.CodeName, Type: string(registry.VariableString)}
		if def := rq.Snapshot.VariableByCode(rq.Project.ID, v.CodeName); def != nil {
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

// describeInsight adds the variables of an insight, and what decides the form of its answer.
func describeInsight(d *openapi.Endpoint, n query.Insight) {
	for _, name := range query.VariableNames(n) {
		v := openapi.Variable{Name: name, HasDefault: true, Description: "Keeps the events with this value; an empty text those without one."}
		if name == "date_from" || name == "date_to" {
			v.Description = "Takes the place of that end of the range: a date, a time, or relative such as -30d."
		}
		d.Variables = append(d.Variables, v)
	}
	kind := compiler.KindOf(n)
	results := kind.Form(n)
	d.Results, d.HasMore = &results, kind.HasMore
}
