package compiler

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Uses are the actions and cohorts that a query depends on, whether there are any of these numbers or not. A name that no action or cohort
// has is not among them: such a query does not compile.
type Uses struct {
	// Actions and Cohorts are sorted, each number once.
	Actions, Cohorts []int64
	// Labels are those of Cohorts whose names the answer shows, sorted.
	Labels []int64
	// AllActions and AllCohorts report that it may be any of them: the query reads a table of members, a placeholder that stands
	// for nothing yet decides, or there is too much of it to look at.
	AllActions, AllCohorts bool
}

// IsZero reports whether the query depends on none.
func (u *Uses) IsZero() bool {
	return len(u.Actions) == 0 && len(u.Cohorts) == 0 && !u.AllActions && !u.AllCohorts
}

// UsesOf finds what a query depends on: what it names itself, what the steps of its actions ask for, and what the filters against test
// accounts do if it asks for these. It looks up names in the cohorts of env.Database and in env.Actions, and puts values in place of
// placeholders. Without actions and test accounts in env it finds what the query names itself, apart from actions by name.
//
// A text of a query's own counts as HogQL wherever it is, so that no use is missed. The name of an event that reads as such is one use too many.
func UsesOf(q query.Node, env Env) Uses {
	return usesOf(env, func(f *useFinder) { f.value(reflect.ValueOf(q), 0) })
}

// UsesOfCondition is UsesOf for a tree of property filters, such as those against test accounts or those of a step of an action.
func UsesOfCondition(c *query.Condition, env Env) Uses {
	return usesOf(env, func(f *useFinder) { f.condition(c) })
}

func usesOf(env Env, find func(*useFinder)) Uses {
	env.spend = budget.New(env.Expired)
	if env.Database == nil {
		env.Database = &schema.Database{}
	}
	f := useFinder{env: env}
	if err := within(func() { find(&f) }); err != nil { // too large to look at
		f.found.AllActions, f.found.AllCohorts = true, true
	}
	for _, list := range []*[]int64{&f.found.Actions, &f.found.Cohorts, &f.found.Labels} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return f.found
}

// within calls a function that spends from a budget, and gives the error that ended it; nil when it came to its end.
func within(do func()) (err error) {
	defer budget.Catch(&err)
	do()
	return nil
}

type useFinder struct {
	env      Env
	found    Uses
	accounts bool // the filters against test accounts were looked at
	read     int  // see maxRead
}

// value looks at a part of a node.
func (f *useFinder) value(v reflect.Value, depth int) {
	if depth > maxNodeDepth {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if text, ok := reflect.TypeAssert[*query.HogQL](v); ok && text != nil {
			f.text(text)
		} else if !v.IsNil() {
			f.value(v.Elem(), depth+1)
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.value(v.Index(i), depth+1)
		}
	case reflect.Struct:
		if !f.part(v) {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.value(v.Field(i), depth+1)
			}
		}
	case reflect.String:
		f.expression(v.String())
	default: // holds no names
	}
}

// part looks at a struct, and reports whether to look at its fields too.
func (f *useFinder) part(v reflect.Value) bool {
	switch v.Type() {
	case reflect.TypeFor[query.Modifiers]():
		return false
	case reflect.TypeFor[query.Condition]():
		c, _ := reflect.TypeAssert[query.Condition](v)
		f.condition(&c)
		return false
	case reflect.TypeFor[query.Cohort]():
		if c, _ := reflect.TypeAssert[query.Cohort](v); c.ID != schema.Everybody {
			f.cohort(c.ID)
			f.found.Labels = append(f.found.Labels, c.ID)
		}
		return false
	}
	if user, ok := reflect.TypeAssert[query.ActionUser](v); ok {
		if id, used := user.ActionID(); used {
			f.action(id)
		}
	}
	if flag := v.FieldByName("FilterTestAccounts"); flag.Kind() == reflect.Bool && flag.Bool() {
		f.testAccounts()
	}
	return true
}

func (f *useFinder) condition(c *query.Condition) {
	if c == nil {
		return
	}
	if c.Filter != nil {
		f.filter(c.Filter)
	}
	for i := range c.All {
		f.condition(&c.All[i])
	}
}

func (f *useFinder) filter(p *query.Property) {
	switch p.Type {
	case query.CohortType:
		if id, ok := filter.CohortID(p.Value); ok {
			f.cohort(id)
		}
	case filter.BehavioralType:
		if p.Behavior.Action != 0 {
			f.action(p.Behavior.Action)
		}
		for i := range p.Behavior.Filters {
			f.filter(&p.Behavior.Filters[i])
		}
	case "hogql":
		f.expression(p.Key)
	}
}

