package journal_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// TestRotate: what is delivered leaves the disk, however small its segment is, and what came later stays.
func TestRotate(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	add := func(data string) {
		t.Helper()
		if err := j.Append(t.Context(), journal.Entry{Project: 1, Events: 1, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	add("first")
	upTo := j.Rotate()
	add("second")
	if j.Gone(upTo) {
		t.Error("an entry that waits is gone")
	}
	entries, err := j.Read(t.Context(), 0, 1)
	if err != nil || len(entries) != 1 || string(entries[0].Data) != "first" {
		t.Fatalf("Read() = %v, %v", entries, err)
	}
	if err := j.Forget(t.Context(), entries[0].ID); err != nil {
		t.Fatal(err)
	}
	if !j.Gone(upTo) {
		t.Error("an entry that is delivered is on the disk")
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil || len(segments) != 1 {
		t.Errorf("segments are %v, %v; want one", segments, err)
	}
	entries, err = j.Read(t.Context(), upTo, 1)
	if err != nil || len(entries) != 1 || string(entries[0].Data) != "second" {
		t.Errorf("Read() = %v, %v; want the second entry", entries, err)
	}
}

// TestEraseAside: lines go, and files that have no others; those of other projects stay.
func TestEraseAside(t *testing.T) {
	j, err := journal.Open(t.TempDir(), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n, data := range []string{"a\nb\nc\n", "b\n", "b\n"} {
		if _, err := j.SetAside(context.Background(), journal.Entry{Project: int64(1 + n/2), ID: uint64(n), Data: []byte(data)}, "why"); err != nil { //nolint:gosec // small
			t.Fatal(err)
		}
	}
	err = j.EraseAside(t.Context(), func(project int64, line []byte) bool { return project == 1 && bytes.Equal(line, []byte("b")) })
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(j.AsideDir())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		if data, err := os.ReadFile(filepath.Join(j.AsideDir(), f.Name())); err == nil && !strings.HasSuffix(f.Name(), ".txt") {
			got = append(got, f.Name()+": "+string(data))
		}
	}
	want := []string{"project-1-entry-0.ndjson: a\nc\n", "project-2-entry-2.ndjson: b\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is aside (-want +got):\n%s", diff)
	}
}
