package pattern_test

import (
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/pattern"
)

func TestMistake(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"a plain one", `^/(\w+)/?$`, ""},
		{"as long as can be", strings.Repeat("a", pattern.MaxBytes), ""},
		{"the syntax", "a(b", "\"a(b\" is not a valid regular expression: missing closing ): `a(b`."},
		{"too long", strings.Repeat("a", pattern.MaxBytes+1), `"` + strings.Repeat("a", 200) + `…" is not a valid regular expression: it is longer than 4096 bytes.`},
		{"one that grows", strings.Repeat("(?:a{999})", 11), `"` + strings.Repeat("(?:a{999})", 11) + `" is not a valid regular expression: it has more than 20000 states.`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, pattern.Mistake(tt.in)); diff != "" {
				t.Errorf("Mistake() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStates compares the count with what Go compiles.
func TestStates(t *testing.T) {
	for _, text := range []string{
		"", "a", "abc", ".", "(?s).", "[a-z_]", `\pL`, "a|bc|[d-f]", "(a)(?:b)", "a*b+c?", "a{3}", "a{2,5}", "a{0,3}", "a{0,}", "(ab){2,}", "(?i)ab", `^\bx$`, "(?:[a-c]|d{2}){7}",
	} {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		want := -2 // the first and the last state are in all of them
		for i := range program.Inst {
			want += 1 + len(program.Inst[i].Rune)
		}
		if got := pattern.States(parsed, 2000); got != want {
			t.Errorf("States(%s) = %d, want %d", text, got, want)
		}
		if got := pattern.States(parsed, 1); got != min(want, 2) {
			t.Errorf("States(%s, 1) = %d", text, got)
		}
	}
}
