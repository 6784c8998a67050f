package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// variables plans the variables that the files define; ParseAll has checked that the files agree on them.
func (p *planner) variables(files []*endpointfile.File) error {
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

// definition reads a file's definition of a variable. Its errors contain no position.
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
	wanted.Values, _ = values.([]any) // the parser accepts only lists
	if err := api.FitDefault(wanted); err != nil {
		return nil, errors.New(api.ErrorOf(err).Detail)
	}
	return wanted, nil
}

func (p *planner) variable(v endpointfile.Variable) error {
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

// queryOf returns a file's query with the file's values for its variables.
func (p *planner) queryOf(f *endpointfile.File) (json.RawMessage, error) {
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
