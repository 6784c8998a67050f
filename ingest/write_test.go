package ingest

import (
	"strings"
	"testing"
)

func TestChunk(t *testing.T) {
	of := func(size int) row {
		return row{values: []any{strings.Repeat("x", size), uint64(1)}}
	}
	tests := []struct {
		sizes []int
		want  int
	}{
		{nil, 0},
		{[]int{1, 2, 3}, 3},
		{[]int{maxBlock / 2, maxBlock / 2}, 2},
		{[]int{maxBlock / 2, maxBlock/2 + 1}, 1},
		{[]int{2 * maxBlock, 1}, 1},
	}
	for _, tt := range tests {
		var rows []row
		for _, size := range tt.sizes {
			rows = append(rows, of(size))
		}
		if got := chunk(rows); got != tt.want {
			t.Errorf("rows of %v bytes: the first block takes %d, want %d", tt.sizes, got, tt.want)
		}
	}
}
