package module

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// filesPlan is a plan of files, and what carries it out.
type filesPlan struct {
	adminapi.FilesPlan

	batch registry.Batch
}

// filesPlanner makes a filesPlan.
type filesPlanner struct {
	rt      *runtime
	project *registry.Project
	snap    *registry.Snapshot // the registry as it is
	preview *registry.Snapshot // as it will be, with the variables of the files
	now     time.Time
	plan    *filesPlan
}

// planFiles works out what files change in a project. With prune, endpoints that no file names go. Nothing is written. The error
// is ErrNotFound for an unknown project; mistakes in the files are joined *endpointfile.Error.
func (rt *runtime) planFiles(ctx context.Context, project int64, files []*endpointfile.File, prune bool, now time.Time) (*filesPlan, error) {
	p := &filesPlanner{rt: rt, snap: rt.registry.Snapshot(), now: now, plan: &filesPlan{FilesPlan: adminapi.FilesPlan{
		Project: project, Endpoints: []adminapi.PlannedEndpoint{}, Variables: []adminapi.PlannedVariable{}, Unmanaged: []string{},
	}}}
	if p.project = p.snap.Project(project); p.project == nil {
		return nil, fmt.Errorf("project %d: %w", project, registry.ErrNotFound)
	}
	if err := p.variables(files); err != nil {
		return nil, err
	}
	var err error
	if p.preview, err = p.snap.Preview(project, p.plan.batch, now); err != nil {
		return nil, fmt.Errorf("looking ahead: %w", err)
	}
	var mistakes []error
	named := make(map[string]bool, len(files))
	for _, f := range files {
		named[f.Name] = true
		if err := p.endpoint(ctx, f); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	p.others(named, prune)
	b := &p.plan.batch
	p.plan.Changed = len(b.NewVariables)+len(b.Variables)+len(b.NewEndpoints)+len(b.Endpoints)+len(b.Deleted) > 0
	return p.plan, nil
}

// variables plans the variables that the files define; ParseAll has made sure that they agree.
func (p *filesPlanner) variables(files []*endpointfile.File) error {
	var mistakes []error
	seen := make(map[string]bool)
	for _, f := range files {
		for _, v := range f.Variables {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			if err := p.variable(v); err != nil {
				mistakes = append(mistakes, &endpointfile.Error{Path: f.Path, Line: v.Line, Text: err.Error()})
			}
		}
	}
	return errors.Join(mistakes...)
}

// definition reads what a file says of a variable. Mistakes are told without a place.
func definition(v endpointfile.Variable) (*registry.Variable, error) {
	wanted := &registry.Variable{Type: v.Type, IsMulti: v.Multi && v.Type == registry.VariableList}
	var err error
	if wanted.Default, err = registry.DecodeJSON(json.RawMessage(cmp.Or(string(v.Default), "null"))); err != nil {
		return nil, fmt.Errorf("reading the default of %s: %w", v.Name, err)
	}
	values, err := registry.DecodeJSON(json.RawMessage(cmp.Or(string(v.Values), "null")))
	if err != nil {
		return nil, fmt.Errorf("reading the values of %s: %w", v.Name, err)
	}
	wanted.Values, _ = values.([]any) // the parser takes no other values
	if err := definitions.FitDefault(wanted); err != nil {
		return nil, errors.New(api.ErrorOf(err).Detail)
	}
	return wanted, nil
}

func (p *filesPlanner) variable(v endpointfile.Variable) error {
	wanted, err := definition(v)
	if err != nil {
		return err
	}
	def, values := jsontext.Append(nil, wanted.Default), jsonOrNull(wanted.Values, wanted.Values != nil)
	update := registry.VariableUpdate{Type: &v.Type, Default: def, Values: values, IsMulti: &wanted.IsMulti}
	known := p.snap.VariableByCode(p.project.ID, v.Name)
	if known == nil {
		p.plan.batch.NewVariables = append(p.plan.batch.NewVariables, registry.NewVariable{
			ID: uuid.Must(uuid.NewV7()).String(), Name: v.Name, Type: v.Type, Default: def, Values: values, IsMulti: wanted.IsMulti,
		})
		p.plan.Variables = append(p.plan.Variables, adminapi.PlannedVariable{Name: v.Name, Action: adminapi.Create, Fields: []string{}})
		return nil
	}
	planned := adminapi.PlannedVariable{Name: v.Name, Action: adminapi.Keep, Fields: []string{}}
	changed := func(field string, differs bool) {
		if differs {
			planned.Fields = append(planned.Fields, field)
		}
	}
	changed("type", known.Type != v.Type)
	changed("default", !equalJSON(jsonOrNull(known.Default, known.Default != nil), def))
	changed("values", !equalJSON(jsonOrNull(known.Values, known.Values != nil), values))
	changed("is_multi", known.IsMulti != wanted.IsMulti)
	if len(planned.Fields) > 0 {
		planned.Action = adminapi.Update
		p.plan.batch.Variables = append(p.plan.batch.Variables, registry.NamedVariableUpdate{ID: known.ID, VariableUpdate: update})
	}
	p.plan.Variables = append(p.plan.Variables, planned)
	return nil
}

func jsonOrNull(v any, given bool) json.RawMessage {
	if !given {
		return json.RawMessage("null")
	}
	return jsontext.Append(nil, v)
}

func equalJSON(a, b json.RawMessage) bool {
	equal, err := query.Equal(a, b)
	return err == nil && equal
}

// endpoint plans the endpoint of a file. ClickHouse is asked about queries that change.
func (p *filesPlanner) endpoint(ctx context.Context, f *endpointfile.File) error {
	raw, err := p.queryOf(f)
	if err != nil {
		return err
	}
	pub := p.rt.operatorsPublisher(p.preview, p.project)
	checked, err := pub.read(raw)
	if err != nil {
		return fileMistake(f, "query", err)
	}
	if err := checkOptionalBreakdowns(checked.node, f.OptionalBreakdowns); err != nil {
		return fileMistake(f, "optional_breakdown_properties", err)
	}
	known := p.snap.Endpoint(p.project.ID, f.Name)
	same := known != nil && checked.same(known.Current().Query)
	switch {
	case !same:
		checked, err = pub.check(ctx, raw, p.now)
	case len(p.plan.batch.Variables) > 0: // it must still mean something with the variables as they will be
		_, err = pub.compile(ctx, checked.node, p.now)
	}
	if err != nil {
		return fileMistake(f, "query", err)
	}
	if known == nil {
		p.plan.batch.NewEndpoints = append(p.plan.batch.NewEndpoints, registry.NewEndpoint{
			Name: f.Name, Query: checked.raw, Description: f.Description, FreshnessSeconds: int(f.Freshness / time.Second), Inactive: !f.Active,
			Tags: f.Tags, Columns: checked.columns, OptionalBreakdowns: f.OptionalBreakdowns, RateLimit: f.RateLimit,
		})
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: f.Name, Path: f.Path, Action: adminapi.Create, Fields: []string{}, Version: 1})
		return nil
	}
	p.change(f, known, checked, same)
	return nil
}

