package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// boxPlotProject is the project of the events that random box plots are asked of.
const boxPlotProject = 361

// plotBox is what is compared of a box.
type plotBox struct {
	Day    string  `json:"day"`
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	P75    float64 `json:"p75"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	Series int     `json:"series_index"`
}

// TestBoxPlotsAgainstPlainGo asks random box plots of the engine, and computes each a second time in plain Go.
func TestBoxPlotsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 9)) // the same every time
	events := randomEvents(random)
	importEvents(t, boxPlotProject, events)
	found := 0
	for i := range 60 {
		q := randomTrend(random)
		q.display, q.compareTo, q.breakdown, q.smoothing = "BoxPlot", "", nil, 0
		for k := range q.series {
			q.series[k].math = []string{"sum", "avg"}[random.IntN(2)] // which make no difference
		}
		raw, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		want := plainBoxes(q, events)
		for _, b := range want {
			if b.Max > b.Min {
				found++
			}
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			compiled, rows := runNode(t, q, boxPlotProject, raw)
			answer, err := compiled.Shape(rows.all)
			if err != nil {
				t.Fatal(err)
			}
			var got []plotBox
			if err := json.Unmarshal(answer.Results, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
				t.Errorf("%s in %s\n%s\nresults (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
			}
		})
	}
	if found < 200 {
		t.Errorf("only %d boxes have a width: the events are too few to tell", found)
	}
}

// plainBoxes are the boxes of every series, one for each bucket.
func plainBoxes(q *trendQuery, events []trendEvent) []plotBox {
	var out []plotBox
	r := q.ranges()[0]
	layout := time.DateOnly
	if q.interval == "hour" {
		layout = time.DateTime
	}
	for i := range q.series {
		s := &q.series[i]
		values := map[string][]float64{}
		for k := range events {
			e := &events[k]
			n, ok := e.number()
			if ok && s.named(e) && s.passes(e) && !e.Timestamp.Before(r.lower) && !e.Timestamp.After(r.to) {
				bucket := q.bucketOf(e.Timestamp).Format(layout)
				values[bucket] = append(values[bucket], n)
			}
		}
		for _, start := range r.starts {
			b := plotBox{Day: start.Format(layout), Series: i}
			of := values[b.Day]
			b.Min, b.P25, b.Median = plainStatistic("min", of), plainStatistic("p25", of), plainStatistic("median", of)
			b.P75, b.Max, b.Mean = plainStatistic("p75", of), plainStatistic("max", of), plainStatistic("avg", of)
			out = append(out, b)
		}
	}
	return out
}
