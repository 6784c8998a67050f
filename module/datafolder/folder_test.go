package datafolder_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/module/datafolder"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// open opens a folder until the test ends, and returns what was logged.
func open(t *testing.T, dir string) (*datafolder.Folder, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	f, err := datafolder.Open(dir, "v2.0.0", registry.StoreState{}, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return f, logs
}

// parts returns what the file in a folder says.
func parts(t *testing.T, dir string) (file datafolder.File) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, datafolder.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNewFolder: a new folder gets its file before anything else, and is not mistaken for one of an older version.
func TestNewFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	f, logs := open(t, dir)
	if got := parts(t, dir); got.Program != "v2.0.0" || got.Form != 1 || len(got.Parts) != 4 || got.Engine != nil {
		t.Errorf("the file says %+v", got)
	}
	engine := &datafolder.Engine{Version: "26.7.3.1", Size: 5, Modified: time.Unix(1, 0).UTC()}
	if err := f.Upgraded(engine); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(engine, parts(t, dir).Engine); diff != "" {
		t.Errorf("the engine (-want +got):\n%s", diff)
	}
	if err := f.Upgraded(nil); err != nil || parts(t, dir).Engine == nil {
		t.Errorf("without the engine, it is forgotten: %v", err)
	}
	if logs.Len() != 0 {
		t.Errorf("it logs %v", logs.All())
	}
	if _, err := datafolder.Open(dir, "v2.0.0", registry.StoreState{}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "is in use by the process") {
		t.Errorf("a second time it is opened with %v", err)
	}
}

// TestOlderFolder: the file still names the older version until the folder is up to date.
func TestOlderFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, datafolder.FileName), []byte(`{"form":1,"program":"v1.0.0","parts":{"tables":2,"capture":1,"intents":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, logs := open(t, dir)
	if got := parts(t, dir).Program; got != "v1.0.0" {
		t.Errorf("before the upgrade, the folder is of %s", got)
	}
	if err := f.Upgraded(nil); err != nil {
		t.Fatal(err)
	}
	if got := parts(t, dir); got.Program != "v2.0.0" || got.Parts["intents"] < 2 {
		t.Errorf("after the upgrade, the file says %+v", got)
	}
	var said []string
	for _, entry := range logs.All() {
		said = append(said, entry.Message)
	}
	if diff := cmp.Diff([]string{"an older version used the data folder; what it holds stays as it is", "the data folder is up to date"}, said); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// TestCheckEngine: a library is asked for its version only if its file has changed, and an older release is refused.
func TestCheckEngine(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(library, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(library)
	if err != nil {
		t.Fatal(err)
	}
	same := &datafolder.Engine{Version: "26.7.3.1", Size: 5, Modified: info.ModTime().UTC()}
	other := &datafolder.Engine{Version: "26.7.3.1", Size: 4, Modified: info.ModTime().UTC()}
	tests := []struct {
		name    string
		last    *datafolder.Engine
		version string
		asked   bool
		refused string
		logged  int
	}{
		{"none yet", nil, "26.7.3.1", false, "", 0},
		{"the same file", same, "25.1.1.1", false, "", 0},
		{"another file of the same version", other, "26.7.3.1", true, "", 0},
		{"a later month", other, "26.8.1.1", true, "", 1},
		{"a later year", other, "27.1.1.1", true, "", 1},
		{"an earlier patch", other, "26.7.1.1", true, "", 1},
		{"an earlier month", other, "26.5.9.9", true, "last opened with ClickHouse 26.7.3.1, and the library " + library + " is ClickHouse 26.5.9.9", 0},
		{"an earlier year", other, "25.12.1.1", true, "is ClickHouse 25.12.1.1", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.last != nil {
				first, err := datafolder.Open(dir, "v2.0.0", registry.StoreState{}, zap.NewNop())
				if err != nil {
					t.Fatal(err)
				}
				if err := first.Upgraded(tt.last); err != nil {
					t.Fatal(err)
				}
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
			}
			f, logs := open(t, dir)
			asked := false
			err := f.CheckEngine(library, info, func() (string, error) {
				asked = true
				return tt.version, nil
			})
			if asked != tt.asked || logs.Len() != tt.logged {
				t.Errorf("asked %t, logged %v", asked, logs.All())
			}
			if got := errText(err); tt.refused == "" && got != "" || !strings.Contains(got, tt.refused) {
				t.Errorf("CheckEngine() = %q, want %q", got, tt.refused)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzInspect: any version.json is either read or refused.
func FuzzInspect(f *testing.F) {
	for _, text := range []string{`{"form":1,"parts":{"tables":2}}`, `{"form":1e400}`, `{"form":1,"parts":{"x":-1},"engine":null}`, `[]`, ``, `{"form":1}trailing`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, datafolder.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if report, err := datafolder.Inspect(dir, "v2.0.0", registry.StoreState{}); err == nil && report.State == datafolder.Empty {
			t.Errorf("a folder with the file is empty: %q", text)
		}
	})
}
