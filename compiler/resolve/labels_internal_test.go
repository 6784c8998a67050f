package resolve

import (
	"fmt"
	"testing"
)

// TestLabels looks for repeated names, among few and among many.
func TestLabels(t *testing.T) {
	tests := []struct {
		name    string
		names   []string
		aliases []int
		want    int
	}{
		{"once", []string{"a", "x"}, nil, 1},
		{"the last", []string{"x", "a", "x"}, nil, 2},
		{"an alias before", []string{"x", "x", "x"}, []int{1}, 1},
		{"the first alias", []string{"x", "x", "x"}, []int{1, 2}, 1},
	}
	for _, tt := range tests {
		for _, more := range []int{0, indexAbove} {
			t.Run(fmt.Sprintf("%s and %d others", tt.name, more), func(t *testing.T) {
				l := &labels{names: tt.names, aliased: make([]bool, len(tt.names)+more)}
				for i := range more {
					l.names = append(l.names, fmt.Sprint("other", i))
				}
				for _, i := range tt.aliases {
					l.aliased[i] = true
				}
				if i, ok := l.find("x"); !ok || i != tt.want {
					t.Errorf("x is the column %d, %t; want %d", i, ok, tt.want)
				}
				if i, ok := l.find("y"); ok {
					t.Errorf("y is the column %d", i)
				}
			})
		}
	}
}
