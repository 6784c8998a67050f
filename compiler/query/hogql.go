package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// HogQL is a query in the SQL dialect (contract: api.md, section 3).
type HogQL struct {
	// Query is the text: one SELECT.
	Query string
	// Values are the constants of {name} placeholders: strings, json.Numbers, bools, nils, lists of them.
	Values map[string]any
	// Variables are the insight variables given with the query, by the key that they have in the JSON, normally their id.
	Variables map[string]Variable
	// Filters feeds {filters}; nil when there are none.
	Filters *Filters
	// Modifiers are the peer's settings for its compiler, as given.
	Modifiers map[string]any
}

// Variable is an insight variable as a query gives it.
type Variable struct {
	VariableID string
	CodeName   string
	Value      any
	HasValue   bool // Value was given and is not null; else the variable's default counts
	IsNull     bool // NULL, whatever Value is
}

// Filters are the filters of a request.
type Filters struct {
	DateFrom, DateTo   string // contract: api.md, section 2.2; empty for no bound
	Properties         []Property
	FilterTestAccounts bool
}

// Property is one property filter (contract: api.md, section 2.4).
type Property struct {
	Type     string
	Key      string
	Operator string // empty for filters that have none
	Value    any    // nil, string, json.Number, bool or a list of them
	Group    int    // index of the group type; -1 where a filter by a group names none
}

const noGroup = -1

// Kind returns HogQLQuery.
func (*HogQL) Kind() string { return "HogQLQuery" }

// Text returns the query's text.
func (q *HogQL) Text() string { return q.Query }

func (*HogQL) node() {}

// Canonical leaves out the name, tags, version and everything that is null.
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
		Modifiers map[string]any      `json:"modifiers,omitempty"`
	}{q.Kind(), q.Query, q.Values, variables, q.Filters, q.Modifiers})
	if err != nil {
		panic(fmt.Sprintf("BUG: a parsed query cannot be written as JSON: %v", err))
	}
	return out
}

func (r *reader) hogql(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &HogQL{
		Query:     o.need("query"),
		Values:    o.dict("values"),
		Variables: r.variables(o),
		Filters:   r.filters(o),
		Modifiers: r.modifiers(o),
	}
	o.text("name") // a label, which means nothing here
	o.flag("explain")
	r.tags(o)
	r.noConnection(o, "connectionId", "sendRawQuery")
	o.ignore(labels...)
	o.close()
	return q
}

// tags checks the labels of a node, which mean nothing here.
func (r *reader) tags(o *object) {
	tags, ok := o.take("tags")
	if !ok {
		return
	}
	t := r.object(tags, o.field("tags"))
	t.text("scene")
	t.text("productKey")
	t.text("name")
	t.close()
}

// noConnection refuses fields that name another database.
func (r *reader) noConnection(o *object, names ...string) {
	for _, name := range names {
		if v, ok := o.take(name); ok && v != false && v != "" {
			r.add(o.field(name), "value_error", "Queries to other databases are not supported")
		}
	}
}

func (r *reader) variables(o *object) map[string]Variable {
	return r.variableMap(o.dict("variables"), o.field("variables"))
}

func (r *reader) variableMap(given map[string]any, at place) map[string]Variable {
	if len(given) == 0 {
		return nil
	}
	out := make(map[string]Variable, len(given))
	for _, id := range slices.Sorted(maps.Keys(given)) {
		v := r.object(given[id], at.below(shown(id), true))
		variable := Variable{VariableID: v.need("variableId"), CodeName: v.need("code_name"), IsNull: v.flag("isNull")}
		variable.Value, variable.HasValue = v.take("value")
		v.close()
		out[id] = variable
	}
	return out
}

func (r *reader) filters(o *object) *Filters {
	given, ok := o.take("filters")
	if !ok {
		return nil
	}
	f := r.object(given, o.field("filters"))
	out := &Filters{FilterTestAccounts: f.flag("filterTestAccounts")}
	if dates, ok := f.take("dateRange"); ok {
		d := r.object(dates, f.field("dateRange"))
		out.DateFrom, out.DateTo = d.text("date_from"), d.text("date_to")
		d.flag("explicitDate")
		d.close()
	}
	for i, item := range f.list("properties") {
		if p, ok := r.property(item, f.field("properties").below(strconv.Itoa(i), true)); ok {
			out.Properties = append(out.Properties, p)
		}
	}
	f.ignore("interval", "breakdownFilter")
	f.close()
	return out
}

// propertyTypes are the types of property filters that mean something here.
var propertyTypes = []string{"event", "person", "group", "session", "cohort", "element", "event_metadata", "feature", "hogql"}

// property reads one property filter. It tells false for the empty filter, which filters nothing.
func (r *reader) property(v any, at place) (Property, bool) {
	o := r.object(v, at)
	typ := o.text("type")
	if typ == "" && len(o.m) == 0 || typ == "empty" {
		return Property{}, false
	}
	if typ == "" {
		typ = "event"
	}
	p := Property{Type: typ, Key: o.need("key"), Operator: o.text("operator")}
	p.Value, _ = o.take("value")
	if group, ok := o.integer("group_type_index"); ok || typ != "group" {
		p.Group = group
	} else {
		p.Group = noGroup
	}
	if !slices.Contains(propertyTypes, typ) {
		r.add(o.field("type"), "union_tag_invalid",
			"Input tag '"+shown(typ)+"' found using 'type' does not match any of the expected tags: '"+strings.Join(propertyTypes, "', '")+"'")
	}
	if !plainValue(p.Value) {
		r.add(o.field("value"), "value_error", "Input should be a string, a number, a boolean or a list of them")
	}
	if (p.Group < 0 || p.Group > 4) && p.Group != noGroup {
		r.add(o.field("group_type_index"), "value_error", "Input should be from 0 to 4")
	}
	o.ignore("label", "group_key_names", "cohort_name")
	o.close()
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
