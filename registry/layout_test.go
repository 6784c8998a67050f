package registry

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tilesAt(layouts ...string) []Tile {
	tiles := make([]Tile, len(layouts))
	for i, l := range layouts {
		tiles[i] = Tile{ID: int64(i + 1), Layouts: json.RawMessage(l)}
	}
	return tiles
}

func TestCloseGaps(t *testing.T) {
	tests := []struct {
		name    string
		layouts []string
		want    map[int64]string
	}{
		{"nothing", nil, nil},
		{"no gap", []string{`{"sm":{"x":0,"y":0,"w":6,"h":5}}`, `{"sm":{"x":6,"y":0,"w":6,"h":5}}`}, nil},
		{"a gap at the top", []string{`{"sm":{"x":0,"y":5,"w":6,"h":5,"minW":3}}`}, map[int64]string{1: `{"sm":{"h":5,"minW":3,"w":6,"x":0,"y":0}}`}},
		{
			"a gap on one side",
			[]string{`{"sm":{"x":0,"y":0,"w":6,"h":5}}`, `{"sm":{"x":6,"y":5,"w":6,"h":5}}`, `{"sm":{"x":0,"y":10,"w":12,"h":1}}`},
			map[int64]string{2: `{"sm":{"h":5,"w":6,"x":6,"y":0}}`, 3: `{"sm":{"h":1,"w":12,"x":0,"y":5}}`},
		},
		{
			"each width by itself",
			[]string{`{"sm":{"x":0,"y":2,"w":6,"h":2},"xs":{"x":0,"y":0,"w":1,"h":2}}`, `{"sm":{"x":6,"y":0,"w":6,"h":2},"xs":{"x":0,"y":9,"w":1,"h":2}}`},
			map[int64]string{
				1: `{"sm":{"h":2,"w":6,"x":0,"y":0},"xs":{"x":0,"y":0,"w":1,"h":2}}`,
				2: `{"sm":{"x":6,"y":0,"w":6,"h":2},"xs":{"h":2,"w":1,"x":0,"y":2}}`,
			},
		},
		{
			"tiles that overlap are taken apart",
			[]string{`{"sm":{"x":0,"y":0,"w":6,"h":3}}`, `{"sm":{"x":1,"y":1,"w":6,"h":3}}`},
			map[int64]string{2: `{"sm":{"h":3,"w":6,"x":1,"y":3}}`},
		},
		{"a tile without a place comes last", []string{`{"sm":{"w":1,"h":1}}`, `{"sm":{"x":0,"y":3,"w":1,"h":1}}`}, map[int64]string{1: `{"sm":{"h":1,"w":1,"y":1}}`, 2: `{"sm":{"h":1,"w":1,"x":0,"y":0}}`}},
		{
			"widths that nothing is drawn for",
			[]string{`{"md":{"x":0,"y":4,"w":1,"h":1},"sm":{"x":0,"y":2,"w":6,"h":2}}`, `{"a":{"y":7}}`},
			map[int64]string{1: `{"md":{"x":0,"y":4,"w":1,"h":1},"sm":{"h":2,"w":6,"x":0,"y":0}}`},
		},
		{"what is no place", []string{`{"sm":5,"xs":null,"md":{"y":"a","x":1e300}}`, `{}`, `{"sm":{"y":-2}}`}, map[int64]string{3: `{"sm":{"y":0}}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got map[int64]string
			for id, layouts := range closeGaps(tilesAt(tt.layouts...)) {
				if got == nil {
					got = make(map[int64]string)
				}
				got[id] = string(layouts)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("closeGaps() (-want +got):\n%s", diff)
			}
		})
	}
}

// firstFree finds the first free row by looking for boxes in the way until there is none, as PostHog does.
func firstFree(b box, done []box) float64 {
	row := 0.0
	for {
		end, meets := row, false
		for _, d := range done {
			if b.x+b.w <= d.x || d.x+d.w <= b.x || row+b.h <= d.y || d.y+d.h <= row {
				continue
			}
			end, meets = max(end, d.y+d.h), true
		}
		if !meets {
			return row
		}
		row = end
	}
}

func TestMoveUpFindsTheFirstFreeRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var boxes []placedBox
		for i := range 1 + rng.IntN(20) {
			b := box{float64(rng.IntN(12)), float64(rng.IntN(30)), float64(1 + rng.IntN(8)), float64(1 + rng.IntN(6))}
			boxes = append(boxes, placedBox{box: b, order: b, tile: int64(i)})
		}
		want := make(map[int64]float64)
		var done []box
		moved := make(map[int64]float64)
		for _, b := range moveUp(boxes) {
			moved[b.tile] = b.y
		}
		for _, b := range boxes { // in order now
			row := firstFree(b.box, done)
			if row != b.y {
				want[b.tile] = row
			}
			b.y = row
			done = append(done, b.box)
		}
		if diff := cmp.Diff(want, moved); diff != "" {
			t.Fatalf("%v\n(-want +got):\n%s", boxes, diff)
		}
	}
}

// FuzzCloseGaps: layouts stay objects of JSON, and what is closed once has no gap.
func FuzzCloseGaps(f *testing.F) {
	f.Add(`{"sm":{"x":0,"y":5,"w":6,"h":5}}`, `{"sm":{"x":0,"y":1e15,"w":6,"h":-5}}`)
	f.Add(`{"sm":{"x":0,"y":0.5,"w":0,"h":0},"xs":{"y":-1}}`, `{"sm":{"x":1e308,"y":-1e308},"":{}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !isObject(json.RawMessage(a)) || !isObject(json.RawMessage(b)) {
			return
		}
		tiles := tilesAt(a, b, a)
		for id, layouts := range closeGaps(tiles) {
			if !isObject(layouts) {
				t.Fatalf("tile %d has the layouts %s", id, layouts)
			}
			tiles[id-1].Layouts = layouts
		}
		closeGaps(tiles)
	})
}

// BenchmarkCloseGapsOfManyWidths has as many members in each layout as fit.
func BenchmarkCloseGapsOfManyWidths(b *testing.B) {
	var layouts []string
	for i := range MaxTiles {
		var many strings.Builder
		for n := 0; many.Len() < maxLayouts-200; n++ {
			fmt.Fprintf(&many, `"w%x":{},`, n)
		}
		layouts = append(layouts, fmt.Sprintf(`{%s"sm":{"x":0,"y":%d,"w":12,"h":1}}`, &many, 2*i))
	}
	tiles := tilesAt(layouts...)
	b.ReportAllocs()
	for b.Loop() {
		closeGaps(tiles)
	}
}

func BenchmarkCloseGaps(b *testing.B) {
	var layouts []string
	for i := range MaxTiles {
		layouts = append(layouts, fmt.Sprintf(`{"sm":{"x":0,"y":%d,"w":12,"h":%d}}`, i, i+1))
	}
	tiles := tilesAt(layouts...)
	b.ReportAllocs()
	for b.Loop() {
		closeGaps(tiles)
	}
}
