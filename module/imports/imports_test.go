package imports_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
)

// runner replaces the importer: it reads the file, and fails or waits if the file says so.
type runner struct {
	began   chan string
	away    int           // how often it fails as if the database were away
	release chan struct{} // what does not stop ends when it is closed
}

var errAway = errors.New("away")

func (r *runner) run(ctx context.Context, _ imports.Request, in *os.File, progress func(line, events int)) (*adminapi.Import, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	progress(1, 1)
	if r.began != nil {
		r.began <- string(text)
	}
	switch string(text) {
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	case "deaf":
		<-r.release
		return nil, ctx.Err()
	case "slow":
		<-r.release
	case "bad":
		return &adminapi.Import{}, &imports.FileError{Err: errors.New("the file is bad")}
	case "lines":
		return &adminapi.Import{Events: 1, Bad: 1, BadLines: []adminapi.BadLine{{Line: 2, Reason: "the file is bad"}}}, nil
	case "broken":
		return nil, errors.New("a secret of the server")
	case "panic":
		panic("a defect")
	case "away":
		if r.away--; r.away >= 0 {
			return nil, errAway
		}
	}
	return &adminapi.Import{Events: len(text)}, nil
}

func open(t *testing.T, folder string, r *runner) *imports.Service {
	t.Helper()
	s, err := imports.New(imports.Config{
		Folder: folder, Logger: zap.NewNop(), Run: r.run, Pause: 2 * time.Millisecond, Transient: func(err error) bool { return errors.Is(err, errAway) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func add(t *testing.T, s *imports.Service, project int64, text string) *imports.Import {
	t.Helper()
	one, err := s.Add(imports.Request{Project: project}, strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// until waits for an import to be in a state.
func until(t *testing.T, s *imports.Service, one *imports.Import, status imports.Status) *imports.Import {
	t.Helper()
	for range 30_000 {
		now, err := s.Get(one.Project, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.Status == status {
			return now
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("the import is not %s", status)
	return nil
}

// files counts the files of a kind in the folder of the project 1.
func files(t *testing.T, folder, project, kind string) (n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, project, "*"+kind))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestLockUnavailable: imports wait while the lock can't be taken. The log says so once.
func TestLockUnavailable(t *testing.T) {
	folder := t.TempDir()
	lock := filepath.Join(folder, "lock")
	if err := os.Mkdir(lock, 0o700); err != nil { // it can't be opened as a file
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	s, err := imports.New(imports.Config{Folder: folder, Logger: zap.New(core), Run: new(runner).run, Pause: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	one := add(t, s, 1, "good")
	eventually.Is(t, "the log says so", func() bool { return logs.Len() > 0 })
	time.Sleep(20 * time.Millisecond) // for a second line
	until(t, s, one, imports.Waiting)
	if logs.FilterMessageSnippet("lock").Len() != 1 || logs.Len() != 1 {
		t.Errorf("without the lock the log has %v", logs.All())
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	until(t, s, one, imports.Completed)
}

func TestOutcomes(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, &runner{away: 2})
	tests := []struct {
		text   string
		status imports.Status
		reason string
	}{
		{"good", imports.Completed, ""},
		{"bad", imports.Failed, "the file is bad"},
		{"broken", imports.Failed, "The server could not write all of the file. Import it again: what was already imported is skipped."},
		{"panic", imports.Failed, "The server could not write all of the file. Import it again: what was already imported is skipped."},
		{"away", imports.Completed, ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got := until(t, s, add(t, s, 1, tt.text), tt.status)
			if got.Error != tt.reason || got.FinishedAt == nil || got.Size != int64(len(tt.text)) {
				t.Errorf("%+v", got)
			}
		})
	}
	all, err := s.List(1)
	if err != nil || len(all) != len(tests) {
		t.Errorf("%d imports, %v", len(all), err)
	}
	for range 30_000 {
		if files(t, folder, "1", ".data") == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Error("files are left of imports that ended")
}

// TestProjects: an import is only found in its own project and by its own id.
func TestProjects(t *testing.T) {
	s := open(t, t.TempDir(), &runner{})
	one := add(t, s, 1, "good")
	for _, id := range []string{one.ID, "../1/" + one.ID, "", "..", strings.ToUpper(one.ID)} {
		if _, err := s.Get(2, id); !errors.Is(err, imports.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
		if err := s.Delete(2, id); !errors.Is(err, imports.ErrNotFound) {
			t.Errorf("deleting %q: %v", id, err)
		}
	}
	if all, err := s.List(2); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	until(t, s, one, imports.Completed)
}

func TestCancel(t *testing.T) {
	folder := t.TempDir()
	r := &runner{began: make(chan string, 10)}
	s := open(t, folder, r)
	running, waiting := add(t, s, 1, "wait"), add(t, s, 1, "good")
	<-r.began
	for _, one := range []*imports.Import{waiting, running} {
		if err := s.Delete(1, one.ID); err != nil {
			t.Fatal(err)
		}
		until(t, s, one, imports.Cancelled)
	}
	if err := s.Delete(1, waiting.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(1, waiting.ID); !errors.Is(err, imports.ErrNotFound) {
		t.Errorf("it was forgotten: %v", err)
	}
	until(t, s, add(t, s, 1, "good"), imports.Completed)
}

// TestCancelledStays: an import that was canceled while running does not continue, even if the server ends before the import has stopped.
func TestCancelledStays(t *testing.T) {
	folder, after := t.TempDir(), t.TempDir()
	r := &runner{began: make(chan string, 10), release: make(chan struct{})}
	s := open(t, folder, r)
	one := add(t, s, 1, "deaf")
	<-r.began
	if err := s.Delete(1, one.ID); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(after, os.DirFS(folder)); err != nil { // what a server finds that starts after a crash
		t.Fatal(err)
	}
	close(r.release)
	until(t, s, one, imports.Cancelled)
	crashed := &runner{began: make(chan string, 10)}
	next := open(t, after, crashed)
	until(t, next, one, imports.Cancelled)
	if len(crashed.began) > 0 {
		t.Error("it runs again after a crash")
	}
	for _, each := range []*imports.Service{s, next} { // which waits until the files are removed
		if err := each.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{folder, after} {
		if n := files(t, where, "1", ".cancelled") + files(t, where, "1", ".data"); n > 0 {
			t.Errorf("%d files are left", n)
		}
	}
}

// TestRestart: running imports continue, and the remains of an interrupted upload are removed.
func TestRestart(t *testing.T) {
	folder := t.TempDir()
	r := &runner{began: make(chan string, 10)}
	s := open(t, folder, r)
	one := add(t, s, 1, "wait")
	<-r.began
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(1, one.ID); err != nil || got.Status != imports.Waiting {
		t.Errorf("%+v, %v", got, err)
	}
	left := filepath.Join(folder, "1", "left.partial")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, before, before); err != nil {
		t.Fatal(err)
	}
	r = &runner{began: make(chan string, 10)}
	s = open(t, folder, r)
	if got := <-r.began; got != "wait" {
		t.Errorf("%q runs", got)
	}
	if n := files(t, folder, "1", ".partial"); n > 0 {
		t.Errorf("%d partial files are left", n)
	}
	if err := s.Delete(1, one.ID); err != nil {
		t.Error(err)
	}
}

// TestCrashes: an import that is running when the server crashes is given up after three such starts; one that a server stops is not.
func TestCrashes(t *testing.T) {
	folder := t.TempDir()
	r := &runner{began: make(chan string, 10)}
	s := open(t, folder, r)
	one := add(t, s, 1, "wait")
	<-r.began
	record := filepath.Join(folder, "1", one.ID+".json")
	running, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, folder, r)
		<-r.began
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The server crashes: it does not record that the import waits again.
		if err := os.WriteFile(record, running, 0o600); err != nil {
			t.Fatal(err)
		}
		s = open(t, folder, r)
		<-r.began
		if running, err = os.ReadFile(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, running, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, folder, r)
	if got := until(t, s, one, imports.Failed); got.Error != "The server stopped 3 times while it was importing the file." {
		t.Errorf("%+v", got)
	}
}

// TestRecordNotWritten: while the record of an import can't be written, as when the disk is full, the import waits with its file. Then it begins, is completed
// or is cancelled, whatever could not be recorded.
func TestRecordNotWritten(t *testing.T) {
	// fill makes it impossible to write the record of an import until free is called.
	fill := func(t *testing.T, folder string, one *imports.Import) (free func()) {
		t.Helper()
		blocked := filepath.Join(folder, "1", one.ID+".json.tmp")
		if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.RemoveAll(blocked); err != nil {
				t.Fatal(err)
			}
		}
	}
	const attempts = 100 * time.Millisecond // long enough for some
	tests := []struct {
		name string
		text string // of an import that is running when the disk becomes full
		next bool   // another one is waiting, and its record can't be written
		want imports.Status
		runs []string // after the running one has ended
	}{
		{"begins", "deaf", true, imports.Completed, []string{"good"}},
		{"completes", "slow", false, imports.Completed, nil},
		{"cancelled", "deaf", false, imports.Cancelled, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			r := &runner{began: make(chan string, 100), release: make(chan struct{})}
			s := open(t, folder, r)
			one := add(t, s, 1, tt.text)
			<-r.began
			if tt.text == "deaf" {
				if err := s.Delete(1, one.ID); err != nil {
					t.Fatal(err)
				}
			}
			if tt.next {
				one = add(t, s, 1, "good")
			}
			before, err := s.Get(1, one.ID)
			if err != nil {
				t.Fatal(err)
			}
			free := fill(t, folder, one)
			close(r.release)
			time.Sleep(attempts)
			if got, err := s.Get(1, one.ID); err != nil || got.Status != before.Status || got.Starts != before.Starts {
				t.Errorf("while the disk is full: %+v, %v, want the state %s", got, err, before.Status)
			}
			if n := files(t, folder, "1", ".data"); n != 1 {
				t.Errorf("while the disk is full there are %d files, want the import's", n)
			}
			if len(r.began) > 0 {
				t.Errorf("%q ran while the disk was full", <-r.began)
			}
			free()
			got := until(t, s, one, tt.want)
			if got.Error != "" {
				t.Errorf("%+v", got)
			}
			var runs []string
			for len(r.began) > 0 {
				runs = append(runs, <-r.began)
			}
			if diff := cmp.Diff(tt.runs, runs); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			if err := s.Close(); err != nil { // which waits until the files are removed
				t.Fatal(err)
			}
			if n := files(t, folder, "1", ".cancelled") + files(t, folder, "1", ".data"); n > 0 {
				t.Errorf("%d files are left", n)
			}
		})
	}
}

// TestRemains: what an upload or an import left when its process was killed is removed, even if it was too new when the service began. What is being
// received or read stays, however long nothing was written to it.
func TestRemains(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, &runner{})
	ended := until(t, s, add(t, s, 1, "good"), imports.Completed)
	body, end := io.Pipe()
	var uploads sync.WaitGroup
	defer uploads.Wait()
	defer func() { _ = end.Close() }()
	uploads.Go(func() { _, _ = s.Add(imports.Request{Project: 2}, body, 0, 1<<20) })
	if _, err := end.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	spool, done, err := imports.Spool(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spool.Close() }()
	receiving, err := filepath.Glob(filepath.Join(folder, "2", "*.partial"))
	if err != nil || len(receiving) != 1 {
		t.Fatalf("being received: %v, %v", receiving, err)
	}
	used := []string{receiving[0], spool.Name()}
	var left []string
	for _, name := range []string{"spool-1", "1/x.partial", "1/y.data", "1/" + ended.ID + ".data"} {
		left = append(left, filepath.Join(folder, name))
	}
	for _, name := range left {
		if err := os.WriteFile(name, []byte("remains"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	age := func(names ...string) {
		for _, name := range names {
			if err := os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Minute)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	gone := func(names ...string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			there := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, err := os.Stat(name); return errors.Is(err, os.ErrNotExist) })
			if len(there) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%v are still there", there)
			}
		}
	}
	age(append(left, used...)...)
	gone(left...)
	for _, name := range used {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("in use: %v", err)
		}
	}
	done()
	gone(spool.Name())
}

// TestIdle: neither looking for work nor an upload reads the records of imports that have ended.
func TestIdle(t *testing.T) {
	folder := t.TempDir()
	core, logs := observer.New(zap.ErrorLevel)
	s, err := imports.New(imports.Config{Folder: folder, Logger: zap.New(core), Run: new(runner).run, Pause: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	until(t, s, add(t, s, 1, "good"), imports.Completed)
	if err := os.WriteFile(filepath.Join(folder, "1", "damaged.json"), nil, 0o600); err != nil { // which is logged when it is read
		t.Fatal(err)
	}
	until(t, s, add(t, s, 1, "good"), imports.Completed)
	if all := logs.All(); len(all) > 0 {
		t.Errorf("it logged %+v", all)
	}
	if all, err := s.List(1); err != nil || len(all) != 2 || logs.Len() != 1 {
		t.Errorf("%d imports, %v, and %d messages", len(all), err, logs.Len())
	}
}

// TestForgotten: of each project's imports that have ended, the newest 100 are remembered, for a week. One whose data is gone ends.
func TestForgotten(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(status imports.Status, created, finished time.Time) string {
		t.Helper()
		one := imports.Import{Request: imports.Request{Project: 1}, ID: uuid.NewString(), Status: status, CreatedAt: created}
		if !finished.IsZero() {
			one.FinishedAt = &finished
		}
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "1", one.ID+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return one.ID
	}
	now := time.Now()
	excess := write(imports.Completed, now.Add(-3*time.Hour), now)
	for range 99 {
		write(imports.Completed, now.Add(-2*time.Hour), now)
	}
	old := write(imports.Completed, now.Add(-time.Hour), now.Add(-8*24*time.Hour))
	lost := write(imports.Waiting, now, time.Time{})
	s := open(t, folder, &runner{})
	until(t, s, &imports.Import{Request: imports.Request{Project: 1}, ID: lost}, imports.Failed)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		all, err := s.List(1)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 100 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d imports are remembered", len(all))
		}
	}
	for name, id := range map[string]string{"the oldest": excess, "one that ended long ago": old} {
		if _, err := s.Get(1, id); !errors.Is(err, imports.ErrNotFound) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// TestDamagedRecords: unreadable records, as after a power failure, are left out, and hold up nothing.
func TestDamagedRecords(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a": "", "b": "{", "c": "{}", "d": `{"id":"d","project":2,"status":"waiting"}`} {
		if err := os.WriteFile(filepath.Join(folder, "1", name+".json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, folder, &runner{})
	for project := range int64(2) {
		until(t, s, add(t, s, project+1, "good"), imports.Completed)
	}
	if all, err := s.List(1); err != nil || len(all) != 1 {
		t.Errorf("%d imports, %v", len(all), err)
	}
}

// TestTooLong: an import that takes too long fails, and others continue.
func TestTooLong(t *testing.T) {
	s, err := imports.New(imports.Config{
		Folder: t.TempDir(), Logger: zap.NewNop(), Run: (&runner{}).run, Pause: 2 * time.Millisecond, MaxTime: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := until(t, s, add(t, s, 1, "wait"), imports.Failed)
	if want := "The import took longer than 1s. Split the file into smaller ones: what was already imported is skipped."; got.Error != want {
		t.Errorf("%q", got.Error)
	}
	until(t, s, add(t, s, 1, "good"), imports.Completed)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

type brokenBody struct{}

var errGone = errors.New("gone")

func (brokenBody) Read([]byte) (int, error) { return 0, errGone }

func TestLimits(t *testing.T) {
	folder := t.TempDir()
	r := &runner{began: make(chan string, 100)}
	s := open(t, folder, r)
	add(t, s, 1, "wait")
	<-r.began
	_, large := s.Add(imports.Request{Project: 1}, strings.NewReader("too large"), 1, 5)
	_, gone := s.Add(imports.Request{Project: 1}, io.MultiReader(strings.NewReader("a"), brokenBody{}), 1, 5)
	if !errors.Is(large, imports.ErrSize) || !errors.Is(gone, errGone) {
		t.Errorf("too large: %v; gone: %v", large, gone)
	}
	if n := files(t, folder, "1", ".partial"); n > 0 {
		t.Errorf("%d partial files are left", n)
	}
	_, room := s.Add(imports.Request{Project: 2}, strings.NewReader("x"), 3<<20, 1<<20)
	if !errors.Is(room, imports.ErrRoom) {
		t.Errorf("room: %v", room)
	}
	spool := filepath.Join(folder, "spool-1")
	if err := os.WriteFile(spool, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(spool, 4<<20); err != nil {
		t.Fatal(err)
	}
	if _, room := s.Add(imports.Request{Project: 2}, strings.NewReader("x"), 1, 1<<20); !errors.Is(room, imports.ErrRoom) {
		t.Errorf("room beside a file that is being read: %v", room)
	}
	if err := os.Remove(spool); err != nil {
		t.Fatal(err)
	}
	var taken []error
	for range 11 {
		_, err := s.Add(imports.Request{Project: 1}, strings.NewReader("good"), 4, 1<<20)
		taken = append(taken, err)
	}
	var refused int
	for _, err := range taken {
		if errors.Is(err, imports.ErrQueue) {
			refused++
		}
	}
	if diff := cmp.Diff(2, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	add(t, s, 2, "good") // another project has a queue of its own
}

// TestOpenUploads: uploads that send nothing leave the room to others, whatever size they announce. An upload for which there is no more room is
// refused while it is sent.
func TestOpenUploads(t *testing.T) {
	const most = 100 << 20
	folder := t.TempDir()
	s := open(t, folder, &runner{})
	var uploads sync.WaitGroup
	defer uploads.Wait()
	for project := range int64(6) {
		body, end := io.Pipe()
		defer func() { _ = end.Close() }()
		uploads.Go(func() { _, _ = s.Add(imports.Request{Project: project + 1}, body, most, most) })
		if _, err := end.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Add(imports.Request{Project: 1}, strings.NewReader("good"), most, most); err != nil {
		t.Errorf("beside open uploads: %v", err)
	}
	spool := filepath.Join(folder, "spool-1")
	if err := os.WriteFile(spool, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(spool, 250<<20); err != nil {
		t.Fatal(err)
	}
	body := bytes.NewReader(make([]byte, 90<<20))
	if _, err := s.Add(imports.Request{Project: 1}, body, 0, most); !errors.Is(err, imports.ErrRoom) {
		t.Errorf("an upload that brings more than there is room for: %v", err)
	}
	if n := files(t, folder, "1", ".partial"); n != 1 {
		t.Errorf("%d partial files are there, want that of the open upload", n)
	}
}

// TestOthersGoOn: an import that takes long only holds up its own project.
func TestOthersGoOn(t *testing.T) {
	r := &runner{began: make(chan string, 10)}
	s := open(t, t.TempDir(), r)
	slow := add(t, s, 1, "wait")
	<-r.began
	behind := add(t, s, 1, "good")
	until(t, s, add(t, s, 2, "good"), imports.Completed)
	if now, err := s.Get(1, behind.ID); err != nil || now.Status != imports.Waiting {
		t.Errorf("%+v, %v", now, err)
	}
	if err := s.Delete(1, slow.ID); err != nil {
		t.Fatal(err)
	}
	until(t, s, behind, imports.Completed)
}

// TestForget: nothing is left of a deleted project, whatever its imports are doing; other projects are not touched.
func TestForget(t *testing.T) {
	folder := t.TempDir()
	r := &runner{began: make(chan string, 10)}
	s := open(t, folder, r)
	ended := until(t, s, add(t, s, 1, "bad"), imports.Failed)
	other := until(t, s, add(t, s, 2, "good"), imports.Completed)
	for range 2 {
		<-r.began
	}
	running, waiting := add(t, s, 1, "wait"), add(t, s, 1, "good")
	<-r.began
	if err := s.Forget(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*imports.Import{ended, running, waiting} {
		if _, err := s.Get(1, one.ID); !errors.Is(err, imports.ErrNotFound) {
			t.Errorf("an import is still there: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the project's folder is still there: %v", err)
	}
	if _, err := s.Get(2, other.ID); err != nil {
		t.Errorf("an import of another project: %v", err)
	}
	if err := s.Forget(t.Context(), 1); err != nil {
		t.Errorf("forgetting again: %v", err)
	}
	select {
	case text := <-r.began:
		t.Errorf("an import began of a project that is gone: %q", text)
	default:
	}
}

// TestGone: a server by itself removes its data of a project that another server deleted.
func TestGone(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"1", "2", "spool"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "x.data"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := imports.New(imports.Config{
		Folder: folder, Logger: zap.NewNop(), Run: new(runner).run, Pause: 2 * time.Millisecond, Gone: func(project int64) bool { return project == 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, add(t, s, 2, "good"), imports.Completed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"1": 0, "2": 1, "spool": 1} {
		if n := files(t, folder, name, "x.data"); n != want {
			t.Errorf("folder %s has %d files, want %d", name, n, want)
		}
	}
}

// TestEraseReasons: texts that may quote a file are erased, and numbers stay.
func TestEraseReasons(t *testing.T) {
	s := open(t, t.TempDir(), &runner{})
	failed := until(t, s, add(t, s, 1, "bad"), imports.Failed)
	other := until(t, s, add(t, s, 2, "bad"), imports.Failed)
	lines := until(t, s, add(t, s, 1, "lines"), imports.Completed)
	if len(lines.Report.BadLines) == 0 {
		t.Fatal("a report has no bad lines")
	}
	if err := s.EraseReasons(1); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*imports.Import{failed, lines} {
		got, err := s.Get(1, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got.Error, "the file is bad") || len(got.Report.BadLines) > 0 {
			t.Errorf("it still has %q and %v", got.Error, got.Report.BadLines)
		}
		if got.Status != one.Status || got.Events != one.Events || got.Report.Bad != one.Report.Bad {
			t.Errorf("it is %+v, and was %+v", got, one)
		}
	}
	got, err := s.Get(2, other.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(other, got); diff != "" {
		t.Errorf("an import of another project (-want +got):\n%s", diff)
	}
}
