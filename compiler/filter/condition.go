package filter

import (
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Subject is what a property filter applies to.
type Subject struct {
	// People reports whether the rows are people, not events.
	People bool
	// Rows names the table of rows that are neither: sessions or groups.
	Rows string
	// Table is the alias of the rows in the query; empty if they are its only table.
	Table string
	// Types are the declared property types, which decide how values are compared.
	Types schema.PropertyTypes
	// Cohorts are the cohorts that filters can name.
	Cohorts schema.Cohorts
	// Now, Location and WeekStart are what relative dates are computed from. WeekStart is 0 for Sunday.
	Now       time.Time
	Location  *time.Location
	WeekStart int
	// Clean applies the project's path cleaning rules to an expression; nil if there are none.
	Clean func(path hogql.Expr) hogql.Expr
	// Spend is the budget of the compile; nil bounds nothing.
	Spend *budget.Budget
	// At is the place of the nodes that are built, Attr the place of the filter in the request's JSON.
	At   hogql.Span
	Attr string
}

// field returns a column or property of events.
func (s Subject) field(chain ...string) hogql.Expr {
	f := &hogql.Field{Pos: s.At, Chain: make([]hogql.Name, 0, len(chain)+1)}
	if s.Table != "" {
		f.Chain = append(f.Chain, hogql.Name{Pos: s.At, Text: s.Table, Quoted: true})
	}
	for _, name := range chain {
		f.Chain = append(f.Chain, hogql.Name{Pos: s.At, Text: name, Quoted: true})
	}
	return f
}

func (s Subject) refuse(format string, args ...any) *diag.Error {
	e := diag.Field(diag.QueryError, s.Attr, format, args...)
	e.Span = s.At
	return e
}

// Field returns the value that a property filter or breakdown of a type applies to, and its declared type. The error is a *diag.Error.
func Field(typ, key string, group int, s Subject) (hogql.Expr, schema.PropertyType, error) {
	if s.People {
		switch typ {
		case "person":
			return s.field("properties", key), s.Types.Of(schema.PropertyKey{Scope: schema.PersonProperty, Name: key}), nil
		case "person_metadata":
			return s.field(key), schema.DateTimeProperty, nil
		}
		return nil, "", s.refuse("People cannot be filtered by properties of type '%s': use person or hogql", typ)
	}
	switch s.Rows {
	case "sessions":
		return s.field(key), schema.StringProperty, nil
	case "groups":
		return s.field("properties", key), schema.StringProperty, nil // which they read as in a table of groups of all types
	}
	index := strconv.Itoa(group)
	declared := func(scope schema.PropertyScope, group int) schema.PropertyType {
		return s.Types.Of(schema.PropertyKey{Scope: scope, Group: group, Name: key})
	}
	switch typ {
	case "event":
		return s.field("properties", key), declared(schema.EventProperty, 0), nil
	case "feature":
		if !strings.HasPrefix(key, "$feature/") {
			key = "$feature/" + key
		}
		return s.field("properties", key), declared(schema.EventProperty, 0), nil
	case "person":
		return s.field("person", "properties", key), declared(schema.PersonProperty, 0), nil
	case "group":
		return s.field("group_"+index, "properties", key), declared(schema.GroupProperty, group), nil
	case "session":
		return s.field("session", key), schema.StringProperty, nil
	case "event_metadata":
		return s.field(key), schema.StringProperty, nil
	case "person_metadata":
		if key != "created_at" {
			return nil, "", s.refuse("Filters of type 'person_metadata' look at created_at, not at '%s'", diag.Shown(key))
		}
		return s.field("person", key), schema.DateTimeProperty, nil
	case "element":
		value := Clicked(key, s)
		if value == nil {
			return nil, "", s.refuse("Breakdowns of type 'element' are by tag_name, text or href, not by '%s'", diag.Shown(key))
		}
		return value, schema.StringProperty, nil
	}
	return nil, "", s.refuse("Property filters of type '%s' are not supported", typ)
}

// Condition returns the condition of one property filter (contract: trends.md, section 4). The error is a *diag.Error.
func Condition(f Property, s Subject) (hogql.Expr, error) {
	s.Spend.Nodes(1)
	s.Spend.Bytes(len(f.Key))
	if own := rowFilters[s.Rows]; s.Rows != "" && f.Type != own && f.Type != "hogql" {
		return nil, s.refuse("Property filters of type '%s' cannot be used over the %s table: use %s or hogql", f.Type, s.Rows, own)
	}
	if !f.Complete() {
		return &hogql.Const{Pos: s.At, Value: true}, nil
	}
	switch f.Type {
	case "hogql":
		return s.expression(f.Key)
	case "element":
		return elementCondition(f, s)
	case "cohort":
		return cohortCondition(f, s)
	case BehavioralType:
		return behaviorCondition(f.Behavior, s)
	}
	if f.Type == "event" && f.Key == ElementsChain && !s.People {
		f.Type, f.Key = "event_metadata", "elements_chain"
	}
	field, typ, err := Field(f.Type, f.Key, f.Group, s)
	if err != nil {
		return nil, err
	}
	c := propertyCondition{at: s.At, field: field, typ: typ, subject: s, column: f.Type == "event_metadata" || f.Type == "session"}
	build := c.build
	if s.isTextList(f) {
		build = c.members
	}
	out, ok := build(f)
	if !ok {
		return nil, s.unsupported(f)
	}
	return out, nil
}

// ElementsChain is the key of an event property filter that applies to the column elements_chain.
const ElementsChain = "$elements_chain"

// rowFilters maps tables of rows other than events to the type of filters on them.
var rowFilters = map[string]string{"sessions": "session", "groups": "group"}

// unsupported returns the mistake for an unknown operator, or one that does not fit the value.
func (s Subject) unsupported(f Property) *diag.Error {
	return s.refuse("The property filter on '%s' has operator '%s', which is not supported with its value", f.Key, f.Operator)
}

// expression parses a filter that is an expression.
func (s Subject) expression(text string) (hogql.Expr, error) {
	e, err := UserExpr(text, s.Spend)
	if err != nil {
		return nil, &diag.Error{Code: err.Code, Span: s.At, Attr: s.Attr + ".key", Detail: "The HogQL expression of a property filter " + err.Detail}
	}
	return moved(e, s.At, s.Spend), nil
}

// UserExpr parses an expression from a request's JSON, which may not contain placeholders. The detail of a mistake continues the name of what the
// expression is for.
func UserExpr(text string, spend *budget.Budget) (hogql.Expr, *diag.Error) {
	e, err := hogql.ParseExprWithin(text, spend)
	if err != nil {
		return nil, &diag.Error{Code: diag.SyntaxError, Detail: "is invalid: " + detail(err)}
	}
	held := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		_, placeholder := e.(*hogql.Placeholder)
		held = held || placeholder
		return !held
	})
	if held {
		return nil, &diag.Error{Code: diag.QueryError, Detail: "cannot hold placeholders"}
	}
	return moved(e, hogql.Span{}, spend), nil
}

// UserValue is UserExpr for an expression of which only the value counts. Aliases that it defines with AS and does not use itself are removed: they
// would become visible in the query around it.
func UserValue(text string, spend *budget.Budget) (hogql.Expr, *diag.Error) {
	e, err := UserExpr(text, spend)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if field, ok := e.(*hogql.Field); ok {
			used[field.Chain[0].Text] = true
		}
		return true
	})
	var r hogql.Rewriter
	r.Expr = func(e hogql.Expr) hogql.Expr {
		if _, ok := e.(*hogql.Subquery); ok {
			return e // its names are local to it
		}
		if alias, ok := e.(*hogql.Alias); ok && !used[alias.Name.Text] {
			return r.Expr(alias.X)
		}
		return r.ExprChildren(e)
	}
	return r.Expr(e), nil
}

// detail returns the text of the first mistake.
func detail(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
