package insights

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRoom: results that arrive at once are counted before they are rendered; the first one has room whatever its size.
func TestRoom(t *testing.T) {
	const most = maxDashboardBytes
	for name, tt := range map[string]struct {
		sizes []int64
		want  []bool
	}{
		"exactly all":                 {[]int64{most / 2, most / 2}, []bool{true, true}},
		"two at once":                 {[]int64{most - 1, 2}, []bool{true, false}},
		"a large first one":           {[]int64{2 * most, 1}, []bool{true, false}},
		"a small one after a refusal": {[]int64{1, most, 1}, []bool{true, false, true}},
	} {
		var space room
		for i, size := range tt.sizes {
			if got := space.reserve(size); got != tt.want[i] {
				t.Errorf("%s: result %d has room: %t", name, i, got)
			}
		}
	}
	var space room
	space.reserve(most)
	space.settle(most, 10)
	if space.isFull() || !space.reserve(most-10) || space.reserve(1) || !space.isFull() {
		t.Error("the room of a rendered result is not its size")
	}
}

// TestAppendTiles: tiles are appended as they would be encoded, into memory of the right size.
func TestAppendTiles(t *testing.T) {
	one := tileRecord{ID: 1, Insight: json.RawMessage(`{"id":7}`)}
	for object, want := range map[string]string{`{}`: `{"tiles":[`, `{"a":1}`: `{"a":1,"tiles":[`} {
		got := appendTiles([]byte(object), "tiles", []tileRecord{one, {ID: 2}}, tileRecord.split)
		var tiles struct {
			Tiles []struct {
				ID      int
				Insight any
			}
		}
		if err := json.Unmarshal(got, &tiles); err != nil || string(got[:len(want)]) != want || cap(got) > len(got)+len(got)/4 {
			t.Fatalf("%s, with room for %d bytes: %v", got, cap(got), err)
		}
		if diff := cmp.Diff([]any{1, map[string]any{"id": 7.0}, 2, nil}, []any{tiles.Tiles[0].ID, tiles.Tiles[0].Insight, tiles.Tiles[1].ID, tiles.Tiles[1].Insight}); diff != "" {
			t.Errorf("tiles (-want +got):\n%s", diff)
		}
	}
}