// change plans the changes to an endpoint that is there.
func (p *filesPlanner) change(f *endpointfile.File, known *registry.Endpoint, checked *publishable, same bool) {
	now := known.Current()
	planned := adminapi.PlannedEndpoint{Name: f.Name, Path: f.Path, Action: adminapi.Keep, Fields: []string{}}
	update := registry.EndpointUpdate{}
	next := *now
	if !same {
		planned.Fields, planned.Version = append(planned.Fields, "query"), len(known.Versions)+1
		update.Query, update.Columns, update.SameQuery = checked.raw, checked.columns, checked.same
		next = registry.Version{Number: planned.Version, Query: checked.raw, Columns: checked.columns}
	}
	comparison := comparison{snap: p.preview, before: p.snap, project: p.project.ID}
	comparison.compare(now, &next)
	if found := comparison.found; !same || found.Any() {
		planned.Changes = found
		p.plan.Breaking = p.plan.Breaking || len(found.Breaking) > 0
	}
	changeField(&planned, "description", now.Description, f.Description, &update.Description)
	changeField(&planned, "data_freshness_seconds", now.FreshnessSeconds, int(f.Freshness/time.Second), &update.FreshnessSeconds)
	changeField(&planned, "is_active", known.Active, f.Active, &update.Active)
	changeField(&planned, "rate_limit", known.RateLimit, f.RateLimit, &update.RateLimit)
	changeList(&planned, "tags", known.Tags, f.Tags, &update.Tags)
	changeList(&planned, "optional_breakdown_properties", next.OptionalBreakdowns, f.OptionalBreakdowns, &update.OptionalBreakdowns)
	if len(planned.Fields) > 0 {
		planned.Action = adminapi.Update
		p.plan.batch.Endpoints = append(p.plan.batch.Endpoints, registry.NamedEndpointUpdate{Name: f.Name, EndpointUpdate: update})
	}
	p.plan.Endpoints = append(p.plan.Endpoints, planned)
}

func changeField[T comparable](planned *adminapi.PlannedEndpoint, name string, now, wanted T, update **T) {
	if now != wanted {
		planned.Fields = append(planned.Fields, name)
		*update = &wanted
	}
}

