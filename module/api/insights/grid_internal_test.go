package insights

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGrid places tiles of these layouts one after the other.
func TestGrid(t *testing.T) {
	sized := func(sizes ...int) (all []string) {
		for i := 0; i < len(sizes); i += 2 {
			all = append(all, fmt.Sprintf(`{"sm":{"w":%d,"h":%d}}`, sizes[i], sizes[i+1]))
		}
		return all
	}
	bare := []string{"{}", "{}", "{}", "{}"}
	for _, tt := range []struct {
		name, layout string
		tiles, want  []string // x y w h on a large screen, then the row and the height on a small one
	}{
		{"two in a row", "two_column", bare, []string{"0 0 6 5, 0 5", "6 0 6 5, 5 5", "0 5 6 5, 10 5", "6 5 6 5, 15 5"}},
		{"three in a row", "three_column", bare, []string{"0 0 4 5, 0 5", "4 0 4 5, 5 5", "8 0 4 5, 10 5", "0 5 4 5, 15 5"}},
		{"one in a row", "full_width", bare[:2], []string{"0 0 12 5, 0 5", "0 5 12 5, 5 5"}},
		{"a size that is replaced", "two_column", sized(12, 1), []string{"0 0 6 5, 0 5"}},
		{"a tile beside a taller one", "preserve", sized(6, 8, 6, 2, 6, 3), []string{"0 0 6 8, 0 8", "6 0 6 2, 8 2", "6 2 6 3, 10 3"}},
		{"a tile below the lowest ones", "preserve", sized(4, 2, 4, 1, 4, 1, 8, 1), []string{"0 0 4 2, 0 2", "4 0 4 1, 2 1", "8 0 4 1, 3 1", "4 1 8 1, 4 1"}},
		{"a tile across the screen", "preserve", sized(6, 3, 12, 1, 3, 1), []string{"0 0 6 3, 0 3", "0 3 12 1, 3 1", "0 4 3 1, 4 1"}},
		{"wider than the screen", "preserve", sized(50, 2), []string{"0 0 12 2, 0 2"}},
		{
			"sizes that are none", "preserve",
			[]string{"{}", `{"sm":null}`, `{"sm":5}`, `{"sm":{"w":0,"h":-1}}`, `{"sm":{"w":"4","h":2}}`, `{"sm":{"w":4.5}}`},
			[]string{"0 0 6 5, 0 5", "6 0 6 5, 5 5", "0 5 6 5, 10 5", "6 5 6 5, 15 5", "0 10 6 2, 20 2", "6 10 6 5, 22 5"},
		},
		{"taller than all", "preserve", sized(12, 1<<62, 12, 1), []string{"0 0 12 1048576, 0 1048576", "0 1048576 12 1, 1048576 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := grid{layout: tt.layout}
			var got []string
			for _, raw := range tt.tiles {
				layouts, err := g.add(json.RawMessage(raw))
				if err != nil {
					t.Fatal(err)
				}
				var at struct{ SM, XS struct{ X, Y, W, H int } }
				if err := json.Unmarshal(layouts, &at); err != nil || at.XS.X != 0 || at.XS.W != 1 {
					t.Fatalf("%s: %v", layouts, err)
				}
				got = append(got, fmt.Sprintf("%d %d %d %d, %d %d", at.SM.X, at.SM.Y, at.SM.W, at.SM.H, at.XS.Y, at.XS.H))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
	g := grid{layout: "full_width"}
	got, err := g.add(json.RawMessage(`{"sm":{"minW":2},"md":{"x":1}}`))
	if want := `{"md":{"x":1},"sm":{"h":5,"minW":2,"w":12,"x":0,"y":0},"xs":{"h":5,"w":1,"x":0,"y":0}}`; err != nil || string(got) != want {
		t.Errorf("other members: %s, %v", got, err)
	}
}
