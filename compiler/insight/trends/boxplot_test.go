package trends_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

func TestBoxPlot(t *testing.T) {
	t.Parallel()
	const zero = `"min":0,"p25":0,"median":0,"p75":0,"max":0,"mean":0`
	tests := []struct {
		name, fields  string
		rows          []string
		want, mistake string
	}{
		{
			"two series, with a box for every bucket", `"series": [{"event": "a", "math_property": "n", "custom_name": "Mine"}, {"math_property": "m"}], "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-02"}`,
			[]string{`[0, "2020-01-02", [1, 1.5, 2, 2.5, 3, 2], 1577923200]`, `[1, "2020-01-01", [null, null, null, null, null, null], 1577836800]`},
			`[{"day":"2020-01-01","label":"1-Jan-2020",` + zero + `,"series_index":0,"series_label":"Mine - n"},` +
				`{"day":"2020-01-02","label":"2-Jan-2020","min":1,"p25":1.5,"median":2,"p75":2.5,"max":3,"mean":2,"series_index":0,"series_label":"Mine - n"},` +
				`{"day":"2020-01-01","label":"1-Jan-2020",` + zero + `,"series_index":1,"series_label":"All events - m"},` +
				`{"day":"2020-01-02","label":"2-Jan-2020",` + zero + `,"series_index":1,"series_label":"All events - m"}]`, "",
		},
		{
			"hours of all time begin with the earliest event", `"series": [{"event": "a", "math_property": "n"}], "interval": "hour", "dateRange": {"date_from": "all", "date_to": "2020-01-01T01:30:00"}`,
			[]string{`[0, 1577840400, [1, 1, 1, 1, 1, 1], 1577840460]`, `[0, 1577836800, [2, 2, 2, 2, 2, 2], 1577836860]`},
			`[{"day":"2020-01-01 00:00:00","label":"1-Jan 00:00","min":2,"p25":2,"median":2,"p75":2,"max":2,"mean":2,"series_index":0,"series_label":"a - n"},` +
				`{"day":"2020-01-01 01:00:00","label":"1-Jan 01:00","min":1,"p25":1,"median":1,"p75":1,"max":1,"mean":1,"series_index":0,"series_label":"a - n"}]`, "",
		},
		{"no property", `"series": [{"event": "a", "math_property": "n"}, {"event": "b", "math": "total"}]`, nil, `[]`, "A numeric property must be selected for box plot."},
		{"no series", `"series": []`, nil, `[]`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := trends.Build(boxPlot(t, tt.fields), insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.rows...)
			if diff := cmp.Diff([]string{tt.want, `{"boxplot_data":` + tt.want + `}`, tt.mistake}, []string{string(answer.Results), string(answer.More), answer.Error}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if answer.HasMore != nil || answer.Range == nil {
				t.Errorf("hasMore %v, range %v", answer.HasMore, answer.Range)
			}
		})
	}
}

func boxPlot(t *testing.T, fields string) *trends.Query {
	t.Helper()
	return insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "trendsFilter": {"display": "BoxPlot"}, `+fields+`}`)
}

// TestBoxesOfAllTimeAreBounded checks that too many boxes are refused if only the rows show how many there are.
func TestBoxesOfAllTimeAreBounded(t *testing.T) {
	t.Parallel()
	q := boxPlot(t, `"series": [{"math_property": "a"}, {"math_property": "b"}, {"math_property": "c"}, {"math_property": "d"}, {"math_property": "e"}, {"math_property": "f"}],
		"interval": "hour", "dateRange": {"date_from": "all"}`)
	built, err := trends.Build(q, insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	_, err = built.Shape(func(yield func([]byte) bool) { yield([]byte(`[0, 0, [0, 0, 0, 0, 0, 0], 1546300800]`)) })
	want := "interval: This box plot has 53808 boxes; there may be 50000. Use a longer interval, a shorter range or fewer series."
	if diff := cmp.Diff(want, insighttest.Mistake(t, err)); diff != "" {
		t.Errorf("mistake (-want +got):\n%s", diff)
	}
}

// TestForeignBoxes checks that rows that cannot be from the query are an error, not an answer.
func TestForeignBoxes(t *testing.T) {
	t.Parallel()
	built, err := trends.Build(boxPlot(t, `"series": [{"math_property": "n"}]`), insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[1, "2020-01-01", [1, 1, 1, 1, 1, 1], 1]`, `[0, "2020-01-01", [1], 1]`, `{}`} {
		if answer, err := built.Shape(func(yield func([]byte) bool) { yield([]byte(row)) }); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}

func TestBoxPlotTable(t *testing.T) {
	t.Parallel()
	q := boxPlot(t, `"series": [{"math_property": "n"}]`)
	got, err := trends.Table(q, []byte(`[{"day":"2020-01-01","label":"1-Jan-2020","min":1,"p25":2,"median":3,"p75":4,"max":5,"mean":3.5,"series_index":0,"series_label":"a - n"}]`))
	want := [][]string{{"series_label", "day", "min", "p25", "median", "p75", "max", "mean"}, {"a - n", "2020-01-01", "1", "2", "3", "4", "5", "3.5"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("table, %v (-want +got):\n%s", err, diff)
	}
	if f := trends.Form(q); f.Items == nil || f.Items.Name != "BoxPlotDatum" || len(f.Items.Members) != 10 {
		t.Errorf("the form is %+v", f)
	}
}
