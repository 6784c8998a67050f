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

// How many characters the tables of run_insights have, as in PostHog: who reads them is a language model.
const (
	defaultTable = 2000  // of one, if the caller does not say
	leastTable   = 200   // of one that is of use
	allTables    = 30000 // of all; tiles after that are not run
)

// maxNotRun is how many tiles are listed that were not run.
const maxNotRun = 25

// readTableLimit reads max_result_chars, which is 0 for whole tables.
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
	case most > 0 && most < leastTable:
		return 0, api.Invalid(name, "invalid_input", "max_result_chars must be %d or greater, or zero for the whole table.", leastTable)
	}
	return most, nil
}

// tables are the tables of a dashboard's tiles. These are computed in any order; how long a table may be depends on those before it alone.
type tables struct {
	most int // the characters of one; 0 for any

	mu    sync.Mutex
	tiles []*table // by their place; nil for those that have none or are not there yet
}

// table is what a tile shows.
type table struct {
	shownInsight
	insightResult

	text string // whole
}

// wants is how many characters a table has.
func (t *tables) wants(one *table) int {
	n := utf8.RuneCountInString(one.text)
	if t.most > 0 {
		n = min(n, t.most)
	}
	return n
}

// hasRoom reports whether a tile may still be shown, as far as is known of those before it.
func (t *tables) hasRoom(place int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	used := 0
	for _, one := range t.tiles[:place] {
		if one != nil {
			used += t.wants(one)
		}
	}
	return allTables-used >= leastTable
}

// put keeps what a tile shows.
func (t *tables) put(place int, one *table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tiles[place] = one
}

// show shows tiles with their tables, in order, as long as there is room. wanted reports whether a tile is to be shown.
func (t *tables) show(out []tileRecord, insights []shownInsight, wanted func(place int) bool, appendTo func(one *table) []byte) {
	used := 0
	var left []int // the places of those that there is no room for
	for i, one := range t.tiles {
		switch {
		case !wanted(i):
		case allTables-used < leastTable:
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

// cutTable shortens a table to a number of characters, 0 for any, and says so in it: rows of its middle are left out, as the latest may be at either
// end. The first line is that of the columns.
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
	head, tail := 1, len(lines) // what is left out lies between these
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
