package filter

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Property is one property filter (contract: api.md, section 2.4).
type Property struct {
	Type     string // event, person, group, session, feature, event_metadata, element, cohort, behavioral or hogql
	Key      string
	Operator string // default: exact
	Value    any    // nil, string, number, bool or a list of them
	Group    int    // index of the group type; -1 for a group filter without one
	// Behavior is what a behavioral filter asks for; nil for other types.
	Behavior *Behavior `json:",omitempty"`
}

// Complete reports whether the filter has all parts of a condition. An incomplete filter counts as true (contract: trends.md, section 4).
func (f *Property) Complete() bool {
	switch {
	case f.Type == "group" && f.Group < 0:
		return false
	case f.Type == "hogql", f.Type == BehavioralType, f.Operator == "is_set", f.Operator == "is_not_set":
		return true
	}
	list, listed := f.Value.([]any)
	return f.Value != nil && (!listed || len(list) > 0)
}

// propertyCondition builds the comparison of a field with one or more values.
type propertyCondition struct {
	at      hogql.Span
	field   hogql.Expr
	typ     schema.PropertyType
	column  bool // the field is a column, whose values need not be text
	subject Subject
}

func (c propertyCondition) truth(value bool) hogql.Expr { return &hogql.Const{Pos: c.at, Value: value} }

func (c propertyCondition) compare(op hogql.CompareOp, v any) hogql.Expr {
	return &hogql.Compare{Pos: c.at, Op: op, Left: c.field, Right: &hogql.Const{Pos: c.at, Value: v}}
}

