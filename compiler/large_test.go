package compiler_test

import (
	"strings"
	"testing"
	"time"

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
