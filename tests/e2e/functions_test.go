package e2e_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestEveryFunctionRuns runs each HogQL function once with valid arguments, so that a name unknown to ClickHouse cannot go unnoticed.
func TestEveryFunctionRuns(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(root, "compiler", "schema", "testdata", "examples.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := newProject(t)
	lines := bufio.NewScanner(file)
	seen := 0
	for lines.Scan() {
		name, expression, ok := strings.Cut(lines.Text(), "\t")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		seen++
		answer := c.HogQL(t, "select "+expression+" from numbers(3)")
		if answer.Status != http.StatusOK {
			t.Errorf("%s: select %s: %d %s", name, expression, answer.Status, answer.Raw)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if seen < 600 {
		t.Errorf("only %d examples are there", seen)
	}
}
