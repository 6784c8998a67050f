// Package texttable writes results as tables of plain text, for readers that prefer text to JSON, such as language models: a line of names and a line
// for each row, with | between the cells.
package texttable

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// table is a text being built.
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

// escape keeps a cell's text from looking like the end of the cell.
var escape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", `\n`, "\r", `\r`)

// Rows writes rows of JSON arrays below the names of their columns. Cells are truncated to most characters; 0 leaves them whole.
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
			cells[i] = cut(insight.Cell(v), most)
		}
		t.line(cells...)
	}
	return string(t.text), nil
}

// Texts writes a table of texts. Cells are truncated to most characters; 0 leaves them whole.
func Texts(rows [][]string, most int) string {
	var t table
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = cut(text, most)
		}
		t.line(cells...)
	}
	return string(t.text)
}

func cut(text string, most int) string {
	if most <= 0 || len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// Results writes the results of a query whose kind returns more than rows.
func Results(q query.Node, results []byte) (string, error) {
	rows, err := compiler.KindOf(q).Table(q, results)
	if err != nil {
		return "", fmt.Errorf("reading the results of a %s: %w", q.Kind(), err)
	}
	return Texts(rows, 0), nil
}