func changeList(planned *adminapi.PlannedEndpoint, name string, now, wanted []string, update **[]string) {
	if !slices.Equal(now, wanted) {
		planned.Fields = append(planned.Fields, name)
		*update = new(orEmpty(wanted))
	}
}

// queryOf is the node of a file's query with the values that the file gives to variables.
func (p *filesPlanner) queryOf(f *endpointfile.File) (json.RawMessage, error) {
	if len(f.Variables) == 0 {
		return f.Query, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(f.Query, &fields); err != nil {
		return nil, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	node, err := compiler.Parse(f.Query)
	if err != nil {
		return nil, fileMistake(f, "query", err)
	}
	var used []string
	if _, ok := node.(*query.HogQL); ok {
		if used, err = compiler.Variables(node.Text()); err != nil {
			return nil, fileMistake(f, "query", err)
		}
	}
	values := make(map[string]map[string]any)
	for _, v := range f.Variables {
		if !slices.Contains(used, v.Name) {
			return nil, &endpointfile.Error{Path: f.Path, Line: v.Line, Text: fmt.Sprintf("the query does not use {variables.%s}", v.Name)}
		}
		if v.Value == nil {
			continue
		}
		def := p.preview.VariableByCode(p.project.ID, v.Name)
		stored := map[string]any{"variableId": def.ID, "code_name": v.Name}
		values[def.ID] = stored
		if api.IsNull(v.Value) {
			stored["isNull"] = true
			continue
		}
		value, err := api.DecodeValue(v.Value)
		if err == nil {
			stored["value"], err = api.CheckVariable(def, value)
		}
		if err != nil {
			return nil, &endpointfile.Error{Path: f.Path, Line: v.Line, Text: fmt.Sprintf("the value of %s does not fit: %s", v.Name, err)}
		}
	}
	if len(values) > 0 {
		fields["variables"] = jsontext.Append(nil, values)
	}
	return jsontext.Append(nil, fields), nil
}

// fileMistake gives the author's mistake its place in the file; other errors stay what they are.
func fileMistake(f *endpointfile.File, field string, err error) error {
	answer := api.ErrorOf(err)
	if answer.Status >= 500 || execution.IsOutage(err) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if refused, ok := answer.Extra.(api.MistakeExtra); ok && refused.Position != nil {
		return f.QueryMistake(refused.Line, answer.Detail)
	}
	return f.Mistake(field, "%s", answer.Detail)
}

// others plans the endpoints that no file names.
func (p *filesPlanner) others(named map[string]bool, prune bool) {
	unnamed := make(map[string]bool)
	for _, e := range p.snap.Endpoints(p.project.ID) {
		if !named[e.Name] {
			unnamed[e.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		if !prune {
			p.plan.Unmanaged = append(p.plan.Unmanaged, name)
			p.bystander(name)
			continue
		}
		p.plan.batch.Deleted = append(p.plan.batch.Deleted, name)
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: name, Action: adminapi.Delete, Fields: []string{}})
		p.plan.Breaking = true
	}
}

// bystander reports what callers of an endpoint without a file notice of the variables that files change.
func (p *filesPlanner) bystander(name string) {
	current := p.snap.Endpoint(p.project.ID, name).Current()
	comparison := comparison{snap: p.preview, before: p.snap, project: p.project.ID}
	comparison.compare(current, current)
	if found := comparison.found; found.Any() {
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: name, Action: adminapi.Keep, Fields: []string{}, Changes: found})
		p.plan.Breaking = p.plan.Breaking || len(found.Breaking) > 0
	}
}

// applyFiles makes a project's endpoints what their files say, all at once or not at all.
func (rt *runtime) applyFiles(ctx context.Context, plan *filesPlan, now time.Time) error {
	if !plan.Changed {
		return nil
	}
	before := rt.registry.Snapshot()
	if err := rt.registry.Apply(ctx, plan.Project, plan.batch, now); err != nil {
		return err
	}
	for _, name := range plan.batch.Deleted {
		if e := before.Endpoint(plan.Project, name); e != nil {
			rt.forget(e)
		}
	}
	return nil
}

// exportFiles gives a project's endpoints as files, by name: the current version of each.
func exportFiles(snap *registry.Snapshot, project int64) ([]endpointfile.Source, error) {
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

// exportVariables gives the variables of a query as a file defines them, by name.
func exportVariables(snap *registry.Snapshot, project int64, q *query.HogQL) []endpointfile.Variable {
	var out []endpointfile.Variable
	for _, v := range q.Variables {
		def := snap.VariableByCode(project, v.CodeName)
		if def == nil {
			continue // deleted: the file says what its query lacks
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
