package insight

import (
	"encoding/json"
	"slices"
)

// Cell formats a JSON value for a table: texts bare, everything else as JSON, a missing member as empty.
func Cell(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// item has the members that the series of all kinds share.
type item struct {
	Data       []json.RawMessage `json:"data"`
	Days       []json.RawMessage `json:"days"`
	Labels     []string          `json:"labels"`
	Label      string            `json:"label"`
	Period     string            `json:"compare_label"`
	Breakdown  json.RawMessage   `json:"breakdown_value"`
	Aggregated json.RawMessage   `json:"aggregated_value"`
}

func (i *item) name() string {
	name := i.Label
	if name == "" {
		name = "value"
		if len(i.Breakdown) > 0 {
			name = Cell(i.Breakdown)
		}
	}
	if i.Period != "" {
		name += " (" + i.Period + ")"
	}
	return name
}

// heads returns the names of a series' points: days, or numbers of intervals as people see them.
func (i *item) heads() []string {
	if len(i.Days) == 0 || i.Days[0][0] != '"' {
		return i.Labels
	}
	out := make([]string, len(i.Days))
	for k, day := range i.Days {
		out[k] = Cell(day)
	}
	return out
}

// SeriesTable turns results that are series into a table with a column for each. Series of the compared period have other days, so they
// form a table of their own after an empty line.
func SeriesTable(results []byte) ([][]string, error) {
	var items []item
	if err := json.Unmarshal(results, &items); err != nil {
		return nil, err // the caller wraps it
	}
	if len(items) == 0 || len(items[0].Data) == 0 {
		out := [][]string{{"series", "value"}}
		for _, i := range items {
			out = append(out, []string{i.name(), Cell(i.Aggregated)})
		}
		return out, nil
	}
	var out [][]string
	for len(items) > 0 {
		heads := items[0].heads()
		same := 1
		for same < len(items) && slices.Equal(items[same].heads(), heads) {
			same++
		}
		if len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, seriesOf(items[:same], heads)...)
		items = items[same:]
	}
	return out, nil
}

// seriesOf returns the table of series that have the same points.
func seriesOf(items []item, heads []string) [][]string {
	names := []string{"date"}
	for i := range items {
		names = append(names, items[i].name())
	}
	out := [][]string{names}
	for point, head := range heads {
		cells := []string{head}
		for i := range items {
			value := ""
			if point < len(items[i].Data) {
				value = Cell(items[i].Data[point])
			}
			cells = append(cells, value)
		}
		out = append(out, cells)
	}
	return out
}
