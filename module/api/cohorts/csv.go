package cohorts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// headings are the column names, ignoring case, that say what identifies people. If a file has several, the first in this order counts.
var headings = []struct {
	by    func(heading string) clickhouse.Naming
	names []string
	alone bool // also the heading of an only column
}{
	{func(string) clickhouse.Naming { return clickhouse.ByPersonID }, []string{"person_id", "person-id", "person .id"}, true},
	{func(string) clickhouse.Naming { return clickhouse.ByDistinctID }, []string{"distinct_id", "distinct-id"}, false},
	{clickhouse.ByProperty, []string{"email", "e-mail"}, true}, // the property with the name as written
}

// maxListed is the most people that a file can list, each counted once.
const maxListed = 500_000

// readCSV reads the people listed in a file (contract: cohorts.md, section 1).
func readCSV(text []byte) (people, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return people{}, badCSV("CSV file must be encoded in UTF-8.")
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	first, err := r.Read()
	if errors.Is(err, io.EOF) {
		return people{}, badCSV("CSV file is empty. Please upload a CSV file with at least one row of data.")
	}
	if err != nil {
		return people{}, badCSV("CSV file cannot be read: " + err.Error() + ".")
	}
	p, column, ok := columnOf(first)
	if !ok {
		return p, badCSV("Multi-column CSV must contain at least one column with a supported ID header: person_id, distinct_id or email. " +
			"Found: " + strings.Join(shownCells(first), ", "))
	}
	seen := make(map[string]bool)
	for _, name := range p.names { // of the first row
		seen[name] = true
	}
	for {
		var row []string
		if row, err = r.Read(); err != nil {
			break
		}
		name := p.name(row, column)
		if name == "" || seen[name] {
			continue
		}
		if len(p.names) == maxListed {
			return p, badCSV(fmt.Sprintf("CSV file lists more than %d people.", maxListed))
		}
		seen[name] = true
		p.names = append(p.names, name)
	}
	if !errors.Is(err, io.EOF) {
		return p, badCSV("CSV file cannot be read: " + err.Error() + ".")
	}
	if len(p.names) == 0 {
		return p, badCSV("CSV file names nobody: there is no valid person ID, distinct ID or email address below its heading.")
	}
	slices.Sort(p.names)
	return p, nil
}

// columnOf finds the column that identifies people in the first row. Without a heading, the only cell of the row is a distinct id.
func columnOf(first []string) (p people, column int, ok bool) {
	filled := -1
	cells := 0
	for i, cell := range first {
		if strings.TrimSpace(cell) != "" {
			filled, cells = i, cells+1
		}
	}
	for _, h := range headings {
		at := slices.IndexFunc(first, func(cell string) bool { return slices.Contains(h.names, strings.ToLower(strings.TrimSpace(cell))) })
		if at >= 0 && (cells > 1 || h.alone) {
			return people{h.by(strings.TrimSpace(first[at])), []string{}}, at, true
		}
	}
	p = people{clickhouse.ByDistinctID, []string{}}
	switch cells {
	case 0:
		return p, 0, true
	case 1:
		p.names = append(p.names, p.name(first, filled))
		return p, filled, true
	}
	return p, 0, false
}

// name returns the name of the person of a row; empty for a row without that column, or with a blank or invalid id.
func (p *people) name(row []string, column int) string {
	if column >= len(row) {
		return ""
	}
	name := strings.TrimSpace(row[column])
	if p.by == clickhouse.ByPersonID {
		id, err := uuid.Parse(name)
		if err != nil {
			return ""
		}
		return id.String()
	}
	return name
}

// shownCells returns the first cells of a row, shortened for a message.
func shownCells(row []string) []string {
	const most, long = 10, 60
	var out []string
	for _, cell := range row[:min(most, len(row))] {
		if runes := []rune(cell); len(runes) > long {
			cell = string(runes[:long]) + "…"
		}
		out = append(out, cell)
	}
	return out
}

func badCSV(detail string) error { return api.Invalid("csv", "invalid_input", "%s", detail) }
