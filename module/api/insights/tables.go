package insights

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// The length of the tables of run_insights in characters, as in PostHog: they are read by language models.
const (
	defaultTable = 2000  // of one, by default
	minTable     = 200   // of one, at least
	allTables    = 30000 // of all together; tiles beyond that are not run
)

// maxNotRun is how many of the tiles that were not run are listed.
const maxNotRun = 25

// readTableLimit reads max_result_chars; 0 means no limit.
func readTableLimit(in *api.Input) (int, error) {
	const name = "max_result_chars"
	text := strings.TrimSpace(in.URL.Query().Get(name))
	if text == "" {
		return defaultTable, nil
	}
	most, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, api.Invalid(name, "invalid_input", "max_result_chars must be an integer.")
	case most < 0:
		return 0, api.Invalid(name, "invalid_input", "max_result_chars must be zero or greater.")
	case most > 0 && most < minTable:
		return 0, api.Invalid(name, "invalid_input", "max_result_chars must be %d or greater, or zero for the whole table.", minTable)
	}
	return most, nil
}

// tables holds the tables of a dashboard's tiles. They are computed in any order, but the length of each depends only on those before it.
type tables struct {
	most int // the maximum characters of one; 0 for no limit

	mu    sync.Mutex
	tiles []*table // by position; nil if there is no table, or not yet
}

// table is what a tile displays.
type table struct {
	shownInsight
	insightResult

	text string // uncut
}

// wants returns the length of a table in characters, within the limit of one.
func (t *tables) wants(one *table) int {
	n := utf8.RuneCountInString(one.text)
	if t.most > 0 {
		n = min(n, t.most)
	}
	return n
}

// hasRoom reports whether there is still room for a tile, as far as the tables before it are known.
func (t *tables) hasRoom(place int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	used := 0
	for _, one := range t.tiles[:place] {
		if one != nil {
			used += t.wants(one)
		}
	}
	return allTables-used >= minTable
}

// put stores what a tile displays.
func (t *tables) put(place int, one *table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tiles[place] = one
}

// show fills in tiles with their tables, in order, while there is room. wanted reports whether to include a tile.
func (t *tables) show(out []tileRecord, insights []shownInsight, wanted func(place int) bool, appendTo func(one *table) []byte) {
	used := 0
	var left []int // positions of the tiles without room
	for i, one := range t.tiles {
		switch {
		case !wanted(i):
		case allTables-used < minTable:
			left = append(left, i)
		default:
			room := t.most
			if room > 0 {
				room = min(room, allTables-used)
			}
			used += t.wants(one)
			one.table = new(cutTable(one.text, out[i].ID, room))
			out[i].Insight = appendTo(one)
		}
	}
	for n, i := range left {
		out[i].Error, out[i].Insight = nil, nil
		if n >= maxNotRun {
			continue
		}
		note := fmt.Sprintf("[Not run: the tables of this response have reached %d characters. For this one, ask with tile_ids=%d.]", allTables, out[i].ID)
		if further := len(left) - maxNotRun; n == maxNotRun-1 && further > 0 {
			note += fmt.Sprintf(" [%d further tiles are not listed; the dashboard has their ids.]", further)
		}
		of := insights[i]
		out[i].Insight = jsontext.Append(nil, map[string]any{
			"id": of.ID, "short_id": of.ShortID, "name": of.Name, "derived_name": of.DerivedName, "result": note,
		})
	}
}

// cutTable shortens a table to at most most characters, or not at all if that is 0, and says so in the text. It leaves out rows in the middle, as the
// latest can be at either end, and keeps the first line, which names the columns.
func cutTable(text string, tile int64, most int) string {
	if most == 0 || utf8.RuneCountInString(text) <= most {
		return text
	}
	whole := fmt.Sprintf("For the whole table, ask with tile_ids=%d and max_result_chars=0.]", tile)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	note := func(left int) string {
		return fmt.Sprintf("[%d of %d rows are left out here. %s", left, len(lines)-1, whole)
	}
	room := most - len(note(len(lines)))
	fits := func(line string) bool { return utf8.RuneCountInString(line)+1 <= room }
	if len(lines) < 3 || !fits(lines[0]) {
		said := fmt.Sprintf("\n[Cut at %d characters. %s", most, whole)
		return string([]rune(text)[:max(most-len(said), 0)]) + said
	}
	take := func(line string) { room -= utf8.RuneCountInString(line) + 1 }
	take(lines[0])
	head, tail := 1, len(lines) // the rows between them are left out
	for tail > head+1 {
		last, first := fits(lines[tail-1]), false
		if last {
			tail--
			take(lines[tail])
		}
		if first = tail > head+1 && fits(lines[head]); first {
			take(lines[head])
			head++
		}
		if !last && !first {
			break
		}
	}
	kept := append(append([]string{}, lines[:head]...), note(tail-head))
	return strings.Join(append(kept, lines[tail:]...), "\n")
}
