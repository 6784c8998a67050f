package cohort

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// leaf reads a condition that is not a group. It returns nil after a mistake.
func (r *reader) leaf(fields map[string]any, at string) Node {
	o := &object{r: r, fields: fields, at: at}
	switch typ := fields["type"]; typ {
	case "person":
		return r.person(o)
	case "person_metadata":
		return r.created(o)
	case "cohort":
		return r.member(o)
	case "behavioral":
		return r.behavior(o)
	case nil:
		r.refuse(at+".type", "A filter of a cohort needs a type: person, person_metadata, cohort or behavioral")
	default:
		r.refuse(at+".type", "A cohort cannot have a filter of type '%s': use person, person_metadata, cohort or behavioral", diag.Shown(typ))
	}
	return nil
}

// derived are the keys that PostHog stores in its own filters in addition to what they ask for.
var derived = []string{"bytecode", "bytecode_error", "conditionHash"}

// object is a leaf being read.
type object struct {
	r      *reader
	fields map[string]any
	at     string
	kind   string // such as person
}

// begin sets which keys a leaf may have, and which it must have.
func (o *object) begin(kind string, required, optional []string) {
	o.kind = kind
	var missing []string
	for _, name := range required {
		if o.fields[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		o.r.refuse(o.at, "Missing required keys for %s filter: %s", kind, strings.Join(missing, ", "))
	}
	names := append([]string{"type", "negation"}, derived...)
	o.r.only(o.fields, o.at, "a "+kind+" filter", append(append(names, required...), optional...)...)
}

func (o *object) field(name string) string { return o.at + "." + name }

func (o *object) base() Leaf {
	negated, ok := o.fields["negation"].(bool)
	if !ok && o.fields["negation"] != nil {
		o.r.refuse(o.field("negation"), "Input should be a valid boolean")
	}
	return Leaf{At: o.at, Negated: negated}
}

// text reads a text field; empty if there is none.
func (o *object) text(name string) string {
	s, ok := o.fields[name].(string)
	if !ok && o.fields[name] != nil {
		o.r.refuse(o.field(name), "Input should be a valid string")
	}
	return s
}

// maxNumber bounds the numbers in a definition, so that computing with them stays in range.
const maxNumber = 100_000

// number reads a whole number above 0, or a text with one; 0 if there is none.
func (o *object) number(name string) int {
	if o.fields[name] == nil {
		return 0
	}
	n, ok := whole(o.fields[name])
	if !ok || n < 1 || n > maxNumber {
		o.r.refuse(o.field(name), "Input should be an integer from 1 to %d", maxNumber)
		return 0
	}
	return int(n)
}

// whole reads a whole number, or a text with one.
func whole(v any) (int64, bool) {
	if text, ok := v.(string); ok {
		v = json.Number(text)
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	return query.Whole(n)
}

// id reads the number of a cohort or an action.
func id(v any) (int64, bool) {
	n, ok := whole(v)
	return n, ok && n > 0 && n <= math.MaxInt32
}

// person reads a condition on a property. Its keys are checked in the API's order: value first.
func (r *reader) person(o *object) Node {
	o.valued("person")
	leaf := o.base()
	o.text("key")
	return &Person{Leaf: leaf, Filter: o.filter()}
}

// created reads a condition on a person's creation time.
func (r *reader) created(o *object) Node {
	o.valued("person_metadata")
	leaf := o.base()
	if key := o.text("key"); key != "created_at" {
		r.refuse(o.field("key"), "Unsupported person_metadata key '%s'. Allowed keys: created_at.", diag.Shown(key))
	}
	out := &Created{Leaf: leaf, Filter: o.filter()}
	if out.Filter != nil {
		out.Filter.Filter.Type = "person_metadata"
	}
	return out
}

// valued checks the keys of a leaf that compares a value.
func (o *object) valued(kind string) {
	list, isList := o.fields["value"].([]any)
	if isList && len(list) == 0 {
		o.fields["value"] = nil // no value to compare with
	}
	required := []string{"key", "value", "operator"}
	if operator := o.fields["operator"]; operator == "is_set" || operator == "is_not_set" {
		required = []string{"key", "operator"}
	}
	o.begin(kind, required, []string{"value"})
}

// filter reads the fields that a leaf shares with the filters of queries.
func (o *object) filter() *query.Condition {
	if o.r.mistake != nil {
		return nil
	}
	fields := map[string]any{"type": "person"}
	for _, name := range []string{"key", "value", "operator"} {
		fields[name] = o.fields[name]
	}
	c, err := query.Filter(fields, o.at)
	if err != nil {
		o.r.take(err)
		return nil
	}
	o.checkDate(c.Filter)
	return c
}

// isDate reports whether a text names a time that a query can compare with now or, if it is relative, later.
func isDate(text string) bool {
	_, ok := filter.Date(text, time.Date(filter.LastYear, time.January, 1, 0, 0, 0, 0, time.UTC), time.UTC, 0)
	return ok
}

// checkDate refuses values that operators on times cannot compare with.
func (o *object) checkDate(p *query.Property) {
	if !strings.HasPrefix(p.Operator, "is_date_") {
		return
	}
	value := p.Value
	if list, isList := value.([]any); isList && len(list) == 1 { // as in queries
		value = list[0]
	}
	text, ok := value.(string)
	if ok {
		ok = isDate(text)
	}
	if !ok {
		o.r.refuse(o.field("value"), "Invalid date value '%s' for operator '%s'. Expected a relative date (e.g., '-7d', '30d') or an ISO 8601 date (e.g., '2024-01-15').",
			diag.Shown(p.Value), p.Operator)
	}
}

// member reads a condition on membership in another cohort.
func (r *reader) member(o *object) Node {
	o.begin("cohort", []string{"key", "value"}, nil)
	out := &Member{Leaf: o.base()}
	if key := o.text("key"); key != "id" && r.mistake == nil {
		r.refuse(o.field("key"), "A cohort filter has the key 'id', not '%s'", diag.Shown(key))
	}
	n, ok := id(o.fields["value"])
	if !ok {
		r.refuse(o.field("value"), "A cohort filter has the number of a cohort as its value, not '%s'", diag.Shown(o.fields["value"]))
	}
	out.Cohort = n
	return out
}

// eventFilters reads the list of filters on the events of a behavior.
func (o *object) eventFilters() *query.Condition {
	const name = "event_filters"
	if o.fields[name] == nil {
		return nil
	}
	list, ok := o.fields[name].([]any)
	if !ok || len(list) > maxLeaves {
		o.r.refuse(o.field(name), "Input should be a list of at most %d filters", maxLeaves)
		return nil
	}
	out := &query.Condition{At: o.field(name)}
	for i, item := range list {
		if c := o.r.eventFilter(item, o.field(name)+"."+strconv.Itoa(i)); c != nil {
			out.All = append(out.All, *c)
		}
	}
	if len(out.All) == 0 {
		return nil
	}
	return out
}

// eventFilter reads one of them. It returns nil after a mistake.
func (r *reader) eventFilter(v any, at string) *query.Condition {
	fields, ok := v.(map[string]any)
	if !ok {
		r.refuse(at, "A filter of events is an object")
		return nil
	}
	names := []string{"type", "key", "value", "operator"}
	switch typ := fields["type"]; typ {
	case "event", "element":
	case "hogql":
		names = names[:3]
	default:
		r.refuse(at+".type", "A filter of events has the type event, element or hogql, not '%s'", diag.Shown(typ))
		return nil
	}
	r.only(fields, at, "a filter of events", names...)
	c, err := query.Filter(fields, at)
	if err != nil {
		r.take(err)
		return nil
	}
	if c.Filter.Type != "hogql" {
		return c
	}
	if _, err := filter.UserExpr(c.Filter.Key, nil); err != nil {
		r.refuse(at+".key", "The HogQL expression of a filter %s", err.Detail)
	} else if _, _, named := mentioned(c); named {
		r.refuse(at+".key", "The HogQL expression of a cohort's filter gives cohorts and actions by their numbers, not by their names")
	}
	return c
}
