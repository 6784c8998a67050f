package warehouse

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestEpochs: a span gets another version after a write to one of its hours, and keeps its version after other writes while there are few epochs;
// versions never return.
func TestEpochs(t *testing.T) {
	const hours = 4000
	random := rand.New(rand.NewPCG(1, 2))
	known, version := epochs{{firstHour, 1}}, uint64(1)
	somewhere := func(most int64) span {
		from := random.Int64N(hours)
		return span{from, from + 1 + random.Int64N(most)}
	}
	coarsened := false
	for range 2500 {
		var asked []span
		var before []uint64
		for range 20 {
			asked = append(asked, somewhere(50))
		}
		asked = append(asked, span{firstHour, lastHour}, span{firstHour, somewhere(1).from}, span{somewhere(1).from, lastHour})
		for _, s := range asked {
			before = append(before, known.of(s))
		}
		written := []span{somewhere(3)}
		for random.IntN(3) > 0 && len(written) < 5 {
			written = append(written, somewhere(3))
		}
		version++
		next := known.with(written, version)
		exact := len(next) > len(known)-10 // no epochs were merged
		coarsened = coarsened || !exact
		if len(next) > maxEpochs {
			t.Fatalf("%d epochs", len(next))
		}
		for n, s := range asked {
			after := next.of(s)
			switch touched := slices.ContainsFunc(written, s.overlaps); {
			case after < before[n]:
				t.Fatalf("the version of %v falls from %d to %d", s, before[n], after)
			case touched && after != version:
				t.Fatalf("%v was written to, and %v has version %d, not %d", written, s, after, version)
			case !touched && exact && after != before[n]:
				t.Fatalf("%v was written to, and the version of %v moves from %d to %d", written, s, before[n], after)
			}
		}
		if next[0].From != firstHour || !slices.IsSortedFunc(next, func(a, b Epoch) int { return int(a.From - b.From) }) {
			t.Fatalf("epochs %v", next)
		}
		known = next
	}
	if !coarsened {
		t.Error("there were never too many epochs")
	}
}

// TestSpansOf: the spans of hours cover all of them, and are not many.
func TestSpansOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hours func(yield func(int64))
		spans int
	}{
		{"none", func(func(int64)) {}, 0},
		{"a run", func(yield func(int64)) {
			for h := range int64(1000) {
				yield(h - 500)
			}
		}, 1},
		{"two", func(yield func(int64)) { yield(-1); yield(5) }, 2},
		{"one each day", func(yield func(int64)) {
			for d := range int64(200) {
				yield(24*d + 7)
			}
		}, 1},
		{"one each month", func(yield func(int64)) {
			for d := range int64(50) {
				yield(24*30*d + 7)
			}
		}, 50},
		{"many months", func(yield func(int64)) {
			for d := range int64(500) {
				yield(24*30*d - 7)
			}
		}, 1},
	} {
		hours := map[int64]struct{}{}
		tt.hours(func(h int64) { hours[h] = struct{}{} })
		spans := spansOf(hours)
		if len(spans) != tt.spans {
			t.Errorf("%s: %d spans, want %d", tt.name, len(spans), tt.spans)
		}
		for h := range hours {
			if !slices.ContainsFunc(spans, span{h, h + 1}.overlaps) {
				t.Errorf("%s: hour %d is in none of %v", tt.name, h, spans)
			}
		}
	}
}

// TestHour: times before 1970 and distant times have hours of their own.
func TestHour(t *testing.T) {
	for at, want := range map[time.Time]int64{
		time.Unix(0, 0): 0, time.Unix(3599, 0): 0, time.Unix(-1, 0): -1, time.Unix(-3600, 0): -1, time.Unix(-3601, 0): -2,
		time.Unix(1<<62, 0): lastHour - 1, time.Unix(-1<<62, 0): firstHour,
	} {
		if got := hour(at); got != want {
			t.Errorf("the hour of %v is %d, want %d", at, got, want)
		}
	}
}

