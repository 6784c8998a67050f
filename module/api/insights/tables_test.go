package insights

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCutTable: a table that is too long keeps its columns and both ends, says what is left out, and never exceeds its limit.
func TestCutTable(t *testing.T) {
	t.Parallel()
	rows := func(n int) string {
		lines := []string{"Däte|Count"}
		for i := range n {
			lines = append(lines, fmt.Sprintf("2026-01-%02d|%d", i+1, i))
		}
		return strings.Join(lines, "\n")
	}
	for _, tt := range []struct {
		name, text string
		most       int
		want       []string // lines
	}{
		{"one that fits", rows(3), 200, []string{rows(3)}},
		{"as long as may be", rows(500), 0, []string{rows(500)}},
		{"rows of the middle", rows(28), 200, []string{
			"Däte|Count", "2026-01-01|0", "2026-01-02|1", "2026-01-03|2", "[22 of 28 rows are left out here. For the whole table, ask with tile_ids=7 and max_result_chars=0.]",
			"2026-01-26|25", "2026-01-27|26", "2026-01-28|27",
		}},
		{"columns that do not fit", strings.Repeat("ä", 300) + "\na\nb", 200, []string{
			strings.Repeat("ä", 110), "[Cut at 200 characters. For the whole table, ask with tile_ids=7 and max_result_chars=0.]",
		}},
		{"one long row", "a\n" + strings.Repeat("b", 300), 200, []string{
			"a", strings.Repeat("b", 108), "[Cut at 200 characters. For the whole table, ask with tile_ids=7 and max_result_chars=0.]",
		}},
		{"a long row at its end", "a\nb\nc\n" + strings.Repeat("d", 300), 200, []string{
			"a", "b", "c", "[1 of 3 rows are left out here. For the whole table, ask with tile_ids=7 and max_result_chars=0.]",
		}},
	} {
		got := cutTable(tt.text, 7, tt.most)
		if want := strings.Join(tt.want, "\n"); got != want || tt.most > 0 && utf8.RuneCountInString(got) > tt.most {
			t.Errorf("%s has %d characters:\n%s\nwant:\n%s", tt.name, utf8.RuneCountInString(got), got, want)
		}
	}
}
