package resolved_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// shared are the types of package hogql that a resolved tree uses: none of them contains an expression, a query or a table.
var shared = []string{"Span", "Type", "SetOp", "JoinKind", "JoinStrictness", "GroupMode", "NullsOrder", "BoundKind", "Const"}

// TestHoldsNoNodeOfTheText fails for any field through which an unresolved node could get into the tree.
func TestHoldsNoNodeOfTheText(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "resolved.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := s.X.(*ast.Ident); ok && from.Name == "hogql" {
			seen++
			if !slices.Contains(shared, s.Sel.Name) {
				t.Errorf("a resolved tree holds a hogql.%s", s.Sel.Name)
			}
		}
		return true
	})
	if seen == 0 {
		t.Error("nothing of package hogql found: the test shows nothing")
	}
}
