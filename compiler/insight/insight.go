// Package insight holds what the insight kinds share: ranges of time and their buckets, the conditions of filters and series, breakdowns,
// and helpers that build query trees. Each kind has its own folder. An insight becomes a query over virtual tables, which is compiled like
// any other query; an insight never contains ClickHouse SQL.
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

// World is the environment that an insight is built in: the project's schema and settings, and the current time.
type World struct {
	Database *schema.Database
	// Now is the time that relative dates refer to.
	Now time.Time
	// TestAccounts is the project's condition that excludes test accounts; nil for none.
	TestAccounts *query.Condition
	// Actions are the project's actions; nil for none.
	Actions *query.Actions
	// PathCleaning are the project's rules for cleaning URL paths and the steps of paths, in the order in which they apply.
	PathCleaning []query.PathCleaning
	// DisplayNames are the person properties that serve as a display name; nil for the default ones.
	DisplayNames []string
	// PlainValues asks for breakdown values and labels in the form of PlainValue and PlainLabel.
	PlainValues bool
	// AllValues asks for every value of a trend's breakdown, regardless of its limit.
	AllValues bool
	// Spend is the budget of the compile; nil means no bounds.
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
	// Query is the query to run, over virtual tables, without a limit on its rows.
	Query hogql.Query
	// Shape builds the answer from the rows of the query, each a JSON array. It can be called more than once. It returns a *diag.Error if
	// only the rows reveal a mistake of the author, such as a range with too many buckets.
	Shape func(rows iter.Seq[[]byte]) (*Answer, error)
	// Pieces is the same query cut into pieces of time; nil if the pieces would depend on each other.
	Pieces *Pieces
	// ByClock reports whether the clock decides what is shown, so that the answer may change while the data stay the same.
	ByClock bool
}

// Answer is the answer of an insight (contract: api.md, section 1.5).
type Answer struct {
	// Results is a JSON array or object.
	Results []byte
	// Error says why there are no results, for kinds whose answer has that field; empty otherwise.
	Error string
	// HasMore reports whether values were cut off; nil for kinds without that field.
	HasMore *bool
	// Range is the span of time of the answer, Previous the one it is compared with; nil for none.
	Range, Previous *Span
	// Until is the time after which the answer no longer changes if that is not the end of Range; zero otherwise.
	Until time.Time
	// If the results are rows, Columns are the names of the columns, and Types the ClickHouse types of some of them; nil otherwise.
	Columns []string
	Types   [][2]string
	// More is a JSON object with further members of the answer; nil for none.
	More []byte
}

// Span is a closed interval of time.
type Span struct{ From, To time.Time }

// Template parses HogQL and replaces its {placeholders} with values: expressions, tables, queries or constants. The text is part of the
// program: Template panics if it does not parse.
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

// TemplateExpr is like Template, for one expression.
func TemplateExpr(text string, values map[string]any) hogql.Expr {
	s, ok := Template("select "+text, values).(*hogql.Select)
	if !ok {
		panic("BUG: template of an insight is not an expression: " + text)
	}
	return s.Columns[0]
}
