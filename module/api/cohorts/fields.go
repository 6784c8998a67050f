package cohorts

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// given holds the fields of a body.
type given struct {
	registry.CohortFields

	// People are added to a static cohort.
	People people
}

// people lists people by an id or email.
type people struct {
	by    clickhouse.Naming
	names []string
}

// readGiven reads the writable fields of a cohort from JSON or a form. Like PostHog, it ignores others: clients send back what they received.
func readGiven(in *api.Input) (*given, error) {
	form, isForm, err := in.ReadForm("csv")
	if err != nil {
		return nil, err
	}
	all := form.Fields
	if !isForm {
		if all, err = in.ReadObject(); err != nil {
			return nil, err
		}
	}
	r := &api.Fields{All: all}
	g := &given{CohortFields: registry.CohortFields{
		Name: api.TextOrNull(r, "name"), Description: description(r), Static: api.Change[bool](r, "is_static"),
		Filters: raw(r, "filters"), Groups: raw(r, "groups"), Query: raw(r, "query"), Deleted: api.Change[bool](r, "deleted"),
	}}
	ids := staticIDs(r)
	if r.Err != nil {
		return nil, r.Err
	}
	if text, ok := form.Files["csv"]; ok {
		if ids != nil {
			return nil, api.Invalid("csv", "invalid_input", "A static cohort is filled from one source: person ids, a CSV file or a query.")
		}
		g.People, err = readCSV(text)
		return g, err
	}
	g.People = people{clickhouse.ByPersonID, ids}
	return g, nil
}

// description reads the description; null is empty.
func description(r *api.Fields) registry.Field[string] {
	field := api.TextOrNull(r, "description")
	return registry.Field[string]{Value: api.Deref(field.Value), Given: field.Given}
}

// raw reads a JSON field; null, an empty query and an empty list of groups count as nil.
func raw(r *api.Fields, name string) registry.Field[json.RawMessage] {
	value, ok := r.Take(name, true)
	if !ok {
		return registry.Field[json.RawMessage]{}
	}
	if value = bytes.TrimSpace(value); api.IsNull(value) || name == "groups" && string(value) == "[]" || name == "query" && isEmptyObject(value) {
		return registry.To[json.RawMessage](nil)
	}
	return registry.To(value)
}

func isEmptyObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil && len(members) == 0
}

// staticIDs reads the ids of the people for a new cohort; nil if not given.
func staticIDs(r *api.Fields) []string {
	const name = "_create_static_person_ids"
	ids := api.Change[*[]string](r, name).Value
	if ids == nil {
		return nil
	}
	for _, id := range *ids {
		if _, err := uuid.Parse(id); err != nil {
			r.Fail(name, "invalid_input", "%q is not a valid UUID.", id)
			return nil
		}
	}
	return *ids
}

// check refuses fields that contradict each other, and drops a static cohort's filters if they are empty; before is nil for a new cohort.
func (g *given) check(before *registry.Cohort) error {
	static := before != nil && before.Static
	if g.Static.Given {
		static = g.Static.Value
	}
	filtered, empty := conditions(g.Filters.Value)
	if static && empty { // as in the record of a static cohort, which clients send back
		g.Filters.Value = nil
	}
	switch {
	case g.Query.Value != nil && g.Filters.Value != nil:
		return api.Invalid("query", "invalid_input", "Cannot set both query and filters at the same time.")
	case g.Query.Value != nil && !static:
		return api.Invalid("query", "invalid_input", "Cannot create a dynamic cohort with a query. Set is_static to true.")
	case g.Query.Value != nil && len(g.People.names) > 0:
		return api.Invalid("query", "invalid_input", "A static cohort is filled from one source: person ids, a CSV file or a query.")
	case static && filtered && (before == nil || !sameJSON(g.Filters.Value, filtersOf(before))):
		return api.Invalid("filters", "invalid_input", "A static cohort is filled from person ids, a CSV file or a query, not from filters. Set is_static to false.")
	case len(g.People.names) > 0 && !static:
		return api.Invalid("is_static", "invalid_input", "People can only be put into a static cohort. Set is_static to true.")
	}
	return g.checkQuery()
}

// conditions reports whether filters have conditions, or are complete without any. Neither is true of filters that can't be read.
func conditions(filters json.RawMessage) (some, none bool) {
	var in struct {
		Properties *struct {
			Values []json.RawMessage `json:"values"`
		} `json:"properties"`
	}
	if filters == nil || json.Unmarshal(filters, &in) != nil || in.Properties == nil {
		return false, false
	}
	return len(in.Properties.Values) > 0, len(in.Properties.Values) == 0
}

// sameJSON reports whether two texts are the same value in JSON.
func sameJSON(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// checkQuery refuses a query that can't list people, whatever the data.
func (g *given) checkQuery() error {
	if g.Query.Value == nil {
		return nil
	}
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(g.Query.Value, &kind); err != nil {
		return api.Invalid("query", "invalid_input", "The query must be an object.")
	}
	if k := compiler.KindNamed(kind.Kind); k == nil || !k.Listed {
		return api.Invalid("query", "invalid_input", "Query must be an ActorsQuery or HogQLQuery. Got: %s", kind.Kind)
	}
	_, err := compiler.Parse(g.Query.Value)
	return err
}
