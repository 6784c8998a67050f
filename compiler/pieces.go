package compiler

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// Piece is a span of time whose rows are computed without those of others.
type Piece = insight.Piece

// Pieces is a query in pieces of time. Its rows are those that the whole query gives, put together from those of its pieces, of which a
// caller can keep what it has computed before.
type Pieces struct {
	// Text tells apart what pieces are made of: under the same schema of a project, whatever types its properties have, pieces of equal texts
	// and spans have equal rows, as long as the data are the same.
	Text string
	// Reads is what the rows of pieces are made of, as in Compiled.
	Reads resolve.Reads
	// Pieces are those of this query, in the order of time.
	Pieces []Piece
	// Compile compiles the query for the rows of some pieces, by their places in Pieces. The first column of each row is the place of its
	// piece; keep the rest.
	Compile func(places []int) (*Compiled, error)
	// Rows puts the rows of all pieces together, each without its first column. It is false where they do not have the answer after all, so that
	// the whole query has to be run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}

// pieces gives the pieces of a query that was analyzed; nil where their rows may depend on more than the events of their spans. A query whose
// pieces would exceed the budget has none, but is no less good.
func (found *analysis) pieces(q query.Node, t tree, env Env) (out *Pieces) {
	var stopped error
	defer func() {
		if stopped != nil {
			out = nil
		}
	}()
	defer budget.Catch(&stopped)
	of, reads, w := t.pieces, found.reads, env.world()
	if t.text != nil {
		if of = bucketedPieces(found.bound, found.limited, w); of == nil {
			return nil
		}
		each, err := resolveWhole(of.Each, env) // without the bounds of time, which may ask for the present
		if err != nil {
			return nil
		}
		reads = each.reads
	}
	if of == nil || reads.Volatile || reads.Beyond || !alone(of.Each) {
		return nil
	}
	reads.Created = of.Created && reads.Persons == 1
	settings, err := json.Marshal([]any{query.ModifiersOf(q), env.Database.WeekStart, w.Zone().String()})
	if err != nil {
		panic(fmt.Errorf("BUG: modifiers that were read cannot be written: %w", err))
	}
	return &Pieces{
		Text: hogql.PrintWithin(of.Each, env.spend) + string(settings) + reads.Types.String(), Reads: reads, Pieces: of.Pieces, Rows: of.Rows,
		Compile: func(places []int) (*Compiled, error) { return compilePieces(of.Query(places), env) },
	}
}

// alone reports whether each row of a query for a piece is made of the events of its span: not if it looks at the rows around it, nor if it gives the name
// timestamp to something else, which is what the bounds of the span would then mean.
func alone(each hogql.Query) bool {
	ok := true
	v := hogql.Visitor{Expr: func(e hogql.Expr) bool {
		if a, named := e.(*hogql.Alias); named {
			ok = ok && a.Name.Text != "timestamp"
		}
		if c, called := e.(*hogql.Call); called {
			f, known := schema.LookupFunction(c.Name)
			ok = ok && c.Over == nil && (!known || !f.Windowed())
		}
		return ok
	}}
	v.WalkQuery(each)
	return ok
}

// compilePieces compiles a query for pieces, within a budget of its own.
func compilePieces(q hogql.Query, env Env) (compiled *Compiled, err error) {
	defer recoverBug(&err)
	env.spend = budget.New(env.Expired)
	found, err := resolveWhole(q, env)
	if err != nil {
		return nil, err
	}
	text, params, err := sql.Print(found.resolved, env.Database, env.spend)
	if err != nil {
		return nil, err
	}
	return found.compiled(tree{query: q}, text, params, env), nil
}
