package compiler

import (
	"reflect"
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

// Uses are the actions and cohorts that a query depends on, by number, whether they exist or not. Names of actions or cohorts that do not exist
// are left out: such a query does not compile.
type Uses struct {
	// Actions and Cohorts are sorted and without duplicates.
	Actions, Cohorts []int64
	// Labels are the members of Cohorts whose names the answer shows, sorted.
	Labels []int64
	// AllActions and AllCohorts report that the query may depend on any: it reads a table of members, it depends on a placeholder without a
	// value yet, or it could not be searched, for example because it is too large.
	AllActions, AllCohorts bool
	// AllProperties reports that the query may read properties that it does not name, for one of the last two reasons.
	AllProperties bool
}

// IsZero reports whether the query depends on no action or cohort.
func (u *Uses) IsZero() bool {
	return len(u.Actions) == 0 && len(u.Cohorts) == 0 && !u.AllActions && !u.AllCohorts
}

// UsesOf finds what a query depends on: what it names itself, what the steps of its actions use, and what the test account filters use if it asks
// for them. It looks up names in the cohorts of env.Database and in env.Actions, and fills in placeholders. Without actions and test accounts
// in env it finds what the query names itself, apart from actions by name.
//
// Any text in a query that may be HogQL counts as HogQL, so that no use is missed. An event name that reads like HogQL may add a needless use.
func UsesOf(q query.Node, env Env) Uses {
	return usesOf(env, func(f *useFinder) { f.value(reflect.ValueOf(q), 0) })
}

// UsesOfCondition is UsesOf for a tree of property filters, such as the test account filters or those in a step of an action.
func UsesOfCondition(c *query.Condition, env Env) Uses {
	return usesOf(env, func(f *useFinder) { f.condition(c) })
}

// NamesOf is UsesOf. It also calls named with all that may be the name of a property that the query reads, some of it several times. Names that the compiler
// itself reads for some queries are among OwnProperties instead.
func NamesOf(q query.Node, env Env, named func(name string)) Uses {
	return usesOf(env, func(f *useFinder) {
		f.named = named
		for _, name := range env.DisplayNames {
			f.names(name)
		}
		f.value(reflect.ValueOf(q), 0)
	})
}

func usesOf(env Env, find func(*useFinder)) Uses {
	env.spend = budget.New(env.Expired)
	if env.Database == nil {
		env.Database = &schema.Database{}
	}
	f := useFinder{env: env}
	if err := stopped(func() { find(&f) }); err != nil { // too large to look at, or a bug
		f.anything()
	}
	for _, list := range []*[]int64{&f.found.Actions, &f.found.Cohorts, &f.found.Labels} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return f.found
}

// stopped calls a function that spends from a budget, and returns the error that ended it, or its bug; nil if it finished.
func stopped(do func()) (err error) {
	defer RecoverBug(&err)
	do()
	return nil
}

type useFinder struct {
	env      Env
	found    Uses
	named    func(name string) // nil if nobody asks for the names of properties
	accounts bool              // the test account filters were searched
	read     int               // see maxRead
	scanned  int               // see maxScanned
}

// anything notes that the query may depend on anything.
func (f *useFinder) anything() {
	f.found.AllActions, f.found.AllCohorts, f.found.AllProperties = true, true, true
}

// value searches a part of a node.
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

// part searches a struct, and reports whether to search its fields too.
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
	f.names(p.Key)
	switch p.Type {
	case "feature":
		f.names("$feature/" + p.Key)
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

// action notes an action, and what its steps use.
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

// mayUse reports whether a HogQL text may use an action or a cohort: by a keyword, a function, the name of a table, or an escaped name, which may be
// anything: one with a backslash, or one that begins or ends with its own quote. It takes a nanosecond for each byte.
func mayUse(text string) bool {
	for i := range len(text) {
		var word string
		switch text[i] {
		case 'c', 'C':
			word = "cohort"
		case 'm', 'M':
			word = schema.MatchesAction
		case '\\':
			return true
		case '\'', '"', '`':
			if strings.HasPrefix(text[i+1:], text[i:i+1]+text[i:i+1]) {
				return true
			}
			continue
		default:
			continue
		}
		if strings.EqualFold(text[i:min(i+len(word), len(text))], word) {
			return true
		}
	}
	return false
}

// maxRead is how many bytes of HogQL are read in all, so that finding the uses takes no more than a millisecond or two: unlike a compile, it
// does not wait for a turn.
const maxRead = 64 << 10

// reads reports whether a text must be read. Once the texts exceed maxRead, the query may depend on anything.
func (f *useFinder) reads(text string) bool {
	if !mayUse(text) && (f.named == nil || !computes(text)) {
		return false
	}
	if f.read += len(text); f.read > maxRead {
		f.anything()
		return false
	}
	return true
}

// expression searches a text that may be an expression. A text that does not parse is none.
func (f *useFinder) expression(text string) {
	f.names(text)
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

// text searches a user's query, with its placeholders filled in.
func (f *useFinder) text(q *query.HogQL) {
	if q.Filters != nil {
		for i := range q.Filters.Properties {
			f.filter(&q.Filters.Properties[i])
		}
		if q.Filters.FilterTestAccounts {
			f.testAccounts()
		}
	}
	f.textNames(q)
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
		parsed, _ = bind.Placeholders(parsed, values) // placeholders without a value stay
	}
	v := f.visitor()
	v.WalkQuery(parsed)
}

func (f *useFinder) visitor() *hogql.Visitor {
	return &hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			f.unescaped(e)
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

// constantOf returns the value of a constant, nil for any other expression. open reports that it is a placeholder without a value yet.
func constantOf(e hogql.Expr) (value any, open bool) {
	if c, ok := e.(*hogql.Const); ok {
		return c.Value, false
	}
	_, open = e.(*hogql.Placeholder)
	return nil, open
}
