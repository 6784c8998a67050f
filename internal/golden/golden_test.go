package golden_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/golden"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var played []string
	golden.Run(t, "testdata/*/*.txtar", []string{"in"}, []string{"out", "empty"}, func(t *testing.T, in map[string]string) map[string]string {
		t.Helper()
		played = append(played, t.Name())
		return map[string]string{"out": strings.ToUpper(in["in"]), "empty": ""}
	})
	if len(played) != 1 || played[0] != "TestRun/words/upper" {
		t.Errorf("played %q, want TestRun/words/upper alone", played)
	}
}
