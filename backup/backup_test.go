package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/backup"
)

var moment = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// open opens a folder of backups for writing, until the test ends.
func open(t *testing.T, path string) *backup.Folder {
	t.Helper()
	f, err := backup.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// add makes a backup of files with contents.
func add(t *testing.T, f *backup.Folder, contents map[string]string) *backup.Manifest {
	t.Helper()
	w, err := f.Begin(moment)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range contents {
		addFile(t, w, path, content)
	}
	m := &backup.Manifest{Time: moment}
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func addFile(t *testing.T, w *backup.Writer, path, content string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(t.Context(), path, from); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, f *backup.Folder, m *backup.Manifest) error {
	t.Helper()
	return f.Check(t.Context(), m, func(int64) {})
}

// object returns the path of a file's content.
func object(t *testing.T, f *backup.Folder, m *backup.Manifest, path string) string {
	t.Helper()
	for _, file := range m.Files {
		if file.Path == path {
			return filepath.Join(f.Path(), "objects", file.SHA256[:2], file.SHA256)
		}
	}
	t.Fatalf("the backup has no file %s", path)
	return ""
}

func TestIncrements(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "new", "backups"))
	first := add(t, f, map[string]string{"engine/events/1/data.bin": "one", "registry/registry.db": "r"})
	second := add(t, f, map[string]string{"engine/events/1/data.bin": "one", "registry/registry.db": "rr"})
	third := add(t, f, map[string]string{"engine/events/1/data.bin": "one", "registry/registry.db": "rr"})
	if diff := cmp.Diff([]int64{4, 2, 0}, []int64{first.NewBytes, second.NewBytes, third.NewBytes}); diff != "" {
		t.Errorf("new bytes (-want +got):\n%s", diff)
	}
	removed, err := f.Prune(1, third.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{first.Name, second.Name}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if err := check(t, f, third); err != nil {
		t.Errorf("the last backup is not whole without those before: %v", err)
	}
	if _, err := os.Stat(object(t, f, first, "registry/registry.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a content that no backup has is still there: %v", err)
	}
	list, err := f.List()
	if err != nil || len(list) != 1 || list[0] != third.Name {
		t.Errorf("List() = %+v, %v", list, err)
	}
}

// TestPruneKeepsTheNewBackup: the backup that was just made stays complete, even if the clock was set back after the others were made.
func TestPruneKeepsTheNewBackup(t *testing.T) {
	f := open(t, t.TempDir())
	first := add(t, f, map[string]string{"registry/registry.db": "one"})
	second := add(t, f, map[string]string{"registry/registry.db": "two"})
	w, err := f.Begin(moment.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, w, "registry/registry.db", "three")
	made := &backup.Manifest{Time: moment}
	if err := w.Finish(made); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{first.Name, second.Name} {
		removed, err := f.Prune(2-n, made.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, removed); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
	}
	if err := check(t, f, made); err != nil {
		t.Errorf("the new backup is not whole: %v", err)
	}
}

func TestListIsInOrder(t *testing.T) {
	f := open(t, t.TempDir())
	var want []string
	for range 12 {
		want = append(want, add(t, f, nil).Name)
	}
	got, err := f.List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestMemory: making a backup and removing old ones take the memory of one manifest, however many there are.
func TestMemory(t *testing.T) {
	f := open(t, t.TempDir())
	m := &backup.Manifest{Format: 1}
	for n := range 4000 {
		sum := sha256.Sum256(fmt.Append(nil, n))
		m.Files = append(m.Files, backup.File{Path: fmt.Sprintf("engine/events/%d/data.bin", n), Size: 1, SHA256: hex.EncodeToString(sum[:])})
	}
	for day := range 30 {
		m.Name = fmt.Sprintf("202611%02dT120000Z", day+1)
		if err := os.WriteFile(filepath.Join(f.Path(), m.Name+".json"), written(t, m), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := m.Name
	m = nil
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most, done := before.HeapAlloc, make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	w, err := f.Begin(moment)
	if err == nil {
		err = w.Abort()
	}
	removed, pruned := f.Prune(28, name)
	close(done)
	watching.Wait()
	if err = errors.Join(err, pruned); err != nil || len(removed) != 2 {
		t.Fatal(removed, err)
	}
	if took := (most - before.HeapAlloc) >> 20; took > 12 {
		t.Errorf("it took %d MiB of memory", took)
	}
}

func TestPermissions(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "backups"))
	release, err := f.Lock(true)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	add(t, f, map[string]string{"registry/registry.db": "r"})
	err = filepath.WalkDir(f.Path(), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if others := info.Mode().Perm() & 0o077; others != 0 {
			t.Errorf("%s has the permissions %o", path, info.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamage(t *testing.T) {
	const path = "engine/events/1/data.bin"
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		damage func(object string) error
		want   string
	}{
		{"missing", os.Remove, "is missing"},
		{"cut", func(o string) error { return os.Truncate(o, 3) }, "has 3 bytes instead of 7"},
		{"changed", func(o string) error { return os.WriteFile(o, []byte("cOntent"), 0o600) }, "has another checksum: its content was changed"},
		{"a folder", func(o string) error { return errors.Join(os.Remove(o), os.Mkdir(o, 0o700)) }, "is not a regular file"},
		{"a link to the same content", func(o string) error { return errors.Join(os.Remove(o), os.Symlink(outside, o)) }, "is not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, t.TempDir())
			m := add(t, f, map[string]string{path: "content", "registry/registry.db": "r"})
			if err := check(t, f, m); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(object(t, f, m, path)); err != nil {
				t.Fatal(err)
			}
			damage, ok := errors.AsType[*backup.DamageError](check(t, f, m))
			if !ok || damage.File != path || damage.Wrong != tt.want {
				t.Errorf("Check() = %+v, want %q of %s", damage, tt.want, path)
			}
		})
	}
}

func TestAddReplacesDamage(t *testing.T) {
	f := open(t, t.TempDir())
	m := add(t, f, map[string]string{"registry/registry.db": "content"})
	if err := os.WriteFile(object(t, f, m, "registry/registry.db"), []byte("cOntent"), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, f, map[string]string{"registry/registry.db": "content"})
	if err := check(t, f, m); err != nil {
		t.Error(err)
	}
}

func TestBrokenOff(t *testing.T) {
	f := open(t, t.TempDir())
	kept := add(t, f, map[string]string{"registry/registry.db": "r"})
	before := tree(t, f.Path())
	w, err := f.Begin(moment)
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, w, "registry/registry.db", "r")
	addFile(t, w, "engine/events/1/data.bin", "new")
	if list, err := f.List(); err != nil || len(list) != 1 {
		t.Errorf("a backup that is not finished is listed: %+v, %v", list, err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, f.Path())); diff != "" {
		t.Errorf("an aborted backup left something (-before +after):\n%s", diff)
	}
	w, err = f.Begin(moment)
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, w, "engine/events/1/data.bin", "new")
	if err := errors.Join(w.Finish(&backup.Manifest{Time: moment}), w.Abort()); err != nil { // a later step failed
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, f.Path())); diff != "" {
		t.Errorf("a backup that was aborted in the end left something (-before +after):\n%s", diff)
	}
	killed, err := f.Begin(moment)
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, killed, "engine/events/1/data.bin", "new") // and then the process was killed
	next := add(t, f, map[string]string{"registry/registry.db": "r"})
	if next.NewBytes != 0 {
		t.Errorf("the next backup has %d new bytes", next.NewBytes)
	}
	for path := range tree(t, f.Path()) {
		if strings.HasPrefix(path, "unfinished") {
			t.Errorf("the next backup left %s", path)
		}
	}
	if err := errors.Join(check(t, f, kept), check(t, f, next)); err != nil {
		t.Error(err)
	}
}

