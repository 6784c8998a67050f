package hogql_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// grower builds random trees from the nodes that the parser makes. room is how many expressions with children it may still make.
type grower struct {
	rnd  *rand.Rand
	room int
}

func (g *grower) oneOf(texts ...string) string { return texts[g.rnd.IntN(len(texts))] }

func (g *grower) name() hogql.Name {
	return hogql.Name{Text: g.oneOf("a", "b", "x y", "from", "left", "interval", "cohort", "date", "f", "both", "`", `"\`, "1", "é", "null", "inf")}
}

func (g *grower) chain() []hogql.Name {
	chain := []hogql.Name{g.name()}
	for range g.rnd.IntN(3) {
		if g.rnd.IntN(3) == 0 {
			chain = append(chain, hogql.Name{Text: g.oneOf("0", "1", "20"), Index: true})
			continue
		}
		chain = append(chain, g.name())
	}
	return chain
}

func (g *grower) value() any {
	values := []any{
		nil, true, false, int64(0), int64(17), int64(-5), uint64(1) << 63, 0.5, -1e300, 1e21, 3.0, "", "it's", `\`, "\n\x00é☃",
		"\xff", "{", "%",
	}
	return values[g.rnd.IntN(len(values))]
}

func (g *grower) exprs(least, depth int) []hogql.Expr {
	var out []hogql.Expr
	for range least + g.rnd.IntN(3) {
		out = append(out, g.expr(depth))
	}
	return out
}

// maybe returns an expression or nil.
func (g *grower) maybe(depth int) hogql.Expr {
	if g.rnd.IntN(2) == 0 {
		return nil
	}
	return g.expr(depth)
}

func (g *grower) alias(depth int) *hogql.Alias {
	return &hogql.Alias{X: g.expr(depth), Name: g.aliasName()}
}

func (g *grower) aliasName() hogql.Name {
	return hogql.Name{Text: g.oneOf("a", "x y", "select", "end")}
}

// expr returns an expression that is at most depth nodes deep.
func (g *grower) expr(depth int) hogql.Expr {
	if g.room--; depth <= 0 || g.room < 0 {
		switch g.rnd.IntN(4) {
		case 0:
			return &hogql.Const{Value: g.value()}
		case 1:
			return &hogql.Star{Table: g.chain(), Columns: true, Exclude: [][]hogql.Name{{g.name()}}}
		default:
			return &hogql.Field{Chain: g.chain()}
		}
	}
	depth--
	switch g.rnd.IntN(20) {
	case 0:
		return g.call(depth)
	case 1:
		return &hogql.Unary{Op: hogql.UnaryOp(g.rnd.IntN(2)), X: g.expr(depth)}
	case 2:
		return &hogql.Binary{Op: hogql.BinaryOp(g.rnd.IntN(int(hogql.Modulo) + 1)), Left: g.expr(depth), Right: g.expr(depth)}
	case 3:
		return g.compare(depth)
	case 4:
		return &hogql.Logic{Or: g.rnd.IntN(2) == 0, Args: g.exprs(2, depth)}
	case 5:
		return &hogql.Between{X: g.expr(depth), Low: g.expr(depth), High: g.expr(depth), Not: g.rnd.IntN(2) == 0}
	case 6:
		return &hogql.Case{X: g.maybe(depth), Whens: []hogql.When{{If: g.expr(depth), Then: g.expr(depth)}}, Else: g.maybe(depth)}
	case 7:
		return &hogql.Cast{X: g.expr(depth), Type: g.oneOf("int", "double precision", "decimal(10, 2)", "tuple(a int, b nullable(text))")}
	case 8:
		return &hogql.Tuple{Items: g.exprs(1, depth)}
	case 9:
		return &hogql.Array{Items: g.exprs(0, depth)}
	case 10:
		return &hogql.Dict{Keys: []hogql.Expr{g.expr(depth)}, Values: []hogql.Expr{g.expr(depth)}}
	case 11:
		var params []string
		for range g.rnd.IntN(3) {
			params = append(params, g.name().Text)
		}
		return &hogql.Lambda{Params: params, Body: g.expr(depth)}
	case 12:
		return &hogql.Index{X: g.expr(depth), Index: g.expr(depth), NullSafe: g.rnd.IntN(2) == 0}
	case 13:
		return &hogql.Slice{X: g.expr(depth), From: g.maybe(depth), To: g.maybe(depth)}
	case 14:
		return &hogql.Element{X: g.expr(depth), N: g.rnd.IntN(12), NullSafe: g.rnd.IntN(2) == 0}
	case 15:
		return &hogql.Member{X: g.expr(depth), Name: g.name(), NullSafe: g.rnd.IntN(2) == 0}
	case 16:
		return &hogql.Interval{N: g.expr(depth), Unit: g.oneOf("second", "day", "quarter")}
	case 17:
		return &hogql.Placeholder{X: g.expr(depth)}
	case 18:
		return &hogql.Subquery{Query: g.query(depth)}
	default:
		return g.alias(depth)
	}
}

func (g *grower) call(depth int) *hogql.Call {
	c := &hogql.Call{
		Name:     g.oneOf("f", "count", "and", "not", "interval", "trim", "columns", "my f", "if", "substring"),
		Args:     g.exprs(1, depth),
		Distinct: g.rnd.IntN(4) == 0,
	}
	switch g.rnd.IntN(4) {
	case 0:
		c.Params = g.exprs(1, depth)
	case 1:
		c.Filter = g.expr(depth)
		c.OrderBy = []*hogql.Order{{X: g.expr(depth), Desc: true}}
	case 2:
		c.Over = &hogql.Window{PartitionBy: g.exprs(1, depth), Frame: &hogql.Frame{Start: hogql.Bound{Kind: hogql.Preceding, N: g.expr(depth)}}}
	}
	return c
}

func (g *grower) compare(depth int) *hogql.Compare {
	c := &hogql.Compare{Op: hogql.CompareOp(g.rnd.IntN(int(hogql.NotIMatch) + 1)), Left: g.expr(depth), Right: g.expr(depth)}
	if _, star := c.Right.(*hogql.Star); star && (c.Op == hogql.InCohort || c.Op == hogql.NotInCohort) {
		c.Op = hogql.Equals // COHORT is a column's name before a star
	}
	return c
}

// query returns a query whose expressions are at most depth nodes deep.
func (g *grower) query(depth int) hogql.Query {
	if depth > 0 && g.room > 0 && g.rnd.IntN(3) == 0 {
		s := &hogql.SetQuery{Members: []hogql.Query{g.query(depth - 1), g.query(depth - 1)}, Ops: []hogql.SetOp{hogql.SetOp(g.rnd.IntN(5))}}
		if g.rnd.IntN(2) == 0 {
			s.Limit = &hogql.Limit{N: g.expr(depth - 1)}
		}
		if g.rnd.IntN(4) == 0 {
			s.With = []*hogql.CTE{{Name: g.aliasName(), X: g.expr(depth - 1)}}
		}
		return s
	}
	s := &hogql.Select{Columns: g.exprs(1, depth), Where: g.maybe(depth)}
	if depth <= 0 || g.room < 0 {
		return s
	}
	if g.rnd.IntN(2) == 0 {
		s.With = []*hogql.CTE{{Name: g.aliasName(), X: g.expr(depth - 1)}, {Name: g.aliasName(), Query: g.query(depth - 1)}}
	}
	if g.rnd.IntN(2) == 0 {
		s.From = &hogql.Join{
			Kind:  hogql.LeftJoin,
			Left:  &hogql.TableName{Chain: g.chain()[:1], Alias: g.aliasName()},
			Right: &hogql.Derived{Query: g.query(depth - 1), Alias: g.aliasName()},
			On:    g.expr(depth - 1),
		}
		if g.rnd.IntN(2) == 0 {
			s.From = &hogql.Join{Kind: hogql.CrossJoin, Left: &hogql.TableName{Chain: g.chain()[:1]}, Right: s.From}
		}
		s.ArrayJoin = &hogql.ArrayJoin{Arrays: []*hogql.Alias{g.alias(depth)}}
	}
	if g.rnd.IntN(2) == 0 {
		s.GroupBy = &hogql.GroupBy{Keys: g.exprs(1, depth)}
		s.OrderBy = []*hogql.Order{{X: g.expr(depth), Nulls: hogql.NullsLast, Fill: &hogql.Fill{From: g.maybe(depth), Step: g.maybe(depth)}}}
		s.LimitBy = &hogql.LimitBy{N: g.expr(depth), Keys: g.exprs(1, depth)}
		s.Limit = &hogql.Limit{N: g.expr(depth), Offset: g.maybe(depth)}
	}
	return s
}

// checkTree fails unless the text of a random tree parses to the same tree.
func checkTree(t *testing.T, seed uint64) {
	t.Helper()
	g := grower{rnd: rand.New(rand.NewPCG(seed, seed>>32)), room: 30}
	q := g.query(1 + g.rnd.IntN(6))
	text := hogql.Print(q)
	again, err := hogql.Parse(text)
	if err != nil {
		t.Fatalf("seed %d: %v in the text of a tree:\n%s", seed, err, text)
	}
	if diff := cmp.Diff(q, again, sameTree); diff != "" {
		t.Fatalf("seed %d: %q is another tree (-printed +parsed):\n%s", seed, text, diff)
	}
}

func TestPrintOfRandomTrees(t *testing.T) {
	for seed := range uint64(400) {
		checkTree(t, seed)
	}
}

func FuzzPrintTree(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkTree)
}