var (
	ofEvents  = schema.Reads{Tables: []string{physical.Events}}
	ofPersons = schema.Reads{Tables: []string{physical.Events, "person"}}
	noon      = time.Date(2024, 3, 4, 12, 0, 0, 0, time.UTC)
)

// version returns the version of all events of a project; 0 while it is unknown.
func (c *changes) version(project int64, reads schema.Reads, from, to time.Time) uint64 {
	version, ok := c.now(project).Version(reads, from, to)
	if !ok {
		return 0
	}
	return version
}

// write begins a write of an event of project 1.
func write(c *changes, at time.Time) (end func(error)) {
	return c.Begin(1, physical.Events, slices.Values([]time.Time{at}))
}

// TestVersionOfWrites: a write changes the version of its hour, in its project only, and the version is unknown in the meantime.
func TestVersionOfWrites(t *testing.T) {
	c := newChanges()
	type asked struct {
		project  int64
		reads    schema.Reads
		from, to time.Time
	}
	hit := asked{1, ofEvents, noon, noon.Add(time.Minute)}
	all := []asked{
		hit,
		{1, ofPersons, noon.Add(-time.Hour), noon.Add(time.Hour)},
		{1, ofEvents, time.Time{}, time.Time{}},
		{1, ofEvents, noon.Add(-time.Hour), noon},
		{1, ofEvents, noon.Add(time.Hour), time.Time{}},
		{1, schema.Reads{Tables: []string{"person"}}, time.Time{}, time.Time{}},
		{2, ofEvents, noon, noon.Add(time.Minute)},
		{1, schema.Reads{}, noon, noon.Add(time.Minute)},
	}
	const touched = 3 // the first ones
	versions := func() (out []uint64) {
		for _, a := range all {
			out = append(out, c.version(a.project, a.reads, a.from, a.to))
		}
		return out
	}
	before := versions()
	end := write(c, noon.Add(10*time.Minute))
	for n, v := range versions() {
		if want := before[n]; n < touched && v != 0 || n >= touched && v != want {
			t.Errorf("%+v has version %d during the write, %d before", all[n], v, want)
		}
	}
	end(nil)
	for n, v := range versions() {
		if (v != before[n]) != (n < touched) || v == 0 {
			t.Errorf("%+v has version %d after the write, %d before", all[n], v, before[n])
		}
	}
	if _, ok := c.now(1).Version(schema.Reads{Tables: []string{"elsewhere"}}, time.Time{}, time.Time{}); ok {
		t.Error("the version of a table that nobody watches is known")
	}
}

// TestVersionsOfPeople: distinct ids that change hands, and persons whose creation time changes, change the version of the hours in which they have
// events. The version of other hours changes only for queries that read more than whose the events are and when these persons were created.
func TestVersionsOfPeople(t *testing.T) {
	later := noon.Add(5 * time.Hour)
	for _, tt := range []struct {
		name                string
		times               iter.Seq[time.Time]
		atNoon, inFiveHours bool
	}{
		{"events at noon", slices.Values([]time.Time{noon.Add(time.Minute)}), true, false},
		{"no events", slices.Values([]time.Time{}), false, false},
		{"nobody knows which events", nil, true, true},
	} {
		for _, table := range []string{physical.Overrides, physical.Persons} {
			all := schema.Reads{Tables: []string{physical.Events, table}, Overrides: true}
			ofPeople := schema.Reads{Tables: all.Tables, Created: true}
			c := newChanges()
			read := func(reads schema.Reads, at time.Time) uint64 { return c.version(1, reads, at, at.Add(time.Hour)) }
			write(c, noon)(nil)
			before := [...]uint64{read(ofPeople, noon), read(ofPeople, later), read(all, later), read(ofEvents, noon)}
			end := c.Begin(1, table, tt.times)
			if got := [...]bool{read(ofPeople, noon) == 0, read(ofPeople, later) == 0, read(all, later) == 0}; got != [...]bool{tt.atNoon, tt.inFiveHours, true} {
				t.Errorf("%s, %s, under way: unknown: %v", table, tt.name, got)
			}
			end(nil)
			if got := read(ofPeople, noon) > before[0]; got != tt.atNoon {
				t.Errorf("%s, %s: the version of noon moves: %t", table, tt.name, got)
			}
			if got := read(ofPeople, later) > before[1]; got != tt.inFiveHours {
				t.Errorf("%s, %s: the version of five hours later moves: %t", table, tt.name, got)
			}
			if read(all, later) <= before[2] {
				t.Errorf("%s, %s: the version of the whole table stays", table, tt.name)
			}
			if read(ofEvents, noon) != before[3] {
				t.Errorf("%s, %s: the version of who reads no people moves", table, tt.name)
			}
		}
	}
}

