package journal_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// appendOf appends entries of projects, each with its number as data.
func appendOf(tb testing.TB, j *journal.Journal, projects ...int64) {
	tb.Helper()
	for _, project := range projects {
		if err := j.Append(tb.Context(), journal.Entry{Project: project, Arrived: arrived, Events: 1, Data: fmt.Append(nil, project)}); err != nil {
			tb.Fatal(err)
		}
	}
}

// takeAll takes all entries up to an ID that are not delivered.
func takeAll(tb testing.TB, j *journal.Journal, upTo uint64) (ids []uint64) {
	tb.Helper()
	for after := uint64(0); ; {
		next, err := j.Next(after, upTo, 1000, func(int64, uint64) bool { return true })
		if err != nil {
			tb.Fatal(err)
		}
		if len(next.Entries) == 0 {
			return ids
		}
		for _, e := range next.Entries {
			ids = append(ids, e.ID)
		}
		after = next.Last
	}
}

func advance(tb testing.TB, j *journal.Journal, p journal.Progress) {
	tb.Helper()
	if err := j.Advance(tb.Context(), p); err != nil {
		tb.Fatal(err)
	}
}

// TestNext reads at two places of the log, of some projects each.
func TestNext(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	appendOf(t, j, 1, 2, 1, 3, 2, 1) // with the IDs 1 to 6
	for _, tt := range []struct {
		name        string
		after, upTo uint64
		size        int
		wanted      func(project int64, id uint64) bool
		want        string
		last        uint64
	}{
		{"all", 0, math.MaxUint64, 100, func(int64, uint64) bool { return true }, "1 2 1 3 2 1", 6},
		{"no more than fits", 0, math.MaxUint64, 3, func(project int64, _ uint64) bool { return project != 2 }, "1 1 3", 5},
		{"none is wanted", 0, math.MaxUint64, 100, func(int64, uint64) bool { return false }, "", 6},
		{"the last ones are not wanted", 3, math.MaxUint64, 100, func(project int64, _ uint64) bool { return project == 3 }, "3", 6},
		{"up to an entry", 1, 5, 100, func(project int64, _ uint64) bool { return project == 1 }, "1", 5},
		{"up to an entry, no more than fits", 0, 6, 1, func(project int64, id uint64) bool { return project == 1 && id > 1 }, "1", 5},
		{"nothing is left", 6, 6, 100, func(int64, uint64) bool { return true }, "", 6},
	} {
		got, err := j.Next(tt.after, tt.upTo, tt.size, tt.wanted)
		if err != nil || texts(got.Entries) != tt.want || got.Last != tt.last {
			t.Errorf("%s: %q up to %d, %v, want %q up to %d", tt.name, texts(got.Entries), got.Last, err, tt.want, tt.last)
		}
		select {
		case <-got.More:
			t.Errorf("%s: there is more", tt.name)
		default:
		}
	}
	got, err := j.Next(6, math.MaxUint64, 100, func(int64, uint64) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	appendOf(t, j, 4)
	<-got.More
}

// TestProgress delivers entries of some projects before those of others, and opens the journal as it is on the disk at that moment. What was delivered is not read
// again, and does not wait; all else is.
func TestProgress(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	projects := []int64{1, 2, 3, -4}
	for run := range 3 {
		dir := filepath.Join(t.TempDir(), "capture")
		j := open(t, dir, journal.Options{MaxBytes: 2 << 20}) // with segments of 128 KiB
		of, delivered := map[uint64]int64{}, map[uint64]bool{}
		var now journal.Progress
		for step := range 30 {
			for range random.IntN(60) {
				project := projects[random.IntN(len(projects))]
				if err := j.Append(t.Context(), journal.Entry{Project: project, Arrived: arrived, Events: 2, Data: []byte(incompressible(random.Int(), 500))}); err != nil {
					t.Fatal(err)
				}
			}
			next, err := j.Next(now.Last, math.MaxUint64, 1<<30, func(int64, uint64) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range next.Entries {
				of[e.ID] = e.Project
			}
			takeAll(t, j, next.Last)
			now = further(random, now, next.Last, projects)
			if random.IntN(10) == 0 {
				now = journal.Progress{Last: next.Last}
			}
			for id, project := range of {
				if upTo, behind := now.Behind[project]; id <= now.Last && (!behind || id <= upTo) {
					delivered[id] = true
				}
			}
			advance(t, j, now)
			switch random.IntN(4) {
			case 0:
				_ = j.Close()
				j = open(t, dir, journal.Options{MaxBytes: 2 << 20})
			case 1:
				killed := filepath.Join(t.TempDir(), "capture")
				if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				_ = j.Close()
				dir, j = killed, open(t, killed, journal.Options{MaxBytes: 2 << 20})
			case 2:
				copied := t.TempDir()
				if err := j.Copy(t.Context(), copied); err != nil {
					t.Fatal(err)
				}
				other := open(t, copied, journal.Options{})
				checkWaiting(t, other, of, delivered)
				_ = other.Close()
			}
			checkWaiting(t, j, of, delivered)
			p := j.Progress()
			if p.Last < now.Last {
				t.Fatalf("the progress is %+v, want %+v", p, now)
			}
			now = p
			if t.Failed() {
				t.Fatalf("in step %d of run %d", step, run)
			}
		}
		advance(t, j, journal.Progress{Last: slices.Max(slices.Collect(maps.Keys(of)))})
		if s := j.Stats(); s.Entries != 0 || !s.Oldest.IsZero() {
			t.Errorf("in the end there are %+v", s)
		}
		if _, err := os.Stat(filepath.Join(dir, "behind")); err == nil {
			t.Error("the file of what is behind stays")
		}
	}
}

// further returns a progress that says more.
func further(random *rand.Rand, now journal.Progress, last uint64, projects []int64) journal.Progress {
	out := journal.Progress{Last: now.Last + random.Uint64N(last-now.Last+1), Behind: map[int64]uint64{}}
	for _, project := range projects {
		least, behind := now.Behind[project]
		if !behind {
			least = now.Last
		}
		if random.IntN(3) > 0 {
			out.Behind[project] = least + random.Uint64N(out.Last-least+1)
		}
	}
	return out
}

func checkWaiting(t *testing.T, j *journal.Journal, of map[uint64]int64, delivered map[uint64]bool) {
	t.Helper()
	var want []uint64
	entries := map[int64]int64{}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if !delivered[id] {
			want = append(want, id)
			entries[of[id]]++
		}
	}
	if diff := cmp.Diff(want, takeAll(t, j, math.MaxUint64)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	var read []uint64
	for _, e := range readAll(t, j, 0) {
		read = append(read, e.ID)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read by Read (-want +got):\n%s", diff)
	}
	if s := j.Stats(); s.Entries != int64(len(want)) || s.Events != 2*s.Entries || s.Oldest.IsZero() != (s.Entries == 0) {
		t.Errorf("the stats are %+v, want %d entries", s, len(want))
	}
	for _, project := range []int64{1, 2, 3, -4} {
		if w := j.Waiting(project); w.Entries != entries[project] || (w.Bytes > 0) != (w.Entries > 0) || w.Oldest.IsZero() != (w.Entries == 0) {
			t.Errorf("of project %d wait %+v, want %d entries", project, w, entries[project])
		}
	}
}

// TestProgressOfAnotherLog: a progress says nothing of entries that got its IDs later, and a damaged one says nothing at all.
func TestProgressOfAnotherLog(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"the log is lost": func(t *testing.T, dir string) {
			t.Helper()
			for _, file := range append(segments(t, dir), filepath.Join(dir, "delivered")) {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		},
		"it is damaged": func(t *testing.T, dir string) {
			t.Helper()
			file := filepath.Join(dir, "behind")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw[len(raw)-1]++
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "capture")
			j := open(t, dir, journal.Options{})
			appendOf(t, j, 1, 2, 2, 2)
			takeAll(t, j, math.MaxUint64)
			advance(t, j, journal.Progress{Last: 4, Behind: map[int64]uint64{1: 0}})
			if got := texts(readAll(t, j, 0)); got != "1" {
				t.Fatalf("%q is left", got)
			}
			_ = j.Close()
			spoil(t, dir)
			j = open(t, dir, journal.Options{})
			left := len(readAll(t, j, 0))
			if name == "it is damaged" && left != 4 {
				t.Errorf("%d entries are left, want all", left)
			}
			appendOf(t, j, 2, 2, 2, 2, 2)
			_ = j.Close()
			j = open(t, dir, journal.Options{})
			if got := len(readAll(t, j, 0)); got != left+5 {
				t.Errorf("%d entries wait, want %d", got, left+5)
			}
		})
	}
}

