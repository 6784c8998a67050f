package registry

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// box is the place of a tile in the grid of one screen width, in columns and rows. Stored values that are not numbers count as missing.
type box struct{ x, y, w, h float64 }

// placedBox is the box of a tile, which moves up.
type placedBox struct {
	box
	order box // by which boxes are sorted: those without a place come last
	tile  int64
}

// widths are the screen widths that PostHog draws dashboards for. Layouts may have others, which stay as they are.
var widths = []string{"sm", "xs"}

// lastPlace is the row and column by which tiles without a place are sorted, as in PostHog.
const lastPlace = 100

// closeGaps moves the tiles up as far as the grid allows, for each of the widths, as PostHog draws dashboards. It returns the new layouts of the tiles that
// moved, by number of the tile. It keeps only numbers of a layout, which can have thousands of members.
func closeGaps(tiles []Tile) map[int64]json.RawMessage {
	boxes := make(map[string][]placedBox)
	for i := range tiles {
		layouts := membersOf(tiles[i].Layouts)
		for _, width := range widths {
			members := membersOf(layouts[width])
			if members == nil {
				continue
			}
			at := box{member(members, "x", 0), member(members, "y", 0), member(members, "w", 1), member(members, "h", 1)}
			order := box{x: member(members, "x", lastPlace), y: member(members, "y", lastPlace)}
			boxes[width] = append(boxes[width], placedBox{at, order, tiles[i].ID})
		}
	}
	rows := make(map[int64]map[string]float64) // by tile, then by width
	for width, all := range boxes {
		for _, b := range moveUp(all) {
			if rows[b.tile] == nil {
				rows[b.tile] = make(map[string]float64)
			}
			rows[b.tile][width] = b.y
		}
	}
	moved := make(map[int64]json.RawMessage, len(rows))
	for i := range tiles {
		if to := rows[tiles[i].ID]; to != nil {
			moved[tiles[i].ID] = inRows(tiles[i].Layouts, to)
		}
	}
	return moved
}

// inRows returns layouts with other rows in some widths.
func inRows(raw json.RawMessage, rows map[string]float64) json.RawMessage {
	layouts := membersOf(raw)
	for width, row := range rows {
		members := membersOf(layouts[width])
		members["y"] = strconv.AppendFloat(nil, row, 'f', -1, 64)
		layouts[width] = encode(members)
	}
	return compact(encode(layouts))
}

// membersOf returns the members of a JSON object; nil if it is none.
func membersOf(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// maxPlace is the greatest row or column: above it, floats can't represent all integers.
const maxPlace = 1 << 53

func member(members map[string]json.RawMessage, name string, otherwise float64) float64 {
	n := otherwise
	if json.Unmarshal(members[name], &n) != nil || math.Abs(n) > maxPlace {
		return otherwise
	}
	return n
}

// moveUp puts each box into the first row that is free for it, in the order in which they are drawn, and returns the boxes that moved.
func moveUp(boxes []placedBox) (moved []placedBox) {
	slices.SortStableFunc(boxes, func(a, b placedBox) int {
		return cmp.Or(cmp.Compare(a.order.y, b.order.y), cmp.Compare(a.order.x, b.order.x), cmp.Compare(a.tile, b.tile))
	})
	var done []box // by row
	for _, b := range boxes {
		was := b.y
		b.y = b.firstRow(done)
		at, _ := slices.BinarySearchFunc(done, b.y, func(d box, y float64) int { return cmp.Compare(d.y, y) })
		done = slices.Insert(done, at, b.box)
		if b.y != was {
			moved = append(moved, b)
		}
	}
	return moved
}

// firstRow returns the first row, from 0 on, in which the box overlaps none of the boxes in done, which are sorted by row. It skips over a box that is in the
// way instead of trying each row.
func (b *box) firstRow(done []box) float64 {
	row, end := 0.0, 0.0 // end is below all boxes that begin above the end of this one
	for i := 0; ; row = end {
		for ; i < len(done) && done[i].y < row+b.h; i++ {
			if beside := b.x+b.w <= done[i].x || done[i].x+done[i].w <= b.x; !beside {
				end = max(end, done[i].y+done[i].h)
			}
		}
		if end <= row {
			return row
		}
	}
}
