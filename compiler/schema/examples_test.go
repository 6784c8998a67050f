package schema_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestExamples compares testdata/examples.txt with the table: it has one valid call of each function, in table order. The end-to-end tests run them all
// on the engine, so that an entry with a wrong name or count cannot go unnoticed.
func TestExamples(t *testing.T) {
	file, err := os.Open("testdata/examples.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := make(map[string]bool)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, text, ok := strings.Cut(lines.Text(), "\t")
		if !ok || seen[name] {
			t.Errorf("bad or second line: %q", lines.Text())
			continue
		}
		seen[name] = true
		t.Run(name, func(t *testing.T) { checkExample(t, name, text) })
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for f := range schema.Functions() {
		if !seen[f.Name] {
			t.Errorf("%s has no example", f.Name)
		}
	}
}

func checkExample(t *testing.T, name, text string) {
	t.Helper()
	if f := lookup(t, name); f.Name != name {
		t.Errorf("the name is written %s", f.Name)
	}
	e, err := hogql.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if not, ok := e.(*hogql.Unary); ok && not.Op == hogql.Not {
			found = found || name == "not" // there is no other way to call it
		}
		call, ok := e.(*hogql.Call)
		if !ok {
			return true
		}
		found = found || call.Name == name
		f := lookup(t, call.Name)
		if wrong := f.CheckArity(len(call.Args), len(call.Params)); wrong != "" {
			t.Error(wrong)
		}
		if f.WindowOnly && call.Over == nil {
			t.Errorf("%s without OVER", call.Name)
		}
		return true
	})
	if !found {
		t.Errorf("%s does not call %s", text, name)
	}
}
