package compiler_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The limits on the cost of any compile: bytes allocated in all, and checks of the clock, one per about a millisecond of work.
const (
	maxAllocated = 128 << 20
	maxLooks     = 500
)

// hostileQuery is one of the files in testdata/hostile: short queries that expand to huge ones. The first line of each says what it attacks.
type hostileQuery struct{ name, text string }

func hostile(tb testing.TB) []hostileQuery {
	tb.Helper()
	files, err := filepath.Glob("testdata/hostile/*.sql")
	if err != nil || len(files) < 20 {
		tb.Fatalf("%d hostile queries: %v", len(files), err)
	}
	out := make([]hostileQuery, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		why, q, _ := strings.Cut(string(text), "\n")
		if !strings.HasPrefix(why, "-- ") {
			tb.Errorf("%s does not say what it attacks", file)
		}
		out[i] = hostileQuery{strings.TrimSuffix(filepath.Base(file), ".sql"), q}
	}
	return out
}

func hostileEnv(tb testing.TB) compiler.Env {
	tb.Helper()
	return world{Timezone: "Europe/Berlin", Cohorts: map[int64]worldCohort{1: {named: true}}, Event: map[string]string{"amount": "Numeric"}}.env(tb)
}

// cost is what a compile used up.
type cost struct {
	looks     int
	allocated uint64
}

// failer is what tests and property checks have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// measured compiles a query. It fails the test if the compile costs too much, whether it succeeds or not, or if the result is too large.
func measured(tb failer, q query.Node, env compiler.Env) (*compiler.Compiled, error) {
	tb.Helper()
	var spent cost
	env.Expired = func() error {
		spent.looks++
		if spent.looks > maxLooks {
			return compiler.ErrTooSlow
		}
		return nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	compiled, err := compiler.Compile(q, env)
	runtime.ReadMemStats(&after)
	spent.allocated = after.TotalAlloc - before.TotalAlloc
	if spent.looks > maxLooks || spent.allocated > maxAllocated {
		tb.Errorf("%d looks at the clock and %d MB: %v", spent.looks, spent.allocated>>20, err)
	}
	switch {
	case err != nil:
		if compiler.Mistakes(err) == nil {
			tb.Errorf("not the author's mistake: %v", err)
		}
	case len(compiled.SQL) > budget.MaxSQL+1<<16 || len(compiled.HogQL) > budget.MaxBytes:
		tb.Errorf("%d bytes of SQL, %d of HogQL", len(compiled.SQL), len(compiled.HogQL))
	}
	return compiled, err
}

// onceResolved are queries that only grow if the compiler resolves a part of them twice.
var onceResolved = map[string]bool{
	"membership_nested": true, "membership_not": true, "not_nested": true, "case_nested_twelve": true,
	"macros_nested": true, "ternaries": true,
}

// Not parallel: allocations of other tests would be counted.
func TestHostile(t *testing.T) {
	for _, h := range hostile(t) {
		t.Run(h.name, func(t *testing.T) {
			_, err := measured(t, &query.HogQL{Query: h.text}, hostileEnv(t))
			if err != nil {
				t.Logf("%.120s", err)
			}
			if err != nil && onceResolved[h.name] {
				t.Error("it stands for no more than it says, and is refused")
			}
		})
	}
}
