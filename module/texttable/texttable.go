// Package texttable writes results as tables of plain text, for readers that take in text rather than JSON, such as language
// models: a line of names, and a line for each row, with | between the cells.
package texttable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// table is text in the making.
type table struct{ text []byte }

func (t *table) line(cells ...string) {
	if len(t.text) > 0 {
		t.text = append(t.text, '\n')
	}
	for i, cell := range cells {
		if i > 0 {
			t.text = append(t.text, '|')
		}
		t.text = append(t.text, escape.Replace(cell)...)
	}
}

// escape keeps what is in a cell from looking like the end of it.
var escape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", `\n`, "\r", `\r`)

// Rows writes rows of JSON arrays below the names of their columns. Cells are cut to so many characters; 0 leaves them whole.
func Rows(columns []string, rows iter.Seq[[]byte], most int) (string, error) {
	var t table
	t.line(columns...)
	for row := range rows {
		var values []json.RawMessage
		if err := json.Unmarshal(row, &values); err != nil {
			return "", fmt.Errorf("reading a row: %w", err)
		}
		cells := make([]string, len(values))
		for i, v := range values {
			cells[i] = cut(cell(v), most)
		}
		t.line(cells...)
	}
	return string(t.text), nil
}

// Texts writes a table of texts.
func Texts(rows [][]string) string {
	var t table
	for _, row := range rows {
		t.line(row...)
	}
	return string(t.text)
}

func cut(text string, most int) string {
	if most > 0 && len(text) > most {
		if runes := []rune(text); len(runes) > most {
			return string(runes[:most]) + "…"
		}
	}
	return text
}

// cell is a JSON value as it stands in a table: texts bare, everything else as JSON; a member that is missing is empty.
func cell(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// Insight writes the results of an insight, which are those of its kind: contract section 1.5.
func Insight(q query.Insight, results []byte) (string, error) {
	var err error
	var t table
	switch n := q.(type) {
	case *query.Funnels:
		switch n.Viz {
		case query.FunnelTrends:
			err = t.series(results)
		case query.FunnelTimeToConvert:
			err = t.bins(results)
		case query.FunnelSteps, query.FunnelFlow:
			err = t.steps(results)
		}
	case *query.Retention:
		err = t.cohorts(results)
	case *query.Paths:
		err = t.edges(results)
	default:
		err = t.series(results)
	}
	if err != nil {
		return "", fmt.Errorf("reading the results of a %s: %w", q.Kind(), err)
	}
	return string(t.text), nil
}

// item is what series of all kinds have.
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
			name = cell(i.Breakdown)
		}
	}
	if i.Period != "" {
		name += " (" + i.Period + ")"
	}
	return name
}

// heads are the names of a series' points: days, or numbers of intervals as they are told to people.
func (i *item) heads() []string {
	if len(i.Days) == 0 || i.Days[0][0] != '"' {
		return i.Labels
	}
	out := make([]string, len(i.Days))
	for k, day := range i.Days {
		out[k] = cell(day)
	}
	return out
}

// series writes a column for each series. Those of a period that is compared have other days, and a table of their own.
func (t *table) series(results []byte) error {
	var items []item
	if err := json.Unmarshal(results, &items); err != nil {
		return err // Insight wraps it
	}
	if len(items) == 0 || len(items[0].Data) == 0 {
		t.line("series", "value")
		for _, i := range items {
			t.line(i.name(), cell(i.Aggregated))
		}
		return nil
	}
	for len(items) > 0 {
		heads := items[0].heads()
		same := 1
		for same < len(items) && slices.Equal(items[same].heads(), heads) {
			same++
		}
		if len(t.text) > 0 {
			t.line()
		}
		names := []string{"date"}
		for k := range items[:same] {
			names = append(names, items[k].name())
		}
		t.line(names...)
		for point, head := range heads {
			cells := []string{head}
			for _, i := range items[:same] {
				if point < len(i.Data) {
					cells = append(cells, cell(i.Data[point]))
				} else {
					cells = append(cells, "")
				}
			}
			t.line(cells...)
		}
		items = items[same:]
	}
	return nil
}

// steps writes a line for each step of a funnel, and of each value of a breakdown.
func (t *table) steps(results []byte) error {
	type step struct {
		Name      string          `json:"name"`
		Custom    string          `json:"custom_name"`
		Order     json.RawMessage `json:"order"`
		Count     json.RawMessage `json:"count"`
		Average   json.RawMessage `json:"average_conversion_time"`
		Median    json.RawMessage `json:"median_conversion_time"`
		Breakdown json.RawMessage `json:"breakdown"`
	}
	var funnels [][]step
	if !bytes.HasPrefix(bytes.TrimSpace(results), []byte("[[")) {
		results = slices.Concat([]byte("["), results, []byte("]"))
	}
	if err := json.Unmarshal(results, &funnels); err != nil {
		return err // Insight wraps it
	}
	t.line("step", "name", "count", "average_conversion_seconds", "median_conversion_seconds", "breakdown")
	for _, steps := range funnels {
		for _, s := range steps {
			name := s.Name
			if s.Custom != "" {
				name = s.Custom
			}
			t.line(cell(s.Order), name, cell(s.Count), cell(s.Average), cell(s.Median), cell(s.Breakdown))
		}
	}
	return nil
}

// bins writes how many converted in which time.
func (t *table) bins(results []byte) error {
	var times struct {
		Bins [][2]json.RawMessage `json:"bins"`
	}
	if err := json.Unmarshal(results, &times); err != nil {
		return err // Insight wraps it
	}
	t.line("from_seconds", "people")
	for _, bin := range times.Bins {
		t.line(cell(bin[0]), cell(bin[1]))
	}
	return nil
}

// cohorts writes a line for each cohort of a retention.
func (t *table) cohorts(results []byte) error {
	var cohorts []struct {
		Date      string          `json:"date"`
		Breakdown json.RawMessage `json:"breakdown_value"`
		Values    []struct {
			Label string          `json:"label"`
			Count json.RawMessage `json:"count"`
		} `json:"values"`
	}
	if err := json.Unmarshal(results, &cohorts); err != nil {
		return err // Insight wraps it
	}
	names := []string{"date", "breakdown"}
	if len(cohorts) > 0 {
		for _, v := range cohorts[0].Values {
			names = append(names, v.Label)
		}
	}
	t.line(names...)
	for _, c := range cohorts {
		cells := []string{c.Date, cell(c.Breakdown)}
		for _, v := range c.Values {
			cells = append(cells, cell(v.Count))
		}
		t.line(cells...)
	}
	return nil
}

// edges writes a line for each edge of paths.
func (t *table) edges(results []byte) error {
	var edges []map[string]json.RawMessage
	if err := json.Unmarshal(results, &edges); err != nil {
		return err // Insight wraps it
	}
	names := []string{"source", "target", "value", "average_conversion_time"}
	t.line(names...)
	for _, e := range edges {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = cell(e[name])
		}
		t.line(cells...)
	}
	return nil
}
