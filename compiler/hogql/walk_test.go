package hogql_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

var (
	exprType  = reflect.TypeFor[hogql.Expr]()
	queryType = reflect.TypeFor[hogql.Query]()
	tableType = reflect.TypeFor[hogql.Table]()
)

// everyNode finds the nodes of a tree by reflection on each field of each struct, without any knowledge of the grammar.
func everyNode(v reflect.Value, found map[any]bool) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			everyNode(v.Elem(), found)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if t := v.Type(); t.Implements(exprType) || t.Implements(queryType) || t.Implements(tableType) {
			found[v.Interface()] = true
		}
		everyNode(v.Elem(), found)
	case reflect.Struct:
		for _, field := range v.Fields() {
			everyNode(field, found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			everyNode(v.Index(i), found)
		}
	default: // other types contain no nodes
	}
}

func everyStatement(t *testing.T) map[string]hogql.Query {
	t.Helper()
	out := map[string]hogql.Query{}
	for _, tt := range statements {
		out[tt.name] = mustParse(t, tt.in)
	}
	return out
}

func TestVisitorSeesEveryNode(t *testing.T) {
	for name, q := range everyStatement(t) {
		t.Run(name, func(t *testing.T) {
			want := make(map[any]bool)
			everyNode(reflect.ValueOf(q), want)
			got := make(map[any]bool)
			v := hogql.Visitor{
				Expr:  func(e hogql.Expr) bool { got[e] = true; return true },
				Query: func(q hogql.Query) bool { got[q] = true; return true },
				Table: func(t hogql.Table) bool { got[t] = true; return true },
			}
			v.WalkQuery(q)
			for n := range want {
				// The aliases of ARRAY JOIN and REPLACE are not visited themselves.
				if _, alias := n.(*hogql.Alias); !got[n] && !alias {
					t.Errorf("%T was not visited", n)
				}
			}
			if len(got) > len(want) {
				t.Errorf("%d visits of %d nodes", len(got), len(want))
			}
		})
	}
}

func TestRewriterKeepsWhatDoesNotChange(t *testing.T) {
	for name, q := range everyStatement(t) {
		t.Run(name, func(t *testing.T) {
			r := hogql.Rewriter{
				Expr:  func(e hogql.Expr) hogql.Expr { return e },
				Query: func(q hogql.Query) hogql.Query { return q },
				Table: func(t hogql.Table) hogql.Table { return t },
			}
			if r.RewriteQuery(q) != q {
				t.Error("another query, though nothing was replaced")
			}
		})
	}
}

// TestRewriterReplacesEveryExpr replaces all constants and fields, and checks that none is left and that the given query did not change.
func TestRewriterReplacesEveryExpr(t *testing.T) {
	isLeaf := func(n any) bool {
		switch n.(type) {
		case *hogql.Const, *hogql.Field:
			return true
		}
		return false
	}
	for name, q := range everyStatement(t) {
		t.Run(name, func(t *testing.T) {
			before := hogql.Print(q)
			r := hogql.Rewriter{Expr: func(e hogql.Expr) hogql.Expr {
				if isLeaf(e) {
					return &hogql.Placeholder{X: &hogql.ColumnsMatching{Pattern: "new"}}
				}
				return e
			}}
			rewritten := r.RewriteQuery(q)
			if diff := cmp.Diff(before, hogql.Print(q)); diff != "" {
				t.Errorf("the query that was given has changed (-before +after):\n%s", diff)
			}
			left := make(map[any]bool)
			everyNode(reflect.ValueOf(rewritten), left)
			for n := range left {
				if isLeaf(n) {
					t.Errorf("a %T was left", n)
				}
			}
		})
	}
}

func TestRewriterGoesChildrenFirst(t *testing.T) {
	var order []string
	r := hogql.Rewriter{
		Expr:  func(e hogql.Expr) hogql.Expr { order = append(order, hogql.PrintExpr(e)); return e },
		Query: func(q hogql.Query) hogql.Query { order = append(order, "query"); return q },
		Table: func(t hogql.Table) hogql.Table { order = append(order, "table"); return t },
	}
	r.RewriteQuery(mustParse(t, "with 1 as a select f(b + 2, (select 3)) from t join u on 4 where 5"))
	want := "1; table; table; 4; table; b; 2; b + 2; 3; query; (SELECT 3); f(b + 2, (SELECT 3)); 5; query"
	if diff := cmp.Diff(want, strings.Join(order, "; ")); diff != "" {
		t.Errorf("order of visits (-want +got):\n%s", diff)
	}
}

func TestVisitorKeepsOut(t *testing.T) {
	var seen []string
	hogql.WalkQuery(mustParse(t, "select a + 1, (select b), c"), func(e hogql.Expr) bool {
		seen = append(seen, hogql.PrintExpr(e))
		_, sum := e.(*hogql.Binary)
		return !sum
	})
	if diff := cmp.Diff("a + 1; (SELECT b); b; c", strings.Join(seen, "; ")); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}
}

// TestChildrenLeaveTheDescent shows how a stage sees a node before its children.
func TestChildrenLeaveTheDescent(t *testing.T) {
	var depth int
	var seen []string
	var r hogql.Rewriter
	r.Query = func(q hogql.Query) hogql.Query {
		depth++
		defer func() { depth-- }()
		return r.QueryChildren(q)
	}
	r.Table = r.TableChildren
	r.Expr = func(e hogql.Expr) hogql.Expr {
		if f, ok := e.(*hogql.Field); ok {
			seen = append(seen, strings.Repeat(">", depth)+f.Chain[0].Text)
		}
		return r.ExprChildren(e)
	}
	r.Query(mustParse(t, "select a, (select b from (select c)) from (select d) where e"))
	if diff := cmp.Diff(">>d >a >>>c >>b >e", strings.Join(seen, " ")); diff != "" {
		t.Errorf("fields with the depth of their query (-want +got):\n%s", diff)
	}
}

func TestNilTrees(t *testing.T) {
	var r hogql.Rewriter
	if r.RewriteExpr(nil) != nil || r.RewriteQuery(nil) != nil {
		t.Error("a nil tree became something")
	}
	v := hogql.Visitor{Expr: func(hogql.Expr) bool { t.Error("a visit of nothing"); return true }}
	v.WalkExpr(nil)
	v.WalkQuery(nil)
}

func TestConjuncts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a", "a and b": "a; b", "a and (b and (c or d)) and not e": "a; b; c OR d; NOT e", "a or b and c": "a OR b AND c",
	} {
		e, err := hogql.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range hogql.Conjuncts(e) {
			got = append(got, hogql.PrintExpr(c))
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("Conjuncts(%s) (-want +got):\n%s", text, diff)
		}
	}
	if got := hogql.Conjuncts(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
