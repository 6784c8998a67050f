package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// HogQL is a query in the SQL dialect (contract: api.md, section 3).
type HogQL struct {
	// Query is the text: one SELECT.
	Query string
	// Values are the constants for {name} placeholders: strings, json.Numbers, bools, nils, lists of them.
	Values map[string]any
	// Variables are the insight variables given with the query, by their key in the JSON, normally their id.
	Variables map[string]Variable
	// Filters is what {filters} is replaced by; nil for none.
	Filters *Filters
	// Modifiers are PostHog's settings for its compiler, as given.
	Modifiers Modifiers
}

// Variable is an insight variable as given in a query.
type Variable struct {
	VariableID string
	CodeName   string
	Value      any
	HasValue   bool // Value was given and is not null; otherwise the variable's default is used
	IsNull     bool // NULL, whatever Value is
}

// Filters are the filters of a request.
type Filters struct {
	DateFrom, DateTo   string // contract: api.md, section 2.2; empty for no bound
	Properties         []Property
	FilterTestAccounts bool
}

// Property is one property filter.
type Property = filter.Property

// groupTypeRange is the message for a group type index that is out of range.
var groupTypeRange = "Input should be from 0 to " + strconv.Itoa(physical.GroupTypes-1)

// Kind returns HogQLQuery.
func (*HogQL) Kind() string { return "HogQLQuery" }

// Text returns the query's text.
func (q *HogQL) Text() string { return q.Query }

// Canonical leaves out the name, tags, version and null fields.
func (q *HogQL) Canonical() []byte {
	type variable struct {
		Value  any  `json:"value,omitempty"`
		Given  bool `json:"given,omitempty"`
		IsNull bool `json:"isNull,omitempty"`
	}
	var variables map[string]variable
	if len(q.Variables) > 0 {
		variables = make(map[string]variable, len(q.Variables))
		for _, id := range slices.Sorted(maps.Keys(q.Variables)) {
			v := q.Variables[id]
			if v.IsNull || !v.HasValue {
				v.Value = nil
			}
			variables[v.CodeName] = variable{Value: v.Value, Given: v.HasValue && !v.IsNull, IsNull: v.IsNull}
		}
	}
	out, err := json.Marshal(struct {
		Kind      string              `json:"kind"`
		Query     string              `json:"query"`
		Values    map[string]any      `json:"values,omitempty"`
		Variables map[string]variable `json:"variables,omitempty"`
		Filters   *Filters            `json:"filters,omitempty"`
		Modifiers Modifiers           `json:"modifiers,omitzero"`
	}{q.Kind(), q.Query, q.Values, variables, q.Filters, q.Modifiers})
	if err != nil {
		panic(fmt.Sprintf("BUG: a parsed query cannot be written as JSON: %v", err))
	}
	return out
}

// ReadHogQL reads a HogQLQuery.
func ReadHogQL(r *Reader, o *Object) Node {
	q := &HogQL{
		Query:     o.Need("query"),
		Values:    o.Dict("values"),
		Variables: r.variables(o),
		Filters:   r.filters(o),
		Modifiers: r.Modifiers(o),
	}
	o.Text("name") // a label, ignored here
	o.Flag("explain")
	r.Tags(o)
	r.noConnection(o, "connectionId", "sendRawQuery")
	o.Close()
	return q
}

// Tags checks the labels of a node, which are ignored here.
func (r *Reader) Tags(o *Object) {
	o.Ignore(labels...)
	tags, ok := o.Take("tags")
	if !ok {
		return
	}
	t := r.Object(tags, o.Field("tags"))
	t.Text("scene")
	t.Text("productKey")
	t.Text("name")
	t.Close()
}

// noConnection refuses fields that name another database.
func (r *Reader) noConnection(o *Object, names ...string) {
	for _, name := range names {
		if v, ok := o.Take(name); ok && v != false && v != "" {
			r.Add(o.Field(name), "value_error", "Queries to other databases are not supported")
		}
	}
}

func (r *Reader) variables(o *Object) map[string]Variable {
	return r.variableMap(o.Dict("variables"), o.Field("variables"))
}

func (r *Reader) variableMap(given map[string]any, at Place) map[string]Variable {
	if len(given) == 0 {
		return nil
	}
	out := make(map[string]Variable, len(given))
	for _, id := range slices.Sorted(maps.Keys(given)) {
		v := r.Object(given[id], at.Below(diag.Shown(id), true))
		variable := Variable{VariableID: v.Need("variableId"), CodeName: v.Need("code_name"), IsNull: v.Flag("isNull")}
		variable.Value, variable.HasValue = v.Take("value")
		v.Close()
		out[id] = variable
	}
	return out
}

func (r *Reader) filters(o *Object) *Filters {
	given, ok := o.Take("filters")
	if !ok {
		return nil
	}
	f := r.Object(given, o.Field("filters"))
	out := &Filters{FilterTestAccounts: f.Flag("filterTestAccounts")}
	if dates, ok := f.Take("dateRange"); ok {
		d := r.Object(dates, f.Field("dateRange"))
		out.DateFrom, out.DateTo = d.Text("date_from"), d.Text("date_to")
		d.Flag("explicitDate")
		d.Close()
	}
	for i, item := range f.List("properties") {
		if p, ok := r.property(item, f.Field("properties").Below(strconv.Itoa(i), true)); ok {
			out.Properties = append(out.Properties, p)
		}
	}
	f.Ignore("interval", "breakdownFilter")
	f.Close()
	return out
}

// propertyTypes are the supported types of property filters.
var propertyTypes = []string{
	"event", "person", "group", "session", "cohort", "behavioral", "element", "event_metadata", "person_metadata", "feature", "hogql",
}

// property reads one property filter. It returns false for an empty filter, which has no effect.
func (r *Reader) property(v any, at Place) (Property, bool) {
	o := r.Object(v, at)
	typ := o.Text("type")
	if typ == "" && len(o.Given) == 0 || typ == "empty" {
		return Property{}, false
	}
	switch typ {
	case "":
		typ = "event"
	case "static-cohort", "precalculated-cohort": // older names
		typ = CohortType
	case filter.BehavioralType:
		return r.behavior(o), true
	}
	p := Property{Type: typ, Operator: o.Text("operator")}
	if p.Key = "id"; typ != CohortType || o.Has("key") { // the only key of a cohort
		p.Key = o.Need("key")
	}
	p.Value, _ = o.Take("value")
	if typ == CohortType && o.Flag("negation") { // the older form
		p.Operator = "not_in"
	}
	if group, ok := o.Integer("group_type_index"); ok || typ != "group" {
		p.Group = group
	} else {
		p.Group = NoGroup
	}
	if !slices.Contains(propertyTypes, typ) {
		r.Add(o.Field("type"), "union_tag_invalid",
			"Input tag '"+diag.Shown(typ)+"' found using 'type' does not match any of the expected tags: '"+strings.Join(propertyTypes, "', '")+"'")
	}
	if !plainValue(p.Value) {
		r.Add(o.Field("value"), "value_error", "Input should be a string, a number, a boolean or a list of them")
	}
	if (p.Group < 0 || p.Group >= physical.GroupTypes) && p.Group != NoGroup {
		r.Add(o.Field("group_type_index"), "value_error", groupTypeRange)
	}
	o.Ignore("label", "group_key_names", "cohort_name")
	o.Close()
	return p, true
}

func plainValue(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, json.Number:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool {
			_, list := item.([]any)
			return list || !plainValue(item)
		})
	}
	return false
}
