package journal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// sample returns a segment with the entries a to e, its name, and where each record starts.
func sample(t *testing.T) (name string, content []byte, starts []int64) {
	t.Helper()
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		starts = append(starts, j.Stats().Bytes)
		appendAll(t, j, text+incompressible(len(starts), 100))
	}
	_ = j.Close()
	file := segments(t, dir)[0]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(file), content, append(starts, int64(len(content)))
}

func withSegment(t *testing.T, name string, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func initials(entries []journal.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteByte(e.Data[0])
	}
	return b.String()
}

func TestTornTail(t *testing.T) {
	name, content, starts := sample(t)
	for _, zeros := range []int{0, 5000} { // some file systems leave zeros where data should be
		for cut := starts[4]; cut < starts[5]; cut++ {
			if zeros > 0 && cut > starts[4] {
				continue
			}
			dir := withSegment(t, name, append(content[:cut:cut], make([]byte, zeros)...))
			logged, logs := observer.New(zapcore.InfoLevel)
			j := open(t, dir, journal.Options{Logger: zap.New(logged)})
			if s := j.Stats(); s.Entries != 4 || s.Aside != 0 || s.Bytes != starts[4] {
				t.Fatalf("cut at %d: %+v", cut, s)
			}
			if torn := cut > starts[4] || zeros > 0; logs.Len() != 0 != torn {
				t.Errorf("cut at %d: %v", cut, logs.All())
			}
			appendAll(t, j, "f")
			_ = j.Close()
			j = open(t, dir, journal.Options{})
			if got := initials(readAll(t, j, 0)); got != "abcdf" {
				t.Fatalf("cut at %d: %s", cut, got)
			}
			_ = j.Close()
		}
	}
}

// At most the entry that the bit belongs to is lost, and the loss is reported.
func TestFlippedBit(t *testing.T) {
	name, content, starts := sample(t)
	for at := 0; at < len(content); at += 3 {
		damaged := append([]byte(nil), content...)
		damaged[at] ^= 1 << (at % 8)
		hit := 0
		for int64(at) >= starts[hit+1] {
			hit++
		}
		want := strings.Replace("abcde", string(rune('a'+hit)), "", 1)
		dir := withSegment(t, name, damaged)
		logged, logs := observer.New(zapcore.InfoLevel)
		j := open(t, dir, journal.Options{Logger: zap.New(logged)})
		all := readAll(t, j, 0)
		if got := initials(all); got != want {
			t.Fatalf("bit %d of byte %d: %s, want %s", at%8, at, got, want)
		}
		readAll(t, j, 0)
		if logs.Len() != 1 {
			t.Fatalf("byte %d: %d log lines", at, logs.Len())
		}
		fields := logs.All()[0].ContextMap()
		if fields["offset"] != starts[hit] || fields["size"] != starts[hit+1]-starts[hit] {
			t.Fatalf("byte %d: %v", at, fields)
		}
		kept, err := os.ReadFile(fmt.Sprint(fields["copy"]))
		if err != nil || string(kept) != string(damaged[starts[hit]:starts[hit+1]]) || j.Stats().Aside != 1 {
			t.Fatalf("byte %d: the copy of %d bytes is not what is damaged (%v)", at, len(kept), err)
		}
		if err := j.Forget(t.Context(), all[len(all)-1].ID); err != nil {
			t.Fatal(err)
		}
		readable(t, j, all[len(all)-1].ID)
		_ = j.Close()
	}
}

// readable checks that after damage the journal is empty once the rest is forgotten, and goes on.
func readable(t *testing.T, j *journal.Journal, after uint64) {
	t.Helper()
	readAll(t, j, after)
	if s := j.Stats(); s.Entries != 0 || s.Bytes != 0 {
		t.Fatalf("after all that is readable is forgotten: %+v", s)
	}
	appendAll(t, j, "f")
	if got := initials(readAll(t, j, after)); got != "f" {
		t.Fatalf("after damage: %q", got)
	}
}

func TestRandomDamage(t *testing.T) {
	name, content, _ := sample(t)
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		damaged := append([]byte(nil), content...)
		for range 1 + r.IntN(20) {
			switch from := r.IntN(len(damaged)); r.IntN(3) {
			case 0:
				damaged[from] ^= 1 << r.IntN(8)
			case 1: // a sector of zeros
				clear(damaged[from:min(from+512, len(damaged))])
			case 2: // a part written twice
				copy(damaged[from:], content[r.IntN(len(content)):])
			}
		}
		dir := withSegment(t, name, damaged)
		j := open(t, dir, journal.Options{})
		all := readAll(t, j, 0)
		for _, e := range all {
			if want := string(e.Data[:1]) + incompressible(int(e.Data[0]-'a')+1, 100); string(e.Data) != want {
				t.Fatalf("seed %d: entry %d was never appended: %q", seed, e.ID, e.Data)
			}
		}
		last := uint64(0)
		if len(all) > 0 {
			last = all[len(all)-1].ID
		}
		if err := j.Forget(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		readable(t, j, last)
		_ = j.Close()
	}
}

// A client can send what looks like a record. It never becomes one, even where the log is damaged.
func TestForgedRecord(t *testing.T) {
	_, genuine, starts := sample(t)
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	appendAll(t, j, string(genuine[:starts[1]]), "b")
	_ = j.Close()
	file := segments(t, dir)[0]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[20] ^= 1 // the header of the first entry
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), string(genuine[:starts[1]])) {
		t.Fatal("the forged record was compressed, so it is not tested")
	}
	if got := initials(readAll(t, open(t, dir, journal.Options{}), 0)); got != "b" {
		t.Errorf("read %q", got)
	}
}

func TestDamagedPosition(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	appendAll(t, j, "a", "b", "c")
	for id := range uint64(2) {
		if err := j.Forget(t.Context(), id+1); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	file := filepath.Join(dir, "delivered")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{0: "bc", 512: "c", len(content) - 1: "c"} { // the second Forget wrote the first place
		damaged := append([]byte(nil), content...)
		damaged[at] ^= 1
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir, journal.Options{})
		if got := initials(readAll(t, j, 0)); got != want {
			t.Errorf("byte %d: %s, want %s", at, got, want)
		}
		_ = j.Close()
	}
}
