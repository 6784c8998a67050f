package trends

import (
	"errors"
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestSplitNumbersAreBounded: pieces with more numbers than fit into memory are not read. Values without events in a series do not count.
func TestSplitNumbersAreBounded(t *testing.T) {
	const series = 200
	var lanes []column
	for i := range series {
		lanes = append(lanes, column{lane: lane{series: i}})
	}
	p := &pieces{b: &builder{q: &Query{Series: make([]query.Series, series)}}, sources: []*source{{lanes: lanes}}}
	piece := func(number int) (rows [][]byte) {
		for n := range maxKept {
			rows = append(rows, fmt.Appendf(nil, `[0,["value %d"],[%d],[0]]`, n, number))
		}
		return rows
	}
	for _, tt := range []struct {
		number int
		want   error
	}{{0, nil}, {1, errNotKept}} {
		reader := splitReader{pieces: p, values: map[string]string{}}
		var err error
		for n := 0; n < 3 && err == nil; n++ { // a million numbers in each
			_, err = reader.piece(piece(tt.number))
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("with each number %d: %v, want %v", tt.number, err, tt.want)
		}
		if len(reader.values) != maxKept {
			t.Errorf("%d texts are kept, want %d", len(reader.values), maxKept)
		}
	}
}
