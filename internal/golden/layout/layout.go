// Package layout breaks the text of golden files into lines, without losing anything.
package layout

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/sqllayout"
)

// MaxLine is the maximum number of characters in a line of a golden file.
const MaxLine = 160

// width is the length that lines of a text should not exceed.
const width = 120

// SQL breaks a statement into lines like [sqllayout.Lay]. It fails the test if that would lose something.
func SQL(tb testing.TB, sql string) string {
	tb.Helper()
	laid, ok := sqllayout.Lay(sql)
	if !ok {
		tb.Fatalf("the layout of a statement loses something:\n%s", sql)
	}
	return laid
}

// Text breaks lines that are too long. A line end followed by two tabs stands for a space.
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