// TestProgressPastDamage: a damaged entry holds up neither the log nor the counts, wherever it is.
func TestProgressPastDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "capture")
	j := open(t, dir, journal.Options{})
	appendOf(t, j, 1, 2)
	at, err := os.Stat(segments(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	appendOf(t, j, 2, 2)
	_ = j.Close()
	file := segments(t, dir)[0]
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[(at.Size()+int64(len(raw)))/2-1]++ // at the end of the third entry
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, journal.Options{})
	if got := takeAll(t, j, math.MaxUint64); !slices.Equal(got, []uint64{1, 2, 4}) {
		t.Fatalf("%v can be read", got)
	}
	advance(t, j, journal.Progress{Last: 4, Behind: map[int64]uint64{1: 0}})
	if s, w := j.Stats(), j.Waiting(2); s.Entries != 1 || w.Entries != 0 {
		t.Errorf("there wait %+v, of project 2 %+v", s, w)
	}
	advance(t, j, journal.Progress{Last: 4})
	if s := j.Stats(); s.Entries != 0 {
		t.Errorf("there wait %+v", s)
	}
}

// TestProgressCannotBeWritten: entries before the first that waits free their space all the same, also after a restart.
func TestProgressCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "capture")
	j := open(t, dir, journal.Options{})
	appendOf(t, j, 2, 2, 1, 2)
	takeAll(t, j, math.MaxUint64)
	if err := os.Mkdir(filepath.Join(dir, "behind.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.Advance(t.Context(), journal.Progress{Last: 4, Behind: map[int64]uint64{1: 0}}); err == nil {
		t.Fatal("there is no error")
	}
	if s := j.Stats(); s.Entries != 1 {
		t.Errorf("there wait %+v", s)
	}
	_ = j.Close()
	j = open(t, dir, journal.Options{})
	if got := texts(readAll(t, j, 0)); got != "1 2" {
		t.Errorf("after a restart there wait %q, want what comes after the second entry", got)
	}
}

// TestDamageThatWasPassed: of two damaged entries the second is read first, because the project of the first is behind. Both are reported, once.
func TestDamageThatWasPassed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "capture")
	j := open(t, dir, journal.Options{})
	var ends []int64
	for _, project := range []int64{1, 2, 1, 2} {
		appendOf(t, j, project)
		ends = append(ends, j.Stats().Bytes)
	}
	_ = j.Close()
	file := segments(t, dir)[0]
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[ends[0]-1]++
	raw[ends[1]-1]++
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	logged, logs := observer.New(zapcore.InfoLevel)
	j = open(t, dir, journal.Options{Logger: zap.New(logged)})
	for range 2 {
		for project := int64(2); project >= 1; project-- {
			next, err := j.Next(0, 4, 100, func(of int64, _ uint64) bool { return of == project })
			if err != nil || len(next.Entries) != 1 {
				t.Fatalf("of project %d there is %v, %v", project, next.Entries, err)
			}
		}
	}
	if s := j.Stats(); logs.Len() != 2 || s.Aside != 2 {
		t.Errorf("%d files are aside, and the log has %v", s.Aside, logs.All())
	}
}
