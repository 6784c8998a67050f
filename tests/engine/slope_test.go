package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSlopesAgainstLines checks that random slopes have the first and the last points of the same trends as lines, and that they are the same in
// pieces.
func TestSlopesAgainstLines(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 12)) // the same every time
	importEvents(t, slopesProject, randomEvents(random))
	var tally piecesTally
	count := rounds(t, 60)
	for i := range count {
		q := randomTrend(random)
		q.compareTo, q.smoothing, q.limit = "", 0, 1000
		ask := func(display string) ([]trendItem, []byte) {
			q.display = display
			raw, err := json.Marshal(q.node())
			if err != nil {
				t.Fatal(err)
			}
			compiled, rows := runNode(t, q, slopesProject, raw)
			answer, err := compiled.Shape(rows.all)
			if err != nil {
				t.Fatal(err)
			}
			var items []trendItem
			if err := json.Unmarshal(answer.Results, &items); err != nil {
				t.Fatal(err)
			}
			return items, raw
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			want, _ := ask("ActionsLineGraph")
			got, raw := ask("SlopeGraph")
			for i := range want {
				w := &want[i]
				if n := len(w.Data); n > 2 {
					w.Data, w.Days = []float64{w.Data[0], w.Data[n-1]}, []string{w.Days[0], w.Days[n-1]}
				}
				w.Count = 0
				for _, point := range w.Data {
					w.Count += point
				}
			}
			empty := func(item trendItem) bool {
				return !slices.ContainsFunc(item.Data, func(y float64) bool { return y != 0 })
			}
			want, got = slices.DeleteFunc(want, empty), slices.DeleteFunc(got, empty)
			byName := cmpopts.SortSlices(func(a, b trendItem) bool { return itemName(a) < itemName(b) }) // the ranks are those of two points
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.EquateEmpty(), byName); diff != "" {
				t.Errorf("%s in %s\nitems (-of the line +of the slope):\n%s", raw, q.zone, diff)
			}
			now := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
			tally.compare(t, random, pieceStore{}, piecesEnv(t, slopesProject, q.zone, q.weekStart, now), raw)
		})
	}
	if tally.compared < count/4 {
		t.Errorf("only %d of %d slopes come in pieces", tally.compared, count)
	}
}

// slopesProject is the project of the events that random slopes are asked of.
const slopesProject = 395
