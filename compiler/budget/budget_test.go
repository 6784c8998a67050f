package budget_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
)

// spent returns the error that ends a function that spends.
func spent(spend func()) (err error) {
	defer budget.Catch(&err)
	spend()
	return nil
}

func TestBudget(t *testing.T) {
	tests := []struct {
		name  string
		most  int
		spend func(*budget.Budget, int)
		want  string
	}{
		{"parts", budget.MaxNodes, (*budget.Budget).Nodes, "parts"},
		{"columns", budget.MaxColumns, (*budget.Budget).Columns, "columns"},
		{"bytes", budget.MaxBytes, (*budget.Budget).Bytes, "16 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := budget.New(nil)
			if err := spent(func() { tt.spend(b, tt.most-1); tt.spend(b, 1) }); err != nil {
				t.Errorf("all of it: %v", err)
			}
			if err := spent(func() { tt.spend(b, 1) }); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("one more: %v", err)
			}
			if err := spent(func() { tt.spend(nil, tt.most+1) }); err != nil {
				t.Errorf("of no budget: %v", err)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	enough := errors.New("enough")
	looks := 0
	b := budget.New(func() error {
		if looks++; looks == 3 {
			return enough
		}
		return nil
	})
	steps := 0
	err := spent(func() {
		for ; steps < 1_000_000; steps++ {
			b.Work(1)
		}
	})
	if !errors.Is(err, enough) || steps > 20_000 {
		t.Errorf("after %d steps: %v", steps, err)
	}
}

func TestHints(t *testing.T) {
	b := budget.New(nil)
	names := slices.Repeat([]string{"name"}, budget.MaxHints)
	if n := len(slices.Collect(b.Hints(slices.Values(names[1:])))); n != budget.MaxHints-1 {
		t.Errorf("%d hints, want %d", n, budget.MaxHints-1)
	}
	if left := len(slices.Collect(b.Hints(slices.Values(names)))); left != 1 {
		t.Errorf("%d hints are left, want 1", left)
	}
}
