package compiler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// A text full of mistakes must not take longer than a correct one: only the first hundred mistakes get hints.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"fields": ", evnt", "properties": ", properties.brwser", "functions": ", coutn(1)", "placeholders": ", {x}", "columns": ", e.evnt",
		"casts": ", 1::strng", "units": ", dateDiff('dya', now(), now())", "tables": ", (select 1 from evnts)",
	} {
		t.Run(name, func(t *testing.T) {
			text := "select 'é'" + strings.Repeat(part, 8_000) + " from events e"
			began := time.Now()
			m := describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: text})
			took := time.Since(began)
			if len(m.Errors)+len(m.Warnings) < 100 {
				t.Errorf("%d mistakes and %d warnings", len(m.Errors), len(m.Warnings))
			}
			if took > 30*time.Second { // with a hint for each, it took longer
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestChainOfNames: a constant behind many names is found at once. Following the names for each call would take longer than a test may run.
func TestChainOfNames(t *testing.T) {
	t.Parallel()
	const names, calls = 12_000, 4_000
	var b strings.Builder
	b.WriteString("select tuple('UTC' as a0")
	for i := 1; i < names; i++ {
		fmt.Fprintf(&b, ", a%d as a%d", i-1, i)
	}
	b.WriteString(")")
	for range calls {
		fmt.Fprintf(&b, ", toTimeZone(now(), a%d)", names-1)
	}
	_, err := compiler.Compile(&query.HogQL{Query: b.String()}, hostileEnv(t))
	if err == nil || !strings.Contains(err.Error(), "once its aliases are put in place of their names") { // which is found last
		t.Error(err)
	}
}
