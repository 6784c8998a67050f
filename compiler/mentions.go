package compiler

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// Mention is the name of an event or property that a query looks for. A name that does not occur in the project is usually a mistake, which
// would otherwise only show as an answer without rows.
type Mention struct {
	Name string
	// Key identifies the property; zero for an event.
	Key schema.PropertyKey
	// Storage is where the physical table stores the property.
	Storage schema.Storage
	At      diag.Span // in the text of a HogQL query
	Attr    string    // the dotted field in any other kind of query
}

// IsEvent reports whether the mention is the name of an event.
func (m *Mention) IsEvent() bool { return m.Key.Scope == schema.NoProperties }

// Mentions lists the names that a query looks for in the project's data, each once. It leaves out names that are computed or that a subquery
// may define. A query that does not compile mentions nothing.
func Mentions(q query.Node, env Env) (list []Mention, err error) {
	defer RecoverBug(&err)
	env.spend = budget.New(env.Expired)
	if text, ok := q.(*query.HogQL); ok {
		list = mentionsOfText(text, env)
	} else {
		w := nodeWalker{db: env.Database}
		w.value(reflect.ValueOf(q), 0)
		list = w.found
	}
	seen := map[schema.PropertyKey]bool{}
	return slices.DeleteFunc(list, func(m Mention) bool {
		key := m.Key
		key.Name = m.Name
		known := seen[key] || m.Name == ""
		seen[key] = true
		return known
	}), nil
}

func mentionsOfText(q *query.HogQL, env Env) []Mention {
	env.Database = modified(env.Database, q.Modifiers)
	t, err := buildHogQL(q, env)
	if err != nil {
		return nil
	}
	found, err := analyze(t, env, true)
	if err != nil {
		return nil
	}
	var list []Mention
	for _, use := range found.uses {
		list = append(list, Mention{Name: use.Key.Name, Key: use.Key, Storage: use.Storage, At: use.At})
	}
	return append(list, eventNames(found.bound)...)
}

// eventNames lists the constants to which SELECTs from events alone compare the field event.
func eventNames(q hogql.Query) (list []Mention) {
	var selects []*hogql.Select
	shadowed := false // the name event or events means something else
	v := hogql.Visitor{
		Query: func(q hogql.Query) bool {
			if sel, ok := q.(*hogql.Select); ok {
				shadowed = shadowed || defines(sel.With, "events") || defines(sel.With, "event")
				if from, ok := sel.From.(*hogql.TableName); ok && schema.Root(chainText(from.Chain)) == "events" && len(from.Columns) == 0 {
					selects = append(selects, sel)
				}
			}
			return true
		},
		Expr: func(e hogql.Expr) bool {
			if alias, ok := e.(*hogql.Alias); ok {
				shadowed = shadowed || alias.Name.Text == "event"
			}
			return true
		},
	}
	v.WalkQuery(q)
	if shadowed {
		return nil
	}
	for _, sel := range selects {
		own := hogql.Visitor{
			Query: func(q hogql.Query) bool { return q == hogql.Query(sel) },
			Expr: func(e hogql.Expr) bool {
				if compare, ok := e.(*hogql.Compare); ok && (compare.Op == hogql.Equals || compare.Op == hogql.In) {
					list = append(list, comparedNames(compare)...)
				}
				return true
			},
		}
		own.WalkQuery(sel)
	}
	return list
}

// comparedNames returns the texts to which a comparison compares the field event.
func comparedNames(c *hogql.Compare) (list []Mention) {
	field, other := c.Left, c.Right
	if _, ok := field.(*hogql.Const); ok && c.Op == hogql.Equals {
		field, other = other, field
	}
	f, ok := field.(*hogql.Field)
	if !ok || len(f.Chain) > 2 || f.Chain[len(f.Chain)-1].Text != "event" {
		return nil
	}
	items := []hogql.Expr{other}
	if tuple, ok := other.(*hogql.Tuple); ok {
		items = tuple.Items
	} else if array, ok := other.(*hogql.Array); ok {
		items = array.Items
	}
	for _, item := range items {
		constant, ok := item.(*hogql.Const)
		if !ok {
			continue
		}
		values, ok := constant.Value.([]any)
		if !ok {
			values = []any{constant.Value}
		}
		for _, value := range values {
			if name, ok := value.(string); ok {
				list = append(list, Mention{Name: name, At: constant.Pos})
			}
		}
	}
	return list
}

// nodeWalker collects names from queries that come as JSON.
type nodeWalker struct {
	db    *schema.Database
	found []Mention
}

// maxNodeDepth exceeds the depth of any node.
const maxNodeDepth = 40

func (w *nodeWalker) value(v reflect.Value, depth int) {
	if depth > maxNodeDepth {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.value(v.Elem(), depth+1)
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.value(v.Index(i), depth+1)
		}
	case reflect.Struct:
		if n, ok := reflect.TypeAssert[query.Namer](v); ok {
			for _, named := range n.Names() {
				w.note(named)
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.value(v.Field(i), depth+1)
			}
		}
	default: // holds no names
	}
}

