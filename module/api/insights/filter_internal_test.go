package insights

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

func TestHasAll(t *testing.T) {
	for _, tt := range []struct {
		list, wanted []string
		want         bool
	}{
		{nil, nil, true},
		{[]string{"a"}, nil, true},
		{nil, []string{"a"}, false},
		{[]string{"b", "a", "a"}, []string{"a", "b", "a"}, true},
		{[]string{"a", "a"}, []string{"a", "b"}, false},
	} {
		if got := hasAll(tt.list, api.SetOf(tt.wanted)); got != tt.want {
			t.Errorf("hasAll(%q, %q) = %t", tt.list, tt.wanted, got)
		}
	}
}
