package bind

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Filters are the request's filters, for {filters} (contract: hogql.md, section 13).
type Filters struct {
	DateFrom, DateTo string // in the forms of api.md, section 2.2; empty for no bound
	Properties       []filter.Property
	// TestAccounts are the project's test account filters, if the request asks for them.
	TestAccounts []Placed
}

// Placed is a property filter with its place in the settings or the request.
type Placed struct {
	filter.Property
	At string
}

// filterTime returns the column that date bounds apply to, for the table of the SELECT.
func filterTime(table string) (string, bool) {
	switch table {
	case "events", "logs", "traces":
		return "timestamp", true
	case "sessions":
		return "$start_timestamp", true
	case "groups":
		return "created_at", true
	}
	return "", false
}

// filters returns the replacement for {filters…}.
func (b *binder) filters(p *hogql.Placeholder, chain []string) hogql.Expr {
	switch text := strings.Join(chain, "."); text {
	case "filters":
		return b.condition(p)
	case "filters.dateRange.from", "filters.dateRange.to":
		bound, ok := b.bound(p.Pos, chain[2])
		if ok {
			return &hogql.Const{Pos: p.Pos, Value: bound}
		}
		b.mistake(p.Pos, "The `{%s}` placeholder must be a side of a comparison such as `>=`, and not inside a function or BETWEEN, when the request gives it no date", text)
	default:
		near := schema.Nearest(text, slices.Values(filterChains))
		b.mistakes.Add(&diag.Error{
			Code: diag.QueryError, Span: p.X.At(), Hint: near, Fix: near,
			Detail: "Unsupported filters placeholder `{" + text + "}`: there are {filters}, {filters.dateRange.from} and {filters.dateRange.to}",
		})
	}
	return p
}

// filterChains are the valid forms of {filters…}.
var filterChains = []string{"filters", "filters.dateRange.from", "filters.dateRange.to"}

// unbounded reports whether an expression is a date bound that the request leaves open, or is computed from one by operators: the comparison that
// contains it is then true.
func (b *binder) unbounded(e hogql.Expr) bool {
	if op, ok := e.(*hogql.Binary); ok {
		return b.unbounded(op.Left) || b.unbounded(op.Right)
	}
	if op, ok := e.(*hogql.Unary); ok {
		return b.unbounded(op.X)
	}
	if op, ok := e.(*hogql.Cast); ok {
		return b.unbounded(op.X)
	}
	p, ok := e.(*hogql.Placeholder)
	if !ok || b.given("filters") {
		return false
	}
	chain := names(p.X)
	if len(chain) != 3 || chain[0] != "filters" || chain[1] != "dateRange" {
		return false
	}
	f := b.values.Filters
	switch chain[2] {
	case "from":
		return f == nil || f.DateFrom == "" || f.DateFrom == "all"
	case "to":
		return f == nil || f.DateTo == ""
	}
	return false
}

// bound returns one end of the date range. A text that is not a date is a mistake.
func (b *binder) bound(at hogql.Span, end string) (time.Time, bool) {
	f := b.values.Filters
	if f == nil {
		return time.Time{}, false
	}
	text, attr := f.DateFrom, "filters.dateRange.date_from"
	if end == "to" {
		text, attr = f.DateTo, "filters.dateRange.date_to"
	} else if text == "all" {
		return time.Time{}, false
	}
	if text == "" {
		return time.Time{}, false
	}
	t, ok := filter.Date(text, b.values.Now, b.values.Location, b.values.WeekStart)
	if !ok {
		b.mistakes.Add(&diag.Error{
			Code: diag.QueryError, Span: at, Attr: attr,
			Detail: "The date '" + diag.Shown(text) + "' is neither ISO 8601 nor relative, such as -7d",
		})
	}
	return t, true
}