// note records a name that a part of a query has in its own fields.
func (w *nodeWalker) note(n query.Named) {
	if n.Type == "" {
		w.found = append(w.found, Mention{Name: n.Name, Attr: n.Attr})
		return
	}
	of := propertiesOf[n.Type]
	table, ok := w.db.Table(of.table)
	if !ok || n.Name == "" || n.Type == "event" && n.Name == filter.ElementsChain {
		return
	}
	field, ok := w.db.Field(table, "properties")
	if !ok {
		return
	}
	key := schema.PropertyKey{Scope: of.scope, Name: n.Name}
	if of.scope == schema.GroupProperty {
		key.Group = n.Group
	}
	w.found = append(w.found, Mention{Name: n.Name, Key: key, Storage: w.db.Storage(table, field, n.Name), Attr: n.Attr})
}

// propertiesOf maps filter types to the stored properties they are about and the table whose field properties holds them.
var propertiesOf = map[string]struct {
	scope schema.PropertyScope
	table string
}{
	"event": {schema.EventProperty, "events"}, "person": {schema.PersonProperty, "raw_persons"}, "group": {schema.GroupProperty, "raw_groups"},
}

// Existence returns the query that finds out which of the mentioned names exist: one row per existing event name. For a property it returns a row
// if anything has it.
func Existence(mentions []Mention) *query.HogQL {
	first := mentions[0]
	for _, of := range propertiesOf {
		if of.scope != first.Key.Scope {
			continue
		}
		text := "select 1 from " + of.table + " where properties[{name}] is not null"
		if of.scope == schema.GroupProperty {
			text += fmt.Sprintf(" and index = %d", first.Key.Group)
		}
		return &query.HogQL{Query: text + " limit 1", Values: map[string]any{"name": first.Name}}
	}
	names := make([]any, len(mentions))
	for i := range mentions {
		names[i] = mentions[i].Name
	}
	return &query.HogQL{
		Query: fmt.Sprintf("select distinct event from events where event in {names} limit %d", len(names)), Values: map[string]any{"names": names},
	}
}

// Unseen warns of a name that nothing in the project has. among lists names that exist.
func Unseen(m *Mention, text string, among []string) Warning {
	what := "No event named '%s' has been seen in this project."
	switch m.Key.Scope {
	case schema.EventProperty:
		what = "No event of this project has the property '%s'."
	case schema.PersonProperty:
		what = "No person of this project has the property '%s'."
	case schema.GroupProperty:
		what = "No group of this type has the property '%s'."
	case schema.NoProperties:
	}
	e := &diag.Error{Detail: fmt.Sprintf(what, shorten.Cut(m.Name, 200)), Span: m.At, Hint: schema.Nearest(m.Name, slices.Values(among))}
	if e.Hint != "" {
		e.Detail += fmt.Sprintf(" Did you mean '%s'?", e.Hint)
	}
	return warning(e, text, m.Attr)
}

// Warning is a remark about a query that runs all the same. Places are as in Notice; Attr is the dotted field in a query that is not text, nil
// for text.
type Warning struct {
	Notice
	Attr *string `json:"attr"`
}

func warning(e *diag.Error, text, attr string) Warning {
	out := Warning{Notice: notices(text, diag.Errors{e})[0]}
	switch {
	case attr == "":
		return out
	case e.Hint != "":
		out.Fix = &e.Hint
	}
	out.Attr = &attr
	return out
}

// Lowered warns of a LIMIT above the maximum.
func Lowered(q query.Node, env Env) (list []Warning) {
	most := env.most()
	if limited, ok := q.(interface{ Rows() (int, string) }); ok {
		if limit, field := limited.Rows(); limit > most {
			e := &diag.Error{Detail: fmt.Sprintf("A query returns at most %d rows: the limit was lowered to that", most), Hint: strconv.Itoa(most)}
			list = append(list, warning(e, "", field))
		}
	}
	text, ok := q.(*query.HogQL)
	if !ok {
		return list
	}
	parsed, err := hogql.Parse(text.Query)
	if err != nil {
		return nil
	}
	var found diag.List
	warnLimit(&found, parsed, most)
	for _, e := range Mistakes(found.Err()) {
		e.Detail += ": the limit was lowered to that"
		list = append(list, warning(e, text.Query, ""))
	}
	return list
}

// Reversed warns of a time range that ends before it begins. It does not know about insights; for those see Answer.Range.
func Reversed(q query.Node, env Env) []Warning {
	var from, to, attr string
	if ranged, ok := q.(interface {
		Between() (from, to, field string)
	}); ok {
		from, to, attr = ranged.Between()
	}
	if text, ok := q.(*query.HogQL); ok && text.Filters != nil {
		from, to, attr = text.Filters.DateFrom, text.Filters.DateTo, "filters.dateRange.date_to"
	}
	if from == "" || to == "" {
		return nil
	}
	zone := cmp.Or(env.Database.Location, time.UTC)
	begin, ok := filter.Date(from, env.Now, zone, env.Database.WeekStart)
	end, known := filter.Date(to, env.Now, zone, env.Database.WeekStart)
	if !ok || !known || !end.Before(begin) {
		return nil
	}
	return []Warning{EndsBeforeItBegins(attr)}
}

// EndsBeforeItBegins warns of an empty range of time; attr is the dotted field of its end.
func EndsBeforeItBegins(attr string) Warning {
	return warning(&diag.Error{Detail: "The range of time ends before it begins, so there is nothing in it"}, "", attr)
}
