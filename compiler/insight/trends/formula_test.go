package trends_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

func shown(v any) string { return fmt.Sprint(v) }

func TestFormula(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want float64
	}{
		{"A+2*b", 11},
		{"(a+2)*B", 20},
		{"A-B-C", 3 - 4 - 0},
		{"A/B/2", 0.375},
		{"A/C", 0},
		{"A%C", 0},
		{"-A%B", 1},
		{"2**3**2", 512},
		{"-A**2", -9},
		{"A**-1", 1.0 / 3},
		{"0**-1", 0},
		{"--A", 3},
		{"1.5e1 + .5", 15.5},
		{" ( ( 7 ) ) ", 7},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			f, err := trends.ParseFormula(tt.text, 3)
			if err != nil {
				t.Fatal(err)
			}
			if got := f([]float64{3, 4, 0}); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("%s is %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestFormulaMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", "it ends too early"},
		{"A B", "unexpected 'B' at position 3"},
		{"D", "there is no series 'D'"},
		{"AB", "there is no series 'AB'"},
		{"sum(A)", "there is no series 'sum'"},
		{"(A", "a closing parenthesis is missing"},
		{"A)", "unexpected ')' at position 2"},
		{"A ^ 2", "unexpected '^' at position 3"},
		{"1.2.3", "'1.2.3' is not a number"},
		{"é", "unexpected 'é' at position 1"},
		{strings.Repeat("(", 200), "it is nested too deeply"},
		{strings.Repeat("-", 200) + "A", "it is nested too deeply"},
		{strings.Repeat("A+", 2000) + "A", "it is longer than 2000 characters"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			if _, err := trends.ParseFormula(tt.text, 3); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzFormula(f *testing.F) {
	for _, seed := range []string{"A+2*b", "((a))", "-A**2", "1e400", "A/", "%", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		formula, err := trends.ParseFormula(text, 2)
		if err == nil {
			formula([]float64{1, 0}) // must not panic
		} else if err.Error() == "" {
			t.Error("a mistake without words")
		}
	})
}