// tree lists the files below a folder.
func tree(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[strings.TrimPrefix(path, folder+"/")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCancel(t *testing.T) {
	f := open(t, t.TempDir())
	w, err := f.Begin(moment)
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Add(ctx, "a", from); !errors.Is(err, context.Canceled) {
		t.Errorf("Add() = %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if files := tree(t, f.Path()); len(files) > 0 {
		t.Errorf("it left %v", files)
	}
}

func TestForeignFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "holiday.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(folder); !errors.Is(err, backup.ErrForeign) {
		t.Errorf("Create() = %v", err)
	}
	for _, path := range []string{folder, filepath.Join(folder, "none")} {
		if _, err := backup.Open(path); !errors.Is(err, backup.ErrNone) {
			t.Errorf("Open(%s) = %v", path, err)
		}
	}
}

func TestLock(t *testing.T) {
	f := open(t, t.TempDir())
	release, err := f.Lock(false)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := f.Lock(false); err != nil {
		t.Errorf("two readers: %v", err)
	} else {
		other()
	}
	if _, err := f.Lock(true); !errors.Is(err, backup.ErrBusy) {
		t.Errorf("a writer beside a reader: %v", err)
	}
	release()
	if release, err = f.Lock(true); err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := f.Lock(false); !errors.Is(err, backup.ErrBusy) {
		t.Errorf("a reader beside a writer: %v", err)
	}
}

// TestLinksLeadNowhere: a link in the folder is not read, nothing is written through it, and its target is not removed.
func TestLinksLeadNowhere(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	f := open(t, folder)
	add(t, f, map[string]string{"registry/registry.db": "r"})
	secret := filepath.Join(outside, strings.Repeat("a", 64))
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "objects", "aa")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "unfinished")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(folder, "20200101T000000Z.json")); err != nil {
		t.Fatal(err)
	}
	list, err := f.List()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(list[0]); err == nil {
		t.Error("a manifest that is a link was read")
	}
	_, _ = f.Begin(moment) // it may fail
	_, _ = f.Prune(0, "")
	if files := tree(t, outside); len(files) != 1 {
		t.Errorf("outside of the folder there is %v", files)
	}
	if content, err := os.ReadFile(secret); err != nil || string(content) != "secret" {
		t.Errorf("a file outside is %q now: %v", content, err)
	}
}

