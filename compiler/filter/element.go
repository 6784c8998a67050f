package filter

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// oneElement matches an element of elements_chain. Elements are separated by semicolons, which may be in a value too.
const oneElement = `(?:[^;"]|"` + inQuotes + `")+`

// opposites are the operators that exclude what another one looks for.
var opposites = map[string]string{
	"is_not": "exact", "not_in": "in", "not_icontains": "icontains", "not_icontains_multi": "icontains_multi", "not_regex": "regex",
	"not_starts_with": "starts_with", "not_ends_with": "ends_with", "is_not_set": "is_set",
}

// elementCondition gives the condition of a filter on what was clicked (contract: api.md, section 2.4): by the name of an
// element, by a selector, by the text of one, or by the link. The error is a *diag.Error.
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

// Clicked gives what breakdowns tell clicks apart by: of the elements that were clicked, from the inside to the outside, the first text or
// the first name that is kept, or the link; empty where there is none. It is nil for other keys.
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

// link looks at where the clicked link leads; it is empty where nothing has a link.
func (s Subject) link(f Property) (hogql.Expr, bool) {
	c := propertyCondition{at: s.At, field: s.field("elements_chain_href"), column: true, subject: s}
	if f.Operator == "is_set" {
		return c.call("notEmpty", c.field), true
	}
	return c.build(f)
}

// texts looks for one among the texts of the elements.
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

// elements looks for an element of a name, or for those that a selector describes. Wrong says what is wrong with a selector.
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

// nested is the condition that elements of a chain are inside one another. For each part there is an array that says of
// each element whether it ends a row of elements that match the parts so far; the chain goes from the inside to the outside.
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
