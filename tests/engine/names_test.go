package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestZonesAreTheEngines compares our list of time zones with those of Go and the engine: it holds all that both know, and a
// zone that is loaded under another name is the same under both.
func TestZonesAreTheEngines(t *testing.T) {
	if testing.Short() {
		t.Skip("the engine loads each zone, 4.6 MB")
	}
	noPlaces := []string{"Factory", "localtime", "posixrules", "Local", ""}
	want := slices.DeleteFunc(names(t, "SELECT time_zone AS x FROM system.time_zones"), func(name string) bool {
		_, err := time.LoadLocation(name)
		return err != nil || slices.Contains(noPlaces, name)
	})
	slices.Sort(want)
	known := slices.Sorted(schema.ZoneNames())
	for _, name := range want {
		if _, ok := slices.BinarySearch(known, name); !ok {
			t.Errorf("Go and the engine know %s: add it to compiler/schema/zones.txt", name)
		}
	}
	conn := embeddedtest.Connect(t, dsn)
	for _, name := range known {
		if _, ok := slices.BinarySearch(want, name); !ok {
			t.Errorf("the engine does not know %s: take it out of compiler/schema/zones.txt", name)
			continue
		}
		target, _ := schema.LookupZone(name)
		if target == name {
			continue
		}
		// Each half hour of a century and a half.
		differ := fmt.Sprintf("SELECT countIf(timeZoneOffset(toTimeZone(t, '%s')) != timeZoneOffset(toTimeZone(t, '%s'))) FROM "+
			"(SELECT fromUnixTimestamp64Milli(toInt64(-2208988800000 + number * 1800000), 'UTC') AS t FROM numbers(2630000))", name, target)
		var n uint64
		if err := conn.QueryRow(t.Context(), differ).Scan(&n); err != nil || n > 0 {
			t.Errorf("%s and %s differ at %d times (%v)", name, target, n, err)
		}
	}
}

// TestCharsetsAreTheEngines: the engine knows each character set that convertCharset takes.
func TestCharsetsAreTheEngines(t *testing.T) {
	f, _ := schema.LookupFunction("convertCharset")
	conn := embeddedtest.Connect(t, dsn)
	seen := 0
	for name := range f.Names.All() {
		seen++
		var back string
		text := fmt.Sprintf("SELECT convertCharset(convertCharset('abc', 'utf-8', '%s'), '%s', 'utf-8')", name, name)
		if err := conn.QueryRow(t.Context(), text).Scan(&back); err != nil || back != "abc" {
			t.Errorf("'abc' to %s and back is %q: %v", name, back, err)
		}
	}
	if seen < 50 {
		t.Errorf("only %d character sets", seen)
	}
}

// probe is a name of nothing. The engine says so when it looks for a time zone, a type or a character set of that name.
const probe = "No_Such_Name"

// looked are the answers that say that the engine looked for something by its name.
var looked = []string{"Cannot load time zone", "Unknown data type", "charset"}

// TestNoTextBecomesAName calls each function of the table with a name of nothing in the place of each argument, among
// arguments of many types. Where the engine says that it found no such zone, type or character set, a caller's text came to
// where the engine opens files for it, and keeps what it finds: a row of the table does not say that the argument is a name.
func TestNoTextBecomesAName(t *testing.T) {
	conn := embeddedtest.Connect(t, dsn)
	for _, text := range []string{"toTimeZone(now(), '" + probe + "')", "CAST(1, '" + probe + "')", "convertCharset('a', '" + probe + "', 'utf-8')"} {
		err := conn.Exec(t.Context(), "SELECT "+text)
		if found := lookedFor(err); found == "" {
			t.Fatalf("the engine answers %s with %v, which the test does not recognize", text, err)
		}
	}
	s := &sweep{db: &schema.Database{Project: project, Location: time.UTC, Layout: schema.NativeLayout()}, about: map[string]string{}}
	calls := make(chan string, 64)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for text := range calls {
				s.ask(t, text)
			}
		})
	}
	for f := range schema.Functions() {
		if f.Base == "" { // combinators take what their aggregate takes
			eachCall(f, func(call string) { calls <- call })
		}
	}
	close(calls)
	workers.Wait()
	for _, message := range slices.Sorted(maps.Values(s.about)) {
		t.Log(message)
	}
	t.Logf("%d calls, %d refused, %d answered or refused by the engine", s.asked, s.refused, s.sent)
	if s.sent < 3000 {
		t.Errorf("only %d calls came to the engine: the test shows too little", s.sent)
	}
}

// lookedFor gives the message of the engine when it looked for the probe.
func lookedFor(err error) string {
	text := fmt.Sprint(err, errors.Unwrap(err))
	for _, words := range looked {
		if strings.Contains(text, words) {
			return text
		}
	}
	return ""
}

// sweep asks many calls.
type sweep struct {
	db *schema.Database

	mu                   sync.Mutex
	asked, refused, sent int
	about                map[string]string // by their first words, the messages that quote the probe
}

// ask compiles a call and runs what comes out.
func (s *sweep) ask(t *testing.T, text string) {
	t.Helper()
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: s.db, Now: day})
	s.mu.Lock()
	s.asked++
	if err != nil {
		s.refused++
		s.mu.Unlock()
		return
	}
	s.sent++
	s.mu.Unlock()
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	_, err = client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: project}, nothing{})
	s.note(err)
	if found := lookedFor(err); found != "" {
		t.Errorf("%s\nis no mistake, and the engine looks for the name:\n%s", text, found)
	}
}

// note keeps one message of each sort that quotes the probe, for those who look for names of another kind.
func (s *sweep) note(err error) {
	text := fmt.Sprint(errors.Unwrap(err))
	if err == nil || !strings.Contains(text, probe) {
		return
	}
	text, _, _ = strings.Cut(text, "In scope")
	if !strings.Contains(text, probe) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.about[text[:min(len(text), 70)]] = text
}

// stand are arguments of many types, for the places beside the probe.
var stand = []string{"now()", "1", "'{\"a\": 1}'", "['a']", "interval 1 day", "'day'", "x -> x"}

// eachCall gives calls of a function with the probe in one place.
func eachCall(f *schema.Function, use func(string)) {
	most := f.MinArgs + 2
	if f.MaxArgs != schema.Any {
		most = min(most, f.MaxArgs)
	}
	for n := max(f.MinArgs, 1); n <= most; n++ {
		for at := range n {
			eachFilling(n, at, func(args []string) {
				args[at] = "'" + probe + "'"
				use(written(f, args))
			})
		}
	}
}

// eachFilling gives the arguments beside one: of all types in all combinations where there are few, else all of one type,
// with a time as the first too.
func eachFilling(n, but int, use func([]string)) {
	for i, first := range stand {
		for j, other := range stand {
			switch {
			case n == 1 && i+j > 0, n == 2 && j > 0, n > 3 && i > 0 && i != j:
				continue // the same again, or too many
			}
			args := slices.Repeat([]string{other}, n)
			args[min(n-1, 1-min(but, 1))] = first
			use(args)
		}
	}
}

// written is the query with the call.
func written(f *schema.Function, args []string) string {
	params, over := "", ""
	if f.MinParams > 0 {
		params = "(" + strings.Join(slices.Repeat([]string{"1"}, f.MinParams), ", ") + ")"
	}
	if f.WindowOnly {
		over = " over ()"
	}
	return "select " + f.Name + params + "(" + strings.Join(args, ", ") + ")" + over
}