// condition returns the replacement for {filters}: the property filters and date bounds on the filterable table of the SELECT. Filters on sessions
// apply to its table of sessions, if it has one.
func (b *binder) condition(p *hogql.Placeholder) hogql.Expr {
	table, sessions := b.filterable()
	if table.name == "" {
		b.mistake(p.Pos, "Cannot use 'filters' placeholder in a SELECT clause that does not select from the events, sessions, logs, traces or groups table.")
		return p
	}
	var all []hogql.Expr
	add := func(property filter.Property, attr string) {
		of := table
		if property.Type == "session" && sessions.name != "" {
			of = sessions
		}
		all = append(all, b.property(p.Pos, of, attr, property))
	}
	if f := b.values.Filters; f != nil {
		for i, property := range f.Properties {
			add(property, "filters.properties."+strconv.Itoa(i))
		}
		for _, property := range f.TestAccounts {
			add(property.Property, property.At)
		}
	}
	column, _ := filterTime(table.name)
	compare := func(op hogql.CompareOp, end string) {
		if t, ok := b.bound(p.Pos, end); ok {
			all = append(all, &hogql.Compare{
				Pos: p.Pos, Op: op, Left: table.field(p.Pos, column), Right: &hogql.Const{Pos: p.Pos, Value: t},
			})
		}
	}
	compare(hogql.Less, "to")
	compare(hogql.GreaterOrEquals, "from")
	switch len(all) {
	case 0:
		return &hogql.Const{Pos: p.Pos, Value: true}
	case 1:
		return all[0]
	}
	return &hogql.Logic{Pos: p.Pos, Args: all}
}

// filtered is the table that {filters} applies to: its name, and its alias in the SELECT.
type filtered struct{ name, alias string }

// field returns a column or property of the table.
func (t filtered) field(at hogql.Span, chain ...string) *hogql.Field {
	f := &hogql.Field{Pos: at, Chain: make([]hogql.Name, 0, len(chain)+1)}
	for _, name := range slices.Concat([]string{t.alias}, chain) {
		f.Chain = append(f.Chain, hogql.Name{Pos: at, Text: name, Quoted: true})
	}
	return f
}

// filterable finds the table of the innermost SELECT that {filters} applies to: the first one that it can apply to, but events rather than sessions.
// It also finds the first table of sessions. A table that is not there has no name.
func (b *binder) filterable() (table, sessions filtered) {
	if len(b.selects) == 0 {
		return table, sessions
	}
	eachFilterable(b.selects[len(b.selects)-1].From, func(t filtered) {
		if table.name == "" || table.name == "sessions" && t.name == "events" {
			table = t
		}
		if sessions.name == "" && t.name == "sessions" {
			sessions = t
		}
	})
	return table, sessions
}

// eachFilterable calls use for the tables that {filters} can apply to.
func eachFilterable(t hogql.Table, use func(filtered)) {
	switch t := t.(type) {
	case *hogql.Join:
		eachFilterable(t.Left, use)
		eachFilterable(t.Right, use)
	case *hogql.TableName:
		name := t.Chain[len(t.Chain)-1].Text
		if _, ok := filterTime(name); !ok {
			return
		}
		if t.Alias.Text != "" {
			use(filtered{name, t.Alias.Text})
			return
		}
		use(filtered{name, name})
	case *hogql.TableFunc, *hogql.Derived, *hogql.TablePlaceholder, nil:
	}
}

// property returns the condition of one property filter in {filters} on a table.
func (b *binder) property(at hogql.Span, table filtered, attr string, f filter.Property) hogql.Expr {
	s := filter.Subject{
		Table: table.alias, Types: b.values.Types, Cohorts: b.values.Cohorts, Now: b.values.Now, Location: b.values.Location,
		WeekStart: b.values.WeekStart, Clean: b.values.Clean, Spend: b.values.Spend, At: at, Attr: attr,
	}
	if table.name != "events" {
		s.Rows = table.name
	}
	e, err := filter.Condition(f, s)
	if err == nil {
		return e
	}
	if mistake, ok := errors.AsType[*diag.Error](err); ok {
		b.mistakes.Add(mistake)
	}
	return &hogql.Const{Pos: at, Value: true}
}
