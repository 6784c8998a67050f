package bind

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Property is one property filter (contract: api.md, section 2.4).
type Property struct {
	Type     string // event, person, group, event_metadata or hogql
	Key      string
	Operator string // default: exact
	Value    any    // nil, string, number, bool or a list of them
	Group    int    // index of the group type
}

// property gives the condition of one property filter over a table.
func (b *binder) property(at hogql.Span, table filtered, index int, f Property) hogql.Expr {
	attr := "filters.properties." + strconv.Itoa(index)
	refuse := func(format string, args ...any) hogql.Expr {
		b.mistakes.Add(&diag.Error{
			Code: diag.QueryError, Span: at, Attr: attr, Detail: diag.Field(diag.QueryError, attr, format, args...).Detail,
		})
		return &hogql.Const{Pos: at, Value: true}
	}
	if table.name != "events" {
		return refuse("Property filters of type '%s' cannot be used over the %s table", f.Type, table.name)
	}
	var field hogql.Expr
	switch f.Type {
	case "hogql":
		return b.hogqlProperty(at, attr, f.Key)
	case "event":
		field = table.field(at, "properties", f.Key)
	case "person":
		field = table.field(at, "person", "properties", f.Key)
	case "group":
		field = table.field(at, "group_"+strconv.Itoa(f.Group), "properties", f.Key)
	case "event_metadata":
		field = table.field(at, f.Key)
	default:
		return refuse("Property filters of type '%s' are not supported in {filters}", f.Type)
	}
	c := propertyCondition{at: at, field: field}
	out, ok := c.build(f)
	if !ok {
		return refuse("The property filter on '%s' has operator '%s', which is not supported with its value", f.Key, f.Operator)
	}
	return out
}

// hogqlProperty reads a filter that is an expression of its own. Its mistakes are where {filters} stands.
func (b *binder) hogqlProperty(at hogql.Span, attr, text string) hogql.Expr {
	e, err := hogql.ParseExpr(text)
	if err != nil {
		b.mistakes.Add(&diag.Error{
			Code: diag.SyntaxError, Span: at, Attr: attr + ".key", Detail: "Invalid HogQL expression in a property filter: " + detail(err),
		})
		return &hogql.Const{Pos: at, Value: true}
	}
	held := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		_, placeholder := e.(*hogql.Placeholder)
		held = held || placeholder
		return !held
	})
	if held {
		b.mistakes.Add(&diag.Error{
			Code: diag.QueryError, Span: at, Attr: attr + ".key", Detail: "A property filter cannot hold placeholders",
		})
	}
	return moved(e, at)
}

// propertyCondition builds the comparison of one field with one value or several.
type propertyCondition struct {
	at    hogql.Span
	field hogql.Expr
}

func (c propertyCondition) compare(op hogql.CompareOp, v any) hogql.Expr {
	return &hogql.Compare{Pos: c.at, Op: op, Left: c.field, Right: &hogql.Const{Pos: c.at, Value: v}}
}

// toText gives a value as property values read: true and numbers as their JSON text.
func toText(v any) (string, bool) {
	switch v := numeric(v).(type) {
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

// build makes the condition. It tells false for an operator that does not exist or does not go with the value.
func (c propertyCondition) build(f Property) (hogql.Expr, bool) {
	values, isList := f.Value.([]any)
	if !isList {
		values = []any{f.Value}
	}
	switch f.Operator {
	case "is_set":
		return c.compare(hogql.NotEquals, nil), true
	case "is_not_set":
		return c.compare(hogql.Equals, nil), true
	case "", "exact", "in":
		return c.each(values, true, func(v any) (hogql.Expr, bool) { return c.compare(hogql.Equals, v), true })
	case "is_not", "not_in":
		return c.each(values, false, func(v any) (hogql.Expr, bool) { return c.compare(hogql.NotEquals, v), true })
	case "icontains":
		return c.each(values, true, c.pattern(hogql.ILike, containing))
	case "not_icontains":
		return c.each(values, false, c.pattern(hogql.NotILike, containing))
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
	}
	return nil, false
}

// each joins the conditions on several values: OR for operators that look for one, AND for those that shut all out.
// Property values compare as text, so numbers and booleans become theirs.
func (c propertyCondition) each(values []any, or bool, build func(any) (hogql.Expr, bool)) (hogql.Expr, bool) {
	var all []hogql.Expr
	for _, v := range values {
		if v != nil {
			text, ok := toText(v)
			if !ok {
				return nil, false
			}
			v = text
		}
		e, ok := build(v)
		if !ok {
			return nil, false
		}
		all = append(all, e)
	}
	switch len(all) {
	case 0:
		return &hogql.Const{Pos: c.at, Value: !or}, true
	case 1:
		return all[0], true
	}
	return &hogql.Logic{Pos: c.at, Or: or, Args: all}, true
}

func same(s string) string { return s }

// containing makes the LIKE pattern of «contains»: the text's own wildcards stand for themselves.
func containing(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

func (c propertyCondition) pattern(op hogql.CompareOp, make func(string) string) func(any) (hogql.Expr, bool) {
	return func(v any) (hogql.Expr, bool) {
		s, ok := v.(string)
		return &hogql.Compare{
			Pos: c.at, Op: op, Left: c.text(), Right: &hogql.Const{Pos: c.at, Value: make(s)},
		}, ok
	}
}

func (c propertyCondition) call(name string, arg hogql.Expr) hogql.Expr {
	return &hogql.Call{Pos: c.at, Name: name, Args: []hogql.Expr{arg}}
}

func (c propertyCondition) text() hogql.Expr { return c.call("toString", c.field) }

// number compares as numbers, whatever type the property is defined to have.
func (c propertyCondition) number(op hogql.CompareOp, values []any) (hogql.Expr, bool) {
	if len(values) != 1 {
		return nil, false
	}
	v := numeric(values[0])
	if s, ok := v.(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, false
		}
		v = f
	}
	if _, ok := toFloat(v); !ok {
		return nil, false
	}
	return &hogql.Compare{
		Pos: c.at, Op: op, Left: c.call("toFloat", c.field), Right: &hogql.Const{Pos: c.at, Value: v},
	}, true
}

// detail gives the text of the first mistake.
func detail(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
