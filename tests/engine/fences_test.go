package engine_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// guardText is the first fence in printed SQL.
var guardText = regexp.MustCompile("(?:(?:`(?:[^`\\\\]|\\\\.)*`|\\w+)\\.)?team_id = " + strconv.Itoa(tenant) + `\b`)

// TestFences writes random queries and asks them as one project: beside another project's rows, and where there are no
// others. Nothing that comes back, be it rows, an error or a line of the log, may hold a marker of the other project, and
// the answers must be the same, errors too. The same must hold with either fence taken away: seeds take turns.
func TestFences(t *testing.T) {
	all := newTenants(t)
	examineMany(t, all.db, 500, all.examine)
	for _, entry := range all.logs.All() {
		if text := strings.ToLower(fmt.Sprint(entry.Message, entry.ContextMap())); strings.Contains(text, marker) {
			t.Errorf("a line of the log holds the marker: %s", text)
		}
	}
}

// examineMany examines random queries, in rounds of standard, four at a time.
func examineMany(t *testing.T, db *schema.Database, standard int, examine func(*testing.T, *generator, string, uint64, *tally)) {
	t.Helper()
	library := newLibrary(t, db)
	count, seed := rounds(t, standard), firstSeed(t)
	tally := &tally{refused: map[string]int{}, failed: map[string]int{}}
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for seed := range next {
				g := library.generator(seed)
				examine(t, g, g.query(), seed, tally)
			}
		})
	}
	for i := range count {
		if tally.bad.Load() >= 10 {
			break
		}
		next <- uint64(seed + i)
	}
	close(next)
	workers.Wait()
	t.Log(tally)
	if answered := tally.answered.Load(); answered*100 < int64(count)*60 && tally.bad.Load() == 0 {
		t.Errorf("only %d of %d queries were answered: the generator tells too little", answered, count)
	}
}

// tally counts what became of the queries.
type tally struct {
	answered, errors, compared, bad atomic.Int64

	mu      sync.Mutex
	refused map[string]int // by the compiler: its words
	failed  map[string]int // by the engine: kind and code
}

func (c *tally) String() string {
	text := fmt.Sprintf("%d answered, %d of them or of the errors compared, %d failed on the engine", c.answered.Load(), c.compared.Load(), c.errors.Load())
	return fmt.Sprintf("%s %v, refused by the compiler: %v", text, c.failed, c.refused)
}

// examine asks one query in all ways.
func (all *tenants) examine(t *testing.T, g *generator, text string, seed uint64, c *tally) {
	t.Helper()
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: all.db, Actions: all.actions, Now: day})
	if err != nil {
		mistakes := compiler.Mistakes(err)
		if mistakes == nil {
			c.bad.Add(1)
			t.Errorf("seed %d: %v\n%s", seed, err, text)
			return
		}
		c.mu.Lock()
		c.refused[mistakes[0].Detail]++
		c.mu.Unlock()
		return
	}
	open := guardText.ReplaceAllString(compiled.SQL, "1 = 1")
	want := all.ask(t.Context(), t, all.alone, asked(compiled))
	switch {
	case want.err != nil:
		c.errors.Add(1)
		c.mu.Lock()
		c.failed[want.verdict()+" "+strings.SplitN(want.err.Message, ":", 2)[0]]++
		c.mu.Unlock()
	default:
		c.answered.Add(1)
	}
	way := []struct {
		name   string
		client *clickhouse.Client
		sql    string
	}{
		{"the guards alone", all.unfenced, compiled.SQL},
		{"additional_table_filters alone", all.both, open},
		{"both fences", all.both, compiled.SQL},
	}[seed%3]
	q := asked(compiled)
	q.SQL = way.sql
	got := all.ask(t.Context(), t, way.client, q)
	differs := !g.unstable && !got.cut() && !want.cut() && got.verdict() != want.verdict()
	if !g.unstable {
		c.compared.Add(1)
	}
	if leaks := strings.Contains(strings.ToLower(got.text), marker); leaks || differs {
		c.bad.Add(1)
		t.Errorf("seed %d, %s: leaks %t, differs %t, %d and %d rows\n%s\n--- SQL\n%s\n%v\n--- got\n%s\n--- want\n%s",
			seed, way.name, leaks, differs, len(got.rows), len(want.rows), text, way.sql, q.Params, short(got.text), short(want.text))
	}
}

func short(s string) string {
	if len(s) > 1500 {
		return s[:1500] + "…"
	}
	return s
}
