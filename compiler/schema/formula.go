package schema

import (
	"fmt"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Formula is HogQL that computes a field from other fields of the same table or, in a table of groups, from the rows of a group.
type Formula struct {
	// OfGroup reports whether the formula uses the fields of the table whose rows are grouped (see Grouping).
	OfGroup bool
	needs   string // a physical column without which the field does not exist
	parse   func() hogql.Expr
	rules   *channelInputs // of a channel type, which the project's own rules may override; nil for any other
}

// The names in formulas for project settings.
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

// needing sets the physical column that the formula requires.
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

// Expr returns the formula with the project's settings filled in.
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

// Grouping builds the rows of a table from groups of rows of another table.
type Grouping struct {
	// Table is the table whose rows are grouped, Key is its field that the rows of a group share, and Where is the HogQL condition on the rows
	// that count.
	Table, Key string
	where      *Formula
	// Time is the field of Table with the time of a row. First and Last are the fields of the groups with the earliest and latest such time.
	Time, First, Last string
	// MostDays is the longest that a group lasts. A query about a time range reads no rows further away than that.
	MostDays int64
}

// Where returns the condition on the rows that count.
func (g *Grouping) Where(db *Database) hogql.Expr { return g.where.Expr(db) }
