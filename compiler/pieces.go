package compiler

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// Piece is a span of time whose rows are computed independently of others.
type Piece = insight.Piece

// Pieces is a query cut into pieces of time. The rows of the pieces, put together, are the rows of the whole query, so a caller can keep rows
// of pieces that it computed before.
type Pieces struct {
	// Text identifies how pieces are computed: with the same project schema, pieces of equal text and span have equal rows while the data stay the
	// same, whatever types the properties have.
	Text string
	// Reads is the data that the rows of pieces depend on, as in Compiled.
	Reads schema.Reads
	// Pieces are the pieces of this query, in order of time.
	Pieces []Piece
	// Compile compiles the query for the rows of some pieces, given by their index in Pieces. The first column of each row is the index of its
	// piece; callers keep the rest.
	Compile func(places []int) (*Compiled, error)
	// Rows puts together the rows of all pieces, each without its first column. It returns false if they do not contain the answer after all, so
	// that the whole query must be run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}

// pieces returns the pieces of an analyzed query; nil if their rows may depend on more than the events in their spans, or if they would exceed
// the budget, which is no mistake in the query.
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
		each, err := resolveWhole(of.Each, env) // without the time bounds, which may use the current time
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

// alone reports whether each row of a query for a piece depends only on the events in its span: the query does not look at neighboring rows, and
// does not give the name timestamp to something else, which the bounds of the span would then refer to.
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

// compilePieces compiles a query for pieces, within its own budget.
func compilePieces(q hogql.Query, env Env) (compiled *Compiled, err error) {
	defer RecoverBug(&err)
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