func (f *useFinder) testAccounts() {
	if !f.accounts {
		f.accounts = true
		f.condition(f.env.TestAccounts)
	}
}

func (f *useFinder) cohort(id int64) { f.found.Cohorts = append(f.found.Cohorts, id) }

// action notes an action, and what its steps ask for.
func (f *useFinder) action(id int64) {
	if slices.Contains(f.found.Actions, id) {
		return
	}
	f.found.Actions = append(f.found.Actions, id)
	if a := f.env.Actions.Get(id); a != nil {
		for i := range a.Steps {
			f.condition(a.Steps[i].Properties)
		}
	}
}

// naming finds the texts of HogQL that may use an action or a cohort: a keyword, a function, the names of tables, or names with escapes, which may be
// anything.
var naming = regexp.MustCompile(`(?i)cohort|matchesaction|\\`)

// maxRead is how many bytes of HogQL are read in all, so that finding the uses costs less than a millisecond or two: no turn is taken for it, as is for
// a compile.
const maxRead = 64 << 10

// reads reports whether a text has to be read. Once there is too much of it, the query may depend on anything.
func (f *useFinder) reads(text string) bool {
	if !naming.MatchString(text) {
		return false
	}
	if f.read += len(text); f.read > maxRead {
		f.found.AllActions, f.found.AllCohorts = true, true
		return false
	}
	return true
}

// expression looks at a text that may be an expression. One that does not parse is none.
func (f *useFinder) expression(text string) {
	if !f.reads(text) {
		return
	}
	e, err := hogql.ParseExprWithin(strings.TrimSpace(text), f.env.spend)
	if err != nil {
		text, _ = insight.Direction(text)
		if e, err = hogql.ParseExprWithin(text, f.env.spend); err != nil {
			return
		}
	}
	v := f.visitor()
	v.WalkExpr(e)
}

// text looks at a query of the user's own, with its values in place of its placeholders.
func (f *useFinder) text(q *query.HogQL) {
	if q.Filters != nil {
		for i := range q.Filters.Properties {
			f.filter(&q.Filters.Properties[i])
		}
		if q.Filters.FilterTestAccounts {
			f.testAccounts()
		}
	}
	if !f.reads(q.Query) {
		return
	}
	parsed, err := hogql.ParseWithin(q.Query, f.env.spend)
	if err != nil {
		return
	}
	own := *q
	own.Filters = nil
	if values, err := valuesOf(&own, f.env); err == nil {
		parsed, _ = bind.Placeholders(parsed, values) // what it can't replace stays
	}
	v := f.visitor()
	v.WalkQuery(parsed)
}

func (f *useFinder) visitor() *hogql.Visitor {
	return &hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			if c, ok := e.(*hogql.Compare); ok && (c.Op == hogql.InCohort || c.Op == hogql.NotInCohort) {
				f.namedCohort(c.Right)
			}
			if c, ok := e.(*hogql.Call); ok && c.Name == schema.MatchesAction && len(c.Args) == 1 {
				f.namedAction(c.Args[0])
			}
			return true
		},
		Table: func(t hogql.Table) bool {
			if name, ok := t.(*hogql.TableName); ok && schema.HoldsMembers(name.Chain[len(name.Chain)-1].Text) {
				f.found.AllCohorts = true
			}
			return true
		},
	}
}

// namedCohort notes the cohorts that an expression names.
func (f *useFinder) namedCohort(e hogql.Expr) {
	named, open := constantOf(e)
	f.found.AllCohorts = f.found.AllCohorts || open
	switch value := named.(type) {
	case int64:
		f.cohort(value)
	case string:
		for _, id := range f.env.Database.Cohorts.ByName(value) {
			f.cohort(id)
		}
	}
}

// namedAction notes the actions that an expression names.
func (f *useFinder) namedAction(e hogql.Expr) {
	named, open := constantOf(e)
	f.found.AllActions = f.found.AllActions || open
	switch value := named.(type) {
	case int64:
		f.action(value)
	case string:
		for _, a := range f.env.Actions.Named(value) {
			f.action(a.ID)
		}
	}
}

// constantOf is the value of a constant, nil for any other expression. Open reports whether a placeholder decides it that nothing stands for yet.
func constantOf(e hogql.Expr) (value any, open bool) {
	if c, ok := e.(*hogql.Const); ok {
		return c.Value, false
	}
	_, open = e.(*hogql.Placeholder)
	return nil, open
}
