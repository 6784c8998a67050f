// Package layout breaks what goes into golden files over lines, without losing anything.
package layout

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/sqllayout"
)

// MaxLine is how many characters a line of a golden file may have.
const MaxLine = 160

// width is what the lines of a text should not exceed.
const width = 120

// SQL lays a statement out as [sqllayout.Lay] does. It fails for one that would lose something.
func SQL(tb testing.TB, sql string) string {
	tb.Helper()
	laid, ok := sqllayout.Lay(sql)
	if !ok {
		tb.Fatalf("the layout of a statement loses something:\n%s", sql)
	}
	return laid
}

// Text breaks lines that are too long. A line end with two tabs after it stands for a space.
func Text(tb testing.TB, text string) string {
	tb.Helper()
	if strings.Contains(text, breakText) {
		tb.Fatalf("a line begins with two tabs:\n%s", text)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for len(line) > width {
			end := strings.LastIndexByte(line[:width], ' ')
			if end <= 0 {
				break
			}
			b.WriteString(line[:end] + breakText)
			line = line[end+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

const breakText = "\n\t\t"