// sealed returns the text of a manifest's file with the right checksum.
func sealed(inner []byte) []byte {
	sum := sha256.Sum256(inner)
	return fmt.Appendf(nil, `{"manifest":%s,"sha256":%q}`, inner, hex.EncodeToString(sum[:]))
}

// written returns the text of a manifest's file as the package writes it.
func written(t *testing.T, m *backup.Manifest) []byte {
	t.Helper()
	inner, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return sealed(inner)
}

func TestManifestIsChecked(t *testing.T) {
	file := func(path string, size int64, sum string) *backup.Manifest {
		return &backup.Manifest{Format: 1, Name: "20261123T120000Z", Files: []backup.File{{Path: path, Size: size, SHA256: sum}}}
	}
	sum := strings.Repeat("0", 64)
	tests := []struct {
		name string
		in   *backup.Manifest
		want string
	}{
		{"good", file("a/b", 1, sum), ""},
		{"a path that leads out", file("../b", 1, sum), `the manifest is wrong: "../b" is not the path of a file in a backup`},
		{"a path that leads out behind a folder", file("a/../../b", 1, sum), `the manifest is wrong: "a/../../b" is not the path of a file in a backup`},
		{"an absolute path", file("/etc/passwd", 1, sum), `the manifest is wrong: "/etc/passwd" is not the path of a file in a backup`},
		{"backslashes", file(`a\..\b`, 1, sum), `the manifest is wrong: "a\\..\\b" is not the path of a file in a backup`},
		{"a drive", file("C:b", 1, sum), `the manifest is wrong: "C:b" is not the path of a file in a backup`},
		{"no path", file("", 1, sum), `the manifest is wrong: "" is not the path of a file in a backup`},
		{"a negative size", file("a", -1, sum), `the manifest is wrong: the file "a" has the size -1`},
		{"a checksum that is a path", file("a", 1, "../"+sum[3:]), `the manifest is wrong: the file "a" has no valid checksum`},
		{"a checksum in capitals", file("a", 1, strings.Repeat("A", 64)), `the manifest is wrong: the file "a" has no valid checksum`},
		{"a name that is a path", &backup.Manifest{Format: 1, Name: "../x"}, `the manifest is wrong: "../x" is not the name of a backup`},
		{"no form", &backup.Manifest{Name: "20261123T120000Z"}, `the manifest is wrong: its form is 0`},
		{
			"a newer form", &backup.Manifest{Format: 2, Name: "20261123T120000Z"},
			"it has form 2, and this program knows forms up to 1: a newer version of the program wrote it",
		},
		{"a file twice", &backup.Manifest{Format: 1, Name: "20261123T120000Z", Files: []backup.File{{Path: "a", SHA256: sum}, {Path: "a", SHA256: sum}}}, `the manifest is wrong: the file "a" is there twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := backup.ParseManifest(written(t, tt.in))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ParseManifest() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryByteOfAManifestCounts flips each bit of a manifest in turn.
func TestEveryByteOfAManifestCounts(t *testing.T) {
	f := open(t, t.TempDir())
	m := add(t, f, map[string]string{"a": "b"})
	path := filepath.Join(f.Path(), m.Name+".json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range bytes.TrimSpace(good) {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << bit
			if got, err := backup.ParseManifest(bad); err == nil && !cmp.Equal(m, got) {
				t.Fatalf("bit %d of byte %d flipped: %+v", bit, at, got)
			}
		}
	}
}

// FuzzParseManifest checks that no path of an accepted manifest leads out of a folder.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"name":"20261123T120000Z","files":[{"path":"a/b","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"format":1,"name":"20261123T120000Z","files":[{"path":"../b","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, inner []byte) {
		_, _ = backup.ParseManifest(inner)
		m, err := backup.ParseManifest(sealed(inner))
		if err != nil {
			return
		}
		if backup.CheckName(m.Name) != nil || strings.Contains(m.Name, "/") {
			t.Errorf("the name %q", m.Name)
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) || len(file.SHA256) != 64 || file.Size < 0 {
				t.Errorf("the file %+v", file)
			}
		}
	})
}