// TestDoubt: after a failed write the version is unknown until the write is settled; if the rows were refused, there are none.
func TestDoubt(t *testing.T) {
	c := newChanges()
	read := func() uint64 { return c.version(1, ofEvents, time.Time{}, time.Time{}) }
	first := read()
	write(c, noon)(errors.New("the connection broke"))
	write(c, noon)(nil)
	if read() != 0 || !c.Doubtful(1) {
		t.Error("a write that broke off is not in doubt")
	}
	c.Settled(2)
	if read() != 0 {
		t.Error("another project's write settles it")
	}
	c.Settled(1)
	if read() <= first || c.Doubtful(1) {
		t.Error("a write that is settled is in doubt")
	}
	running := write(c, noon)
	if c.Settled(1); read() != 0 {
		t.Error("a write that goes on is settled")
	}
	running(nil)
	before := read()
	if write(c, noon)(&clickhouse.Error{Code: 117}); read() <= before {
		t.Error("rows that were refused are in doubt")
	}
	before = read()
	if c.begin(1, &change{table: physical.Events, kind: mutation})(&clickhouse.Error{Code: 497}); read() <= before {
		t.Error("a statement that was refused is in doubt")
	}
	before = read()
	if c.outdating([]clickhouse.Kept{{Project: 1, From: noon}})(false, errUnchanged); read() != before {
		t.Error("a change that found nothing moves the version")
	}
}

// TestDoubtfulMutation: a finished mutation of a table proves that earlier ones are finished too, whatever their project.
func TestDoubtfulMutation(t *testing.T) {
	c := newChanges()
	begin := func(project int64, table string) func(error) {
		return c.begin(project, &change{table: table, kind: mutation})
	}
	known := func() bool { return c.version(1, ofPersons, time.Time{}, time.Time{}) != 0 }
	earlier := begin(2, physical.Events)
	begin(1, physical.Events)(errors.New("the time is up"))
	if begin(2, "person")(nil); known() {
		t.Error("a mutation of another table settles it")
	}
	if begin(2, physical.Events)(errUnchanged); known() {
		t.Error("a mutation that was not sent settles it")
	}
	if c.outdating([]clickhouse.Kept{{Project: 2, From: noon}})(false, nil); known() {
		t.Error("parts that were dropped settle it")
	}
	if earlier(nil); known() {
		t.Error("an earlier mutation settles it")
	}
	if begin(2, physical.Events)(nil); !known() {
		t.Error("a later mutation does not settle it")
	}
}