// toText returns a value as property values are read: booleans and numbers as their JSON text.
func toText(v any) (string, bool) {
	switch v := Numeric(v).(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// listed returns the values of a filter, which may also be a single one.
func listed(value any) []any {
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}

// build returns the condition. It returns false for an unknown operator, or one that does not fit the value.
func (c propertyCondition) build(f Property) (hogql.Expr, bool) {
	values := listed(f.Value)
	switch f.Operator {
	case "is_set":
		return c.compare(hogql.NotEquals, nil), true
	case "is_not_set":
		return c.compare(hogql.Equals, nil), true
	case "", "exact", "in":
		return c.each(values, true, c.equal(hogql.Equals))
	case "is_cleaned_path_exact":
		return c.each(values, true, c.samePath)
	case "is_not", "not_in":
		return c.each(values, false, c.equal(hogql.NotEquals))
	case "icontains", "icontains_multi":
		return c.each(values, true, c.pattern(hogql.ILike, Containing))
	case "not_icontains", "not_icontains_multi":
		return c.each(values, false, c.pattern(hogql.NotILike, Containing))
	case "starts_with":
		return c.each(values, true, c.pattern(hogql.Like, func(s string) string { return escapeLike(s) + "%" }))
	case "not_starts_with":
		return c.each(values, false, c.pattern(hogql.NotLike, func(s string) string { return escapeLike(s) + "%" }))
	case "ends_with":
		return c.each(values, true, c.pattern(hogql.Like, func(s string) string { return "%" + escapeLike(s) }))
	case "not_ends_with":
		return c.each(values, false, c.pattern(hogql.NotLike, func(s string) string { return "%" + escapeLike(s) }))
	case "regex":
		return c.each(values, true, c.pattern(hogql.Match, same))
	case "not_regex":
		return c.each(values, false, c.pattern(hogql.NotMatch, same))
	case "gt":
		return c.number(hogql.Greater, values)
	case "gte", "min":
		return c.number(hogql.GreaterOrEquals, values)
	case "lt":
		return c.number(hogql.Less, values)
	case "lte", "max":
		return c.number(hogql.LessOrEquals, values)
	case "between":
		return c.between(values, false)
	case "not_between":
		return c.between(values, true)
	case "is_date_exact":
		return c.date(hogql.Equals, values)
	case "is_date_before":
		return c.date(hogql.Less, values)
	case "is_date_after":
		return c.date(hogql.Greater, values)
	}
	if operator, ok := strings.CutPrefix(f.Operator, "semver_"); ok {
		return c.version(operator, values)
	}
	return nil, false
}

// nodesPerValue is roughly how many nodes the comparison with one value has.
const nodesPerValue = 3

// each combines the conditions on several values: OR for operators that look for one, AND for operators that exclude all.
func (c propertyCondition) each(values []any, or bool, build func(any) (hogql.Expr, bool)) (hogql.Expr, bool) {
	var all []hogql.Expr
	for _, v := range values {
		c.subject.Spend.Nodes(nodesPerValue)
		if v != nil {
			if _, ok := toText(v); !ok {
				return nil, false
			}
		}
		e, ok := build(v)
		if !ok {
			return nil, false
		}
		all = append(all, e)
	}
	switch len(all) {
	case 0:
		return c.truth(!or), true
	case 1:
		return all[0], true
	}
	return &hogql.Logic{Pos: c.at, Or: or, Args: all}, true
}

// equal compares with a value in the field's declared type: text, number or boolean. A value of another type equals nothing.
func (c propertyCondition) equal(op hogql.CompareOp) func(any) (hogql.Expr, bool) {
	return func(v any) (hogql.Expr, bool) {
		if v == nil {
			return c.compare(op, nil), true
		}
		text, ok := toText(v)
		if !ok {
			return nil, false
		}
		switch {
		case c.column:
			return &hogql.Compare{Pos: c.at, Op: op, Left: c.text(), Right: &hogql.Const{Pos: c.at, Value: text}}, true
		case c.typ == schema.NumericProperty:
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return c.truth(op == hogql.NotEquals), true
			}
			return c.compare(op, n), true
		case c.typ == schema.BooleanProperty:
			if text != "true" && text != "false" {
				return c.truth(op == hogql.NotEquals), true
			}
			return c.compare(op, text == "true"), true
		case c.typ == schema.DateTimeProperty:
			t, ok := Date(text, c.subject.Now, c.subject.Location, c.subject.WeekStart)
			if !ok {
				return c.truth(op == hogql.NotEquals), true
			}
			return c.compare(op, t), true
		}
		return c.compare(op, text), true
	}
}

// samePath compares paths after the project's cleaning rules.
func (c propertyCondition) samePath(v any) (hogql.Expr, bool) {
	text, ok := toText(v)
	path, wanted := c.text(), hogql.Expr(&hogql.Const{Pos: c.at, Value: text})
	if clean := c.subject.Clean; clean != nil {
		path, wanted = clean(path), clean(wanted)
	}
	return &hogql.Compare{Pos: c.at, Op: hogql.Equals, Left: path, Right: wanted}, ok
}

func same(s string) string { return s }

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// Containing returns the LIKE pattern of "contains". Wildcards in the text match themselves.
func Containing(s string) string { return "%" + escapeLike(s) + "%" }

func (c propertyCondition) pattern(op hogql.CompareOp, make func(string) string) func(any) (hogql.Expr, bool) {
	return func(v any) (hogql.Expr, bool) {
		s, ok := toText(v)
		return &hogql.Compare{
			Pos: c.at, Op: op, Left: c.text(), Right: &hogql.Const{Pos: c.at, Value: make(s)},
		}, ok
	}
}

func (c propertyCondition) call(name string, args ...hogql.Expr) hogql.Expr {
	return &hogql.Call{Pos: c.at, Name: name, Args: args}
}

func (c propertyCondition) text() hogql.Expr { return c.call("toString", c.field) }

// toNumber converts a filter's value to a number.
func toNumber(v any) (float64, bool) {
	text, ok := toText(v)
	if !ok || v == true || v == false {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// number compares as numbers, whatever the property's declared type.
func (c propertyCondition) number(op hogql.CompareOp, values []any) (hogql.Expr, bool) {
	if len(values) != 1 {
		return nil, false
	}
	v := Numeric(values[0])
	if s, ok := v.(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, false
		}
		v = f
	}
	if _, ok := hogql.FloatOf(v); !ok {
		return nil, false
	}
	return &hogql.Compare{
		Pos: c.at, Op: op, Left: c.call("toFloat", c.field), Right: &hogql.Const{Pos: c.at, Value: v},
	}, true
}

// between compares with two numbers in ascending order.
func (c propertyCondition) between(values []any, not bool) (hogql.Expr, bool) {
	if len(values) != 2 {
		return nil, false
	}
	low, ok := toNumber(values[0])
	high, alsoOK := toNumber(values[1])
	if !ok || !alsoOK || low > high {
		return nil, false
	}
	return &hogql.Between{
		Pos: c.at, X: c.call("toFloat", c.field), Low: &hogql.Const{Pos: c.at, Value: low}, High: &hogql.Const{Pos: c.at, Value: high}, Not: not,
	}, true
}

// date compares as times. The value may be a relative date.
func (c propertyCondition) date(op hogql.CompareOp, values []any) (hogql.Expr, bool) {
	if len(values) != 1 {
		return nil, false
	}
	text, ok := toText(values[0])
	if !ok {
		return nil, false
	}
	t, ok := Date(text, c.subject.Now, c.subject.Location, c.subject.WeekStart)
	if !ok {
		return nil, false
	}
	return &hogql.Compare{Pos: c.at, Op: op, Left: c.call("toDateTime", c.field), Right: &hogql.Const{Pos: c.at, Value: t}}, true
}
