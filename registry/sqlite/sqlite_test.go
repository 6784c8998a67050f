package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/registrytest"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// crashFile names the file that a child of TestCrash writes to; in its absence this is no such child.
const crashFile = "REGISTRY_CRASH_FILE"

// lockFile names the registry whose lock a child of TestLockOfTheDead holds.
const lockFile = "REGISTRY_LOCK_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashFile); path != "" {
		fmt.Fprintln(os.Stderr, crash(path))
		os.Exit(1)
	}
	if path := os.Getenv(lockFile); path != "" {
		fmt.Fprintln(os.Stderr, holdLock(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func crash(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	return registrytest.WriteUntilKilled(s, os.Stdout)
}

func holdLock(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	return registrytest.HoldLock(s, func() { fmt.Println("ready") })
}

func TestLockOfTheDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	registrytest.LockOfTheDead(t, placeAt(path), kill)
}

func TestStore(t *testing.T) {
	registrytest.Run(t, newPlace)
}

func newPlace(t *testing.T) registrytest.Place {
	t.Helper()
	return placeAt(filepath.Join(t.TempDir(), "a folder ?#%&", "registry.db"))
}

func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashFile+"="+path)
	child.Stderr = os.Stderr
	registrytest.Crash(t, placeAt(path), child)
}

// placeAt is a Place in a file.
func placeAt(path string) registrytest.Place {
	return func(t *testing.T) registry.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatalf("Open(%s) = %v", path, err)
		}
		return s
	}
}

func TestPath(t *testing.T) {
	tests := []struct{ name, dsn, want, mistake string }{
		{"nothing given", "", filepath.Join("data", "registry.db"), ""},
		{"absolute", "sqlite:/var/lib/r.db", "/var/lib/r.db", ""},
		{"absolute with slashes", "sqlite:///var/lib/r.db", "/var/lib/r.db", ""},
		{"relative", "sqlite:r.db", "r.db", ""},
		{"relative with slashes", "sqlite://sub/r.db", "sub/r.db", ""},
		{"no path", "sqlite:", "", "sqlite:PATH lacks the path"},
		{"no path with slashes", "sqlite://", "", "sqlite:PATH lacks the path"},
		{"options", "sqlite:r.db?mode=ro", "", "sqlite:PATH takes no options after the path"},
		{"another scheme keeps its secret", "postgres://u:secret@h/d", "", "a registry in SQLite is given as sqlite:PATH"},
		{"a bare path", "/var/lib/r.db", "", "a registry in SQLite is given as sqlite:PATH"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sqlite.Path(tt.dsn, "data")
			mistake := ""
			if err != nil {
				mistake = err.Error()
			}
			if diff := cmp.Diff([]string{tt.want, tt.mistake}, []string{got, mistake}); diff != "" {
				t.Errorf("Path(%q) (-want +got):\n%s", tt.dsn, diff)
			}
		})
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := placeAt(filepath.Join(dir, "registry.db"))(t)
	defer func() { _ = s.Close() }()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]os.FileMode)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name()] = info.Mode().Perm()
	}
	want := map[string]os.FileMode{"registry.db": 0o600, "registry.db-wal": 0o600, "registry.db-shm": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestOpenOfANewFileByManyAtOnce(t *testing.T) {
	for range 20 { // it takes some luck to come in between
		path := filepath.Join(t.TempDir(), "registry.db")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Errorf("Open() = %v", err)
					return
				}
				if err := s.Close(); err != nil {
					t.Errorf("Close() = %v", err)
				}
			})
		}
		all.Wait()
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, append([]byte("this is no database"), make([]byte, 8192)...), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"not a database", garbage, "opening the registry " + garbage + ": bringing its tables up to date: file is not a database (26)"},
		{"a folder", dir, "opening the registry: open " + dir + ": is a directory"},
		{"below a file", filepath.Join(garbage, "x", "r.db"), "opening the registry: mkdir " + garbage + ": not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), tt.path)
			if err == nil {
				_ = s.Close()
				t.Fatal("Open() = nil")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("Open(%s) (-want +got):\n%s", tt.path, diff)
			}
		})
	}
}

// FuzzPath checks that a DSN is either refused without being repeated, since it may hold a secret, or names a file.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "sqlite:r.db", "sqlite:///var/lib/r.db", "sqlite:", "sqlite://", "sqlite:r.db?mode=ro", "postgres://u:secret@h/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		path, err := sqlite.Path(dsn, "data")
		switch {
		case err == nil && (path == "" || dsn != "" && !strings.HasSuffix(dsn, path)):
			t.Errorf("Path(%q) = %q", dsn, path)
		case err != nil && len(dsn) > len("sqlite:PATH") && strings.Contains(err.Error(), dsn):
			t.Errorf("Path(%q) repeats the DSN: %v", dsn, err)
		}
	})
}

// TestLocksOfALink: a process that opens the file by another name gets the same locks.
func TestLocksOfALink(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "registry.db"), filepath.Join(folder, "link.db")
	one, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	other, err := sqlite.Open(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	_, release, err := one.Lock(t.Context(), "people-1", "one")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := other.Lock(ctx, "people-1", "other"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that is held by another name of the file: %v", err)
	}
}
