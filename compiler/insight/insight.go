// Package insight holds what the insight kinds have in common: ranges of time and their buckets, conditions of
// filters and series, breakdowns, and the trees that these are built as. Its folders are the kinds. An insight becomes a
// query over virtual tables, which goes the way of any other query; it never holds ClickHouse's own SQL.
//
//	node ─▶ [insight/<kind>: build] ─▶ tree ─▶ resolve ─▶ sql        rows ─▶ [insight/<kind>: shape] ─▶ results
package insight

import (
	"iter"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// World is what an insight is built for.
type World struct {
	Database *schema.Database
	// Now is the time of relative dates.
	Now time.Time
	// TestAccounts is the condition of the project that keeps test accounts out; nil for none.
	TestAccounts *query.Condition
	// Actions are those of the project; nil for none.
	Actions *query.Actions
	// PathCleaning are the project's rules for the names of steps of paths, in the order in which they are applied.
	PathCleaning []query.PathCleaning
	// DisplayNames are the properties that name a person; nil for the usual ones.
	DisplayNames []string
	// PlainValues asks for breakdown values and labels in the form of PlainValue and PlainLabel.
	PlainValues bool
	// AllValues asks for every value of the breakdowns of trends, whatever their limit is.
	AllValues bool
	// Spend is the budget of the compile; nil bounds nothing.
	Spend *budget.Budget
}

// Zone is the project's time zone.
func (w *World) Zone() *time.Location {
	if w.Database.Location == nil {
		return time.UTC
	}
	return w.Database.Location
}

// Built is an insight that is ready to be compiled and run.
type Built struct {
	// Query is what is asked, over virtual tables, without a limit on its rows.
	Query hogql.Query
	// Shape makes the answer of the query's rows, each a JSON array. It can be called again. Its error is a *diag.Error
	// when only the rows show a mistake of the author, such as a range with too many buckets.
	Shape func(rows iter.Seq[[]byte]) (*Answer, error)
	// Pieces are the same in pieces of time; nil where these depend on each other.
	Pieces *Pieces
}

// Answer is what an insight answers (contract: api.md, section 1.5).
type Answer struct {
	// Results is JSON: an array, or an object.
	Results []byte
	// Error is why there are no results, where the answer says so; empty for no reason.
	Error string
	// HasMore reports whether values were cut off; nil for kinds without that field.
	HasMore *bool
	// Range is the span of time that was looked at, Previous the one it is compared with; nil for none.
	Range, Previous *Span
	// Columns are the names of the columns, and Types the ClickHouse types of some of them, where the results are rows; nil otherwise.
	Columns []string
	Types   [][2]string
	// More is a JSON object of further members of the answer; nil for none.
	More []byte
}

// Span is a closed interval of time.
type Span struct{ From, To time.Time }

// Template reads HogQL and puts values in place of its {placeholders}: expressions, tables, queries or constants. The
// text is part of the program; one that does not parse is a bug.
func Template(text string, values map[string]any) hogql.Query {
	q, err := hogql.Parse(text)
	if err == nil {
		q, err = bind.Placeholders(q, bind.Values{Values: values})
	}
	if err != nil {
		panic("BUG: template of an insight: " + err.Error())
	}
	return q
}

// TemplateExpr is Template for one expression.
func TemplateExpr(text string, values map[string]any) hogql.Expr {
	s, ok := Template("select "+text, values).(*hogql.Select)
	if !ok {
		panic("BUG: template of an insight is not an expression: " + text)
	}
	return s.Columns[0]
}
