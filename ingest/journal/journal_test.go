package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

func TestEntriesSurvive(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	want := []journal.Entry{
		{ID: 1, Project: 7, Arrived: arrived, Events: 2, Data: []byte("{}\n{}\n")},
		{ID: 2, Project: -1, Arrived: arrived.Add(time.Hour), Data: []byte{}},
		{ID: 3, Project: 1 << 60, Arrived: arrived, Events: 1, Data: []byte(incompressible(1, 300_000))},
	}
	for _, e := range want {
		e.ID = 99 // not looked at
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"at once", "after Close and Open"} {
		if diff := cmp.Diff(want, readAll(t, j, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if s := j.Stats(); s.Entries != 3 || s.Events != 3 || !s.Oldest.Equal(arrived) || s.Bytes < 140_000 {
			t.Errorf("%s: stats %+v", name, s)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir, journal.Options{})
	}
}

// Without this package, an operator can see what waits: a segment is a valid file for zstd.
func TestSegmentIsZstd(t *testing.T) {
	dir := t.TempDir()
	appendAll(t, open(t, dir, journal.Options{}), "a\n", "b\n")
	file, err := os.Open(segments(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	dec, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if got, err := io.ReadAll(dec); err != nil || string(got) != "a\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	const appenders, each = 64, 50
	dir := t.TempDir()
	j := open(t, dir, journal.Options{MaxBytes: 8 << 20}) // with segments of 512 KiB
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			for i := range each {
				if err := j.Append(t.Context(), entry(fmt.Sprintf("%d/%d/%s", a, i, incompressible(a*each+i, 1000)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(segments(t, dir)); n < 3 {
		t.Errorf("%d segments: the test should fill some", n)
	}
	_ = j.Close()
	j = open(t, dir, journal.Options{})
	next := make([]int, appenders) // each appender's entries are in its order
	got := readAll(t, j, 0)
	for _, e := range got {
		var a, i int
		if _, err := fmt.Sscanf(string(e.Data), "%d/%d/", &a, &i); err != nil || next[a] != i {
			t.Fatalf("entry %d is %.20s, want number %d (%v)", e.ID, e.Data, next[a], err)
		}
		next[a]++
	}
	if len(got) != appenders*each {
		t.Errorf("%d entries, want %d", len(got), appenders*each)
	}
}

func TestReadFromTheMiddle(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	appendAll(t, j, "a", "b", "c", "d")
	for after, want := range map[uint64]string{0: "a b c d", 1: "b c d", 3: "d", 4: ""} {
		if got := texts(readAll(t, j, after)); got != want {
			t.Errorf("after %d: %q, want %q", after, got, want)
		}
	}
	for size, want := range map[int]string{0: "a", 1: "a", 3: "a b c"} {
		if got, err := j.Read(t.Context(), 0, size); err != nil || texts(got) != want {
			t.Errorf("%d bytes: %q, %v, want %q", size, texts(got), err, want)
		}
	}
}

func TestReadWaits(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	got := make(chan string)
	go func() {
		entries, err := j.Read(t.Context(), 0, 100)
		got <- fmt.Sprint(texts(entries), err)
	}()
	appendAll(t, j, "a")
	if g := <-got; g != "a<nil>" {
		t.Error(g)
	}
	go func() {
		_, err := j.Read(t.Context(), 1, 100)
		got <- fmt.Sprint(err)
	}()
	_ = j.Close()
	if g := <-got; g != journal.ErrClosed.Error() {
		t.Error(g)
	}
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	appendAll(t, j, "a", "b", "c")
	for upTo, want := range []string{"a b c", "b c", "c", ""} {
		if err := j.Forget(t.Context(), uint64(upTo)); err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			if got := texts(readAll(t, j, 0)); got != want {
				t.Errorf("forgotten up to %d, reopened %v: %q, want %q", upTo, again, got, want)
			}
			left := int64(3 - upTo)
			if s := j.Stats(); s.Entries != left || s.Events != 3*left || s.Oldest.IsZero() != (left == 0) {
				t.Errorf("forgotten up to %d, reopened %v: %+v", upTo, again, s)
			}
			_ = j.Close()
			j = open(t, dir, journal.Options{})
		}
	}
	if files := segments(t, dir); len(files) > 0 {
		t.Errorf("left on disk: %v", files)
	}
	appendAll(t, j, "d")
	if got := readAll(t, j, 0); len(got) != 1 || got[0].ID != 4 {
		t.Errorf("an ID was given twice, or the entry is lost: %+v", got)
	}
}

func TestForgetMissing(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	if err := j.Forget(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, "a")
	if got := texts(readAll(t, j, 0)); got != "a" {
		t.Errorf("an entry was forgotten before it came: %q", got)
	}
}

func TestFullAndRoomAgain(t *testing.T) {
	dir := t.TempDir()
	const limit = 2 << 20
	j := open(t, dir, journal.Options{MaxBytes: limit})
	for round := range 3 {
		var err error
		n := 0
		for err == nil {
			err = j.Append(t.Context(), entry(incompressible(n, 20_000)))
			n++
		}
		if !errors.Is(err, journal.ErrFull) {
			t.Fatal(err)
		}
		all := readAll(t, j, 0)
		if len(all) != n-1 || n < 50 {
			t.Fatalf("round %d: %d entries, %d were acknowledged", round, len(all), n-1)
		}
		if onDisk := diskUsage(t, dir); onDisk > limit || j.Stats().Bytes > limit || onDisk != j.Stats().Bytes {
			t.Errorf("%d bytes on disk, %d in Stats, with a limit of %d", onDisk, j.Stats().Bytes, limit)
		}
		half := all[len(all)/2].ID
		if err := j.Forget(t.Context(), half); err != nil {
			t.Fatal(err)
		}
		if onDisk := diskUsage(t, dir); onDisk > limit/2+limit/8 {
			t.Errorf("%d bytes on disk after half of %d is delivered", onDisk, limit)
		}
		if err := j.Append(t.Context(), entry("room again")); err != nil {
			t.Errorf("after Forget: %v", err)
		}
		if err := j.Forget(t.Context(), all[len(all)-1].ID+1); err != nil {
			t.Fatal(err)
		}
		if onDisk := diskUsage(t, dir); onDisk > limit/16 || onDisk != j.Stats().Bytes {
			t.Errorf("%d bytes on disk after all is delivered, %d in Stats", onDisk, j.Stats().Bytes)
		}
	}
}

func TestFullAtOnce(t *testing.T) {
	const limit = 1 << 20
	dir := t.TempDir()
	j := open(t, dir, journal.Options{MaxBytes: limit})
	var wg sync.WaitGroup
	var kept atomic.Int64
	for a := range 100 {
		wg.Go(func() {
			switch err := j.Append(t.Context(), entry(incompressible(a, 50_000))); {
			case err == nil:
				kept.Add(1)
			case !errors.Is(err, journal.ErrFull):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := j.Stats(); s.Bytes > limit || s.Entries != kept.Load() || kept.Load() < 10 || kept.Load() == 100 {
		t.Errorf("%d were acknowledged, of %+v", kept.Load(), s)
	}
}

func diskUsage(tb testing.TB, dir string) (n int64) {
	tb.Helper()
	for _, file := range segments(tb, dir) {
		info, err := os.Stat(file)
		if err != nil {
			tb.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func TestAppendWithoutTime(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Append(ctx, entry("a")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := j.Stats(); s.Entries != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	_, err := journal.Open(dir, journal.Options{})
	want := "opening the event log in " + dir + ": it is in use by another process; only one at a time may use it"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_ = j.Close()
	open(t, dir, journal.Options{})
}

func TestClosed(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	for range 2 {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	_, read := j.Read(t.Context(), 0, 1)
	_, aside := j.SetAside(t.Context(), entry("a"), "because")
	for _, err := range []error{j.Append(t.Context(), entry("a")), read, j.Forget(t.Context(), 1), aside} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	e := entry(`{"event":"a"}`)
	e.ID = 12
	for range 2 {
		path, err := j.SetAside(t.Context(), e, "no such column")
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, "aside", "project-7-entry-12.ndjson"); path != want {
			t.Errorf("path %s, want %s", path, want)
		}
		for file, want := range map[string]string{
			path:                 "{\"event\":\"a\"}\n",
			path + ".reason.txt": "no such column\nproject 7, 3 events, arrived 2026-05-01T12:00:00.123Z\n",
		} {
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v, want %q", file, got, err, want)
			}
		}
	}
	if n := j.Stats().Aside; n != 1 {
		t.Errorf("%d aside, want 1", n)
	}
	_ = j.Close()
	if n := open(t, dir, journal.Options{}).Stats().Aside; n != 1 {
		t.Errorf("%d aside after Open, want 1", n)
	}
}

// TestSetAsideMany: to set an entry aside takes no longer the more are aside, and files that someone has removed are noticed after a minute.
func TestSetAsideMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, t.TempDir(), journal.Options{})
		setAside := func(id uint64) {
			t.Helper()
			e := entry(`{"event":"a"}`)
			e.ID = id
			if _, err := j.SetAside(t.Context(), e, "no such column"); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 1000 {
			if err := os.WriteFile(filepath.Join(j.AsideDir(), fmt.Sprintf("project-1-entry-%d.ndjson", n)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		setAside(1)
		if allocs := testing.AllocsPerRun(10, func() { setAside(1) }); allocs > 500 {
			t.Errorf("it makes %v allocations with 1000 files there", allocs)
		}
		setAside(2)
		if n := j.Stats().Aside; n != 2 {
			t.Errorf("%d aside, want the 2 that it has set aside since it listed them", n)
		}
		time.Sleep(61 * time.Second)
		setAside(3)
		if n := j.Stats().Aside; n != 1003 {
			t.Errorf("%d aside, want 1003", n)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadEnds(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := j.Read(ctx, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWaitingOfAProject: what waits is known of each project by itself, also after a restart.
func TestWaitingOfAProject(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	for i, project := range []int64{1, 2, 1, 1} {
		e := journal.Entry{Project: project, Arrived: arrived.Add(time.Duration(i) * time.Second), Events: 10 * (i + 1), Data: []byte("x")}
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, project, entries, events int64, oldest time.Time) {
		t.Helper()
		w := j.Waiting(project)
		if w.Entries != entries || w.Events != events || (w.Bytes > 0) != (entries > 0) || !w.Oldest.Equal(oldest) {
			t.Errorf("%s: of project %d there waits %+v, want %d entries, %d events, the oldest of %s", what, project, w, entries, events, oldest)
		}
	}
	check("all", 1, 3, 80, arrived)
	check("all", 2, 1, 20, arrived.Add(time.Second))
	check("all", 3, 0, 0, time.Time{})
	all := readAll(t, j, 0)
	if err := j.Forget(t.Context(), all[1].ID); err != nil {
		t.Fatal(err)
	}
	check("two less", 1, 2, 70, arrived.Add(2*time.Second))
	check("two less", 2, 0, 0, time.Time{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, journal.Options{})
	check("opened again", 1, 2, 70, arrived.Add(2*time.Second))
	check("opened again", 2, 0, 0, time.Time{})
	if err := j.Forget(t.Context(), all[3].ID); err != nil {
		t.Fatal(err)
	}
	check("none", 1, 0, 0, time.Time{})
}
