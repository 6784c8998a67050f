package hogql_test

import (
	"errors"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// TestAdvice checks the advice for queries that continue after a possible end.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"select event form events":         "Did you mean FROM by 'form'?",
		"select event FRM events":          "Did you mean FROM by 'FRM'?",
		"select 'it's'":                    "", // the quote at the end opens a text that never ends
		"select 'it's' from events":        "",
		"select 1 where a = 'it's' or 1":   "Write a quote inside of a text twice: 'it''s'",
		"select 1 where a > b - 7 days":    "Write a length of time as an interval: interval 7 day",
		"select 1 where now() > 12 Hour":   "Write a length of time as an interval: interval 12 hour",
		"select a b c":                     "",
		"select 1; select 2":               "",
		"select 'a' 'b' 'c'":               "",
		"select event from events e limit": "",
	} {
		_, err := hogql.Parse(text)
		var mistake *diag.Error
		if !errors.As(err, &mistake) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if mistake.Advice != want {
			t.Errorf("%s: %v, advice %q, want %q", text, mistake, mistake.Advice, want)
		}
	}
}