// TestForgottenHistory: nothing is kept of a forgotten project, and none of its versions returns.
func TestForgottenHistory(t *testing.T) {
	c := newChanges()
	read := func() uint64 { return c.version(1, ofPersons, time.Time{}, time.Time{}) }
	first := read()
	running := write(c, noon)
	if c.forget(1); read() != 0 {
		t.Error("a write that goes on is forgotten")
	}
	running(nil)
	c.Begin(1, "person", nil)(errors.New("the connection broke"))
	if c.forget(1); len(c.projects) != 0 {
		t.Errorf("%d histories are kept", len(c.projects))
	}
	second := read()
	write(c, noon.AddDate(1, 0, 0))(nil)
	if third := c.version(1, schema.Reads{Tables: []string{"person"}}, time.Time{}, time.Time{}); second <= first+1 || third != second {
		t.Errorf("versions %d, %d after it was forgotten, %d of people after an event", first, second, third)
	}
}

// TestFutureEvent: an event in the far future does not cause the present hours to be merged.
func TestFutureEvent(t *testing.T) {
	const present = 2 * hoursOfDay
	now := hour(time.Now())
	known, version := epochs{{firstHour, 1}}, uint64(1)
	write := func(at int64) {
		version++
		known = known.with([]span{{at, at + 1}}, version)
	}
	write(now + 1<<20)
	for n := range int64(present) {
		write(now - n)
	}
	for n := int64(1); ; n++ {
		before := len(known)
		if write(now - 1<<16 + 3*n); len(known) < before {
			break // there were too many
		}
	}
	for n := range int64(present - 1) {
		if a, b := known.of(span{now - n, now - n + 1}), known.of(span{now - n - 1, now - n}); a == b {
			t.Fatalf("%d hours before now, the version is that of the hour before: %d", n, a)
		}
	}
}

// TestDoubtfulStatement: a statement has ended once ClickHouse's time limit for it has passed.
func TestDoubtfulStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChanges()
		reads := schema.Reads{Tables: []string{physical.ComputedMembers}}
		read := func() uint64 { return c.version(1, reads, time.Time{}, time.Time{}) }
		before := read()
		c.begin(1, &change{table: physical.ComputedMembers, kind: statement})(errors.New("the connection broke"))
		time.Sleep(statementTime)
		if read() != 0 {
			t.Error("it is known too early")
		}
		time.Sleep(time.Second)
		if read() <= before {
			t.Error("it is never known again")
		}
	})
}

// TestAllProjects: a change of all projects changes their versions, including those that nobody asked about before.
func TestAllProjects(t *testing.T) {
	c := newChanges()
	write(c, noon)(nil)
	read := func(project int64) uint64 { return c.version(project, ofEvents, noon, noon.Add(time.Hour)) }
	one, two := read(1), read(2)
	if end := c.beginAll(); read(1) != 0 || read(2) != 0 {
		t.Error("versions are known meanwhile")
	} else {
		end(errors.New("it broke off"))
	}
	if read(1) != 0 {
		t.Error("versions are known after it failed")
	}
	c.beginAll()(nil)
	if read(1) <= one || read(2) <= two {
		t.Error("the versions stay")
	}
	one, two = read(1), read(2)
	if c.changed(1); read(1) <= one || read(2) != two {
		t.Error("what changes one project moves another, or nothing")
	}
}

// TestVersionsWhileWriting: a reader that sees the same known version before and after has read the same data.
func TestVersionsWhileWriting(t *testing.T) {
	c := newChanges()
	var mu sync.Mutex
	rows := 0 // the data
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				end := write(c, noon)
				mu.Lock()
				rows++
				mu.Unlock()
				end(nil)
			}
		})
	}
	look := func() int { mu.Lock(); defer mu.Unlock(); return rows }
	for range 20_000 {
		before := c.version(1, ofEvents, noon, noon.Add(time.Hour))
		first := look()
		second := look()
		if after := c.version(1, ofEvents, noon, noon.Add(time.Hour)); before != 0 && before == after && first != second {
			t.Fatalf("version %d has %d and %d rows", before, first, second)
		}
	}
	stop()
	wg.Wait()
	if c.version(1, ofEvents, noon, noon.Add(time.Hour)) == 0 {
		t.Error("the version stays unknown")
	}
}
