package filter

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// oneElement matches an element of elements_chain. Elements are separated by semicolons, which values may contain too.
const oneElement = `(?:[^;"]|"` + inQuotes + `")+`

// opposites maps operators that exclude values to the operators that look for them.
var opposites = map[string]string{
	"is_not": "exact", "not_in": "in", "not_icontains": "icontains", "not_icontains_multi": "icontains_multi", "not_regex": "regex",
	"not_starts_with": "starts_with", "not_ends_with": "ends_with", "is_not_set": "is_set",
}

// elementCondition returns the condition of a filter on what was clicked (contract: api.md, section 2.4): the name or text of an element, a
// selector, or the link. The error is a *diag.Error.
func elementCondition(f Property, s Subject) (hogql.Expr, error) {
	if s.People {
		return nil, s.refuse("People cannot be filtered by properties of type '%s': use person or hogql", f.Type)
	}
	look := f
	operator, not := opposites[f.Operator]
	if not {
		look.Operator = operator
	}
	var out hogql.Expr
	var ok bool
	var wrong string
	switch f.Key {
	case "tag_name", "selector":
		out, ok, wrong = s.elements(look)
	case "text":
		out, ok = s.texts(look)
	case "href":
		out, ok = s.link(look)
	default:
		return nil, s.refuse("Filters of type 'element' look at tag_name, text, href or selector, not at '%s'", f.Key)
	}
	switch {
	case wrong != "":
		return nil, s.refuse("The selector of a property filter is invalid: %s", wrong)
	case !ok:
		return nil, s.unsupported(f)
	case not:
		out = &hogql.Unary{Pos: s.At, Op: hogql.Not, X: out}
	}
	return out, nil
}

// Clicked returns the expression that breakdowns of clicks use: the first recorded text or name of the clicked elements, from the inside out, or the
// link; empty if there is none. It is nil for other keys.
func Clicked(key string, s Subject) hogql.Expr {
	const one = "one"
	first := func(column string) hogql.Expr {
		c := propertyCondition{at: s.At, subject: s}
		item := &hogql.Field{Pos: s.At, Chain: []hogql.Name{{Pos: s.At, Text: one}}}
		texts := c.call("arrayMap", &hogql.Lambda{Pos: s.At, Params: []string{one}, Body: c.call("toString", item)}, s.field(column))
		return c.call("arrayElement", texts, &hogql.Const{Pos: s.At, Value: int64(1)})
	}
	switch key {
	case "text":
		return first("elements_chain_texts")
	case "tag_name":
		return first("elements_chain_elements")
	case "href":
		return s.field("elements_chain_href")
	}
	return nil
}

// link compares where the clicked link leads; it is empty if nothing has a link.
func (s Subject) link(f Property) (hogql.Expr, bool) {
	c := propertyCondition{at: s.At, field: s.field("elements_chain_href"), column: true, subject: s}
	if f.Operator == "is_set" {
		return c.call("notEmpty", c.field), true
	}
	return c.build(f)
}

// texts compares the texts of the elements: one that matches is enough.
func (s Subject) texts(f Property) (hogql.Expr, bool) {
	const text = "text"
	one := &hogql.Field{Pos: s.At, Chain: []hogql.Name{{Pos: s.At, Text: text}}}
	c := propertyCondition{at: s.At, field: one, column: true, subject: s}
	texts := s.field("elements_chain_texts")
	if f.Operator == "is_set" {
		return c.call("notEmpty", texts), true
	}
	condition, ok := c.build(f)
	return c.call("arrayExists", &hogql.Lambda{Pos: s.At, Params: []string{text}, Body: condition}, texts), ok
}

// elements looks for an element by its name, or for elements by a selector. wrong says what is wrong with a selector.
func (s Subject) elements(f Property) (out hogql.Expr, ok bool, wrong string) {
	switch f.Operator {
	case "", "exact", "in":
	default:
		return nil, false, ""
	}
	c := propertyCondition{at: s.At, subject: s}
	out, ok = c.each(listed(f.Value), true, func(v any) (hogql.Expr, bool) {
		text, ok := toText(v)
		if !ok {
			return nil, false
		}
		parts := []selectorPart{{tests: []string{tagIs(text)}}}
		if f.Key == "selector" {
			if parts, wrong = readSelector(text); wrong != "" {
				return nil, false
			}
		}
		return c.nested(parts), true
	})
	return out, ok, wrong
}

// nested returns the condition that a chain has elements nested as in parts. After each part, an array tells for every element whether it ends a
// sequence of elements matching the parts so far; chains go from the inside out.
func (c propertyCondition) nested(parts []selectorPart) hogql.Expr {
	chain := func() hogql.Expr {
		return c.call("extractAll", c.subject.field("elements_chain"), &hogql.Const{Pos: c.at, Value: oneElement})
	}
	name := func(text string) hogql.Expr {
		return &hogql.Field{Pos: c.at, Chain: []hogql.Name{{Pos: c.at, Text: text}}}
	}
	matches := func(part selectorPart) hogql.Expr {
		tests := []hogql.Expr{c.truth(true)}
		if len(part.tests) > 0 {
			tests = nil
		}
		for _, test := range part.tests {
			tests = append(tests, c.call("match", name("element"), &hogql.Const{Pos: c.at, Value: test}))
		}
		if len(tests) == 1 {
			return tests[0]
		}
		return &hogql.Logic{Pos: c.at, Args: tests}
	}
	if len(parts) == 1 {
		return c.call("arrayExists", &hogql.Lambda{Pos: c.at, Params: []string{"element"}, Body: matches(parts[0])}, chain())
	}
	found := c.call("arrayMap", &hogql.Lambda{Pos: c.at, Params: []string{"element"}, Body: matches(parts[0])}, chain())
	for i, part := range parts[1:] {
		if !parts[i].child { // the part before may be any number of elements further in
			found = c.call("arrayCumSum", found)
		}
		inside := c.call("arrayPopBack", c.call("arrayPushFront", found, &hogql.Const{Pos: c.at, Value: int64(0)}))
		both := &hogql.Logic{Pos: c.at, Args: []hogql.Expr{
			matches(part),
			&hogql.Compare{Pos: c.at, Op: hogql.Greater, Left: name("inside"), Right: &hogql.Const{Pos: c.at, Value: int64(0)}},
		}}
		found = c.call("arrayMap", &hogql.Lambda{Pos: c.at, Params: []string{"element", "inside"}, Body: both}, chain(), inside)
	}
	return c.call("has", found, &hogql.Const{Pos: c.at, Value: int64(1)})
}
