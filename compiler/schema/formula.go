package schema

import (
	"fmt"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Formula is HogQL that gives the value of a field, over other fields of the same table; in a table of groups it may be over
// the rows of a group instead.
type Formula struct {
	// OfGroup reports whether the formula is over the fields of the table whose rows are grouped (see Grouping).
	OfGroup bool
	needs   string // a physical column, without which there is no such field
	parse   func() hogql.Expr
	rules   *channelInputs // of a channel type, which the project's own rules may decide; nil for any other
}

// The names that formulas have for what a project sets.
const bounceSeconds = "bounce"

// formula returns a formula over the fields of its own table.
func formula(text string) *Formula {
	return &Formula{parse: sync.OnceValue(func() hogql.Expr { return mustParse(text) })}
}

// ofGroup returns a formula over the rows of a group.
func ofGroup(text string) *Formula {
	f := formula(text)
	f.OfGroup = true
	return f
}

// needing says which physical column the formula cannot do without.
func (f *Formula) needing(column string) *Formula {
	f.needs = column
	return f
}

func mustParse(text string) hogql.Expr {
	e, err := hogql.ParseExpr(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: formula %q: %v", text, err))
	}
	return e
}

// Expr is the formula with what the project sets filled in.
func (f *Formula) Expr(db *Database) hogql.Expr {
	e := hogql.RewriteExpr(f.parse(), func(e hogql.Expr) hogql.Expr {
		hole, ok := e.(*hogql.Placeholder)
		if !ok {
			return e
		}
		switch name := hole.X.(*hogql.Field).Chain[0].Text; name {
		case bounceSeconds:
			return &hogql.Const{Value: db.Modifiers.bounceSeconds()}
		default:
			panic("BUG: a formula asks for " + name)
		}
	})
	if f.rules == nil || len(db.Modifiers.Channels) == 0 {
		return e
	}
	return &hogql.Call{Name: "coalesce", Args: []hogql.Expr{f.rules.decide(db.Modifiers.Channels), e}}
}

// Grouping makes the rows of a table out of groups of rows of another table.
type Grouping struct {
	// Table is the table whose rows are grouped, Key its field that the rows of one group share, and Where the HogQL of the
	// rows that count.
	Table, Key string
	where      *Formula
	// Time is the field of Table that says when a row happened, First and Last the fields of the groups that hold the
	// earliest and the latest such time.
	Time, First, Last string
	// MostDays is the longest that a group lasts. A query about some range of time reads no rows that lie further from it.
	MostDays int64
}

// Where is the condition on the rows that count.
func (g *Grouping) Where(db *Database) hogql.Expr { return g.where.Expr(db) }
