package layout_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/golden/layout"
)

func TestText(t *testing.T) {
	line := strings.TrimSuffix(strings.Repeat("word ", 60), " ")
	in := "short\n" + line + "\n\tat " + line + "\n"
	got := layout.Text(t, in)
	for part := range strings.Lines(got) {
		if len(part) > layout.MaxLine {
			t.Errorf("%d characters: %s", len(part), part)
		}
	}
	if joined := strings.ReplaceAll(got, "\n\t\t", " "); joined != in || got == in {
		t.Errorf("joined:\n%s\nwant:\n%s", joined, in)
	}
}
