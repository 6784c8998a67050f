package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// TestCopy copies a journal to which others append all the time: the copy has what waits, in order, and nothing else.
func TestCopy(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "capture"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	append1 := func(n int) {
		if err := j.Append(t.Context(), journal.Entry{Project: 1, Arrived: time.Unix(int64(n), 0), Events: 1, Data: []byte(fmt.Sprint(n))}); err != nil {
			t.Error(err)
		}
	}
	for n := range 50 {
		append1(n)
	}
	first, err := j.Read(t.Context(), 0, 20) // ten of one digit, five of two
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Forget(t.Context(), first[len(first)-1].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := j.SetAside(t.Context(), first[0], "a reason"); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 50; ; n++ {
			select {
			case <-stop:
				return
			default:
				append1(n)
			}
		}
	}()
	folder := t.TempDir()
	if err := j.Copy(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-stopped

	copied, err := journal.Open(folder, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copied.Close() })
	entries, err := copied.Read(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 50-len(first) {
		t.Errorf("the copy has %d entries", len(entries))
	}
	for i, e := range entries {
		if want := fmt.Sprint(len(first) + i); string(e.Data) != want {
			t.Fatalf("entry %d of the copy is %s, want %s", i, e.Data, want)
		}
	}

	other, err := journal.Open(filepath.Join(t.TempDir(), "capture"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for range 2 { // the second time they are there already
		if err := other.AddAside(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
	}
	const added = "project-1-entry-1-restored-9a271f2a.ndjson"
	if diff := cmp.Diff([]string{added, added + ".reason.txt"}, names(t, other.AsideDir())); diff != "" || other.Stats().Aside != 1 {
		t.Errorf("files set aside (-want +got):\n%s", diff)
	}
	if _, err := other.SetAside(t.Context(), first[0], "that of another entry"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{added: "0\n", added + ".reason.txt": "a reason\n"} {
		if text, err := os.ReadFile(filepath.Join(other.AsideDir(), name)); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if err := other.EraseAside(t.Context(), func(project int64, _ []byte) bool { return project == 1 }); err != nil {
		t.Fatal(err)
	}
	if left := names(t, other.AsideDir()); len(left) > 0 {
		t.Errorf("after an erasure %v is left", left)
	}
}

func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}
