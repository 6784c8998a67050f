package materialize_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
)

// maxPlanned is how much planning may allocate: the same as a compile.
const maxPlanned = 128 << 20

// TestHostileQueries: planning short queries that expand to huge ones costs no more than compiling them.
func TestHostileQueries(t *testing.T) {
	files, err := filepath.Glob("../testdata/hostile/*.sql")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d hostile queries: %v", len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, q, _ := strings.Cut(string(text), "\n")
		texts[filepath.Base(file)] = q
		texts[filepath.Base(file)+" below a variable"] = "select count() as n from (" + strings.TrimSuffix(strings.TrimSpace(q), ";") + ") where event = {variables.other}"
	}
	many := func(n int, separator, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, separator)
	}
	since := " from events where timestamp >= {variables.since}"
	long := many(100, " + ", "length(properties.a%d)")
	texts["many columns"] = "select " + many(500, ", ", "sumIf(toFloat(properties.a%[1]d), event = 'a') as a%[1]d") + since
	texts["many keys"] = "select count() as n" + since + " group by " + many(490, ", ", "properties.a%d")
	texts["many conditions"] = "select count() as n from events where " + many(500, " and ", "properties.a%d > {variables.since}")
	texts["conditions past the limit"] = "select count() as n from events where " + many(9000, " and ", "a%d > {variables.since}")
	texts["long aggregates"] = "select " + many(200, ", ", "sum("+long+" + %d)") + since
	texts["a long alias, many times"] = "select sum(" + long + ") as a, " + many(80, ", ", "a + %[1]d as a%[1]d") + since
	texts["keys that are computed"] = "select " + many(200, ", ", "lower(event) as e%[1]d, upper(e%[1]d) as f%[1]d") + ", count()" + since + " group by " + many(200, ", ", "e%d")
	texts["nested"] = "select " + strings.Repeat("abs(", 180) + "count()" + strings.Repeat(")", 180) + since
	texts["many unknown variables"] = "with a as (select 1 as x) select 1 from a where " + many(3000, " or ", "x = {variables.v%d}")
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := materialize.New(hogqlNode(text), env(), materialize.Options{Endpoint: "a", Version: 1})
			if _, refused := errors.AsType[*materialize.Refusal](err); err != nil && !refused {
				t.Fatal(err)
			}
			if p != nil {
				values := map[string]any{}
				for _, name := range p.Required {
					values[name] = "2024-01-01"
				}
				if _, err := p.Read(materialize.Run{Table: "endpoint_1", Values: values}, env()); err != nil && compiler.Mistakes(err) == nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > maxPlanned {
				t.Errorf("%d bytes of text take %d MB", len(text), used>>20)
			}
		})
	}
}
