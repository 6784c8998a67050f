package upgrades_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestNewerFoldersAreRefused: whichever part of a folder comes from a newer version, the server names it, says what to do, and changes nothing.
func TestNewerFoldersAreRefused(t *testing.T) {
	const advice = "Nothing was changed. Start the newer version again, or restore a backup that was made before the upgrade"
	version := func(text string) func(*testing.T, string) {
		return func(t *testing.T, data string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(data, "version.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		make func(t *testing.T, data string)
		want []string
	}{
		{"version.json itself", version(`{"form":2,"program":"v9.1.0"}`), []string{"newer version of this program, v9.1.0: its version.json has form 2,", "knows up to 1", advice}},
		{"the tables", version(`{"form":1,"program":"v9.1.0","parts":{"tables":99}}`), []string{`v9.1.0: its part "tables" has form 99`, advice}},
		{"the log", version(`{"form":1,"program":"v9.1.0","parts":{"tables":1,"capture":99}}`), []string{`v9.1.0: its part "capture" has form 99`, advice}},
		{"intents", version(`{"form":1,"parts":{"intents":99}}`), []string{`newer version of this program: its part "intents" has form 99`, advice}},
		{"records", version(`{"form":1,"parts":{"records":9999}}`), []string{`its part "records" has form 9999`, advice}},
		{"another part", version(`{"form":1,"parts":{"spool":1}}`), []string{`its part "spool" has form 1`, "does not know that part", advice}},
		{"a damaged version.json", version(`{"form":`), []string{"version.json is damaged", "restore it from a backup"}},
		{"the registry", newerRegistry, []string{"registry.db was written by a newer version of this program: its tables have version 99", advice}},
		{
			"the engine", version(`{"form":1,"parts":{},"engine":{"version":"99.2.1.1","size":1,"modified":"2026-01-01T00:00:00Z"}}`),
			[]string{"were last opened with ClickHouse 99.2.1.1, and the library ", "ClickHouse does not promise that an older version reads what a newer one wrote: set engine_library"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder, _ := unpack(t, "records")
			data := filepath.Join(folder, "data")
			tt.make(t, data)
			before := files(t, data)
			s, err := harness.Open(folder)
			if err == nil {
				t.Fatalf("the server starts: stopped with %v", s.Stop())
			}
			for _, want := range tt.want {
				if !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
			if diff := cmp.Diff(before, files(t, data)); diff != "" {
				t.Errorf("the folder was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// newerRegistry turns the registry into one of a newer version.
func newerRegistry(t *testing.T, data string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFailedUpgrade: an interrupted upgrade leaves a folder with all its data, which can be upgraded again.
func TestFailedUpgrade(t *testing.T) {
	folder, keys := unpack(t, "tables")
	data := filepath.Join(folder, "data")
	obstacle := filepath.Join(data, "registry.db.v14.unfinished", "x") // where the copy is made
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	registry, err := os.ReadFile(filepath.Join(data, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := harness.Open(folder)
	if err == nil {
		t.Fatalf("the server starts without a copy of the registry: stopped with %v", s.Stop())
	}
	if !strings.Contains(err.Error(), "copying it before its tables are brought up to date") {
		t.Errorf("the error is %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(data, "registry.db")); err != nil || !cmp.Equal(registry, after) {
		t.Errorf("the registry was changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, "version.json")); err == nil {
		t.Error("the folder is said to be of this version")
	}
	if err := os.RemoveAll(filepath.Dir(obstacle)); err != nil {
		t.Fatal(err)
	}
	holds(t, start(t, folder), release{}, keys)
}

// TestFolderOfAnotherServer: a second server with the same folder exits before it opens anything.
func TestFolderOfAnotherServer(t *testing.T) {
	first := start(t, t.TempDir())
	config, err := os.ReadFile(first.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	s, err := harness.Open(first.Folder)
	if err == nil {
		t.Fatalf("a second server starts: stopped with %v", s.Stop())
	}
	if !strings.Contains(err.Error(), "is in use by the process ") || !strings.Contains(err.Error(), "each server needs a data_dir of its own") {
		t.Errorf("the error is %v", err)
	}
	if strings.Count(first.Log(), "the embedded engine is running") != 1 {
		t.Error("the second server started an engine")
	}
	if err := os.WriteFile(first.Caddyfile(), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Reload(); err != nil {
		t.Errorf("the first server reloads: %v", err)
	}
}

// TestEngineLibrary: a reload does not need the library's file, and records the one that the running engine was started from. It can't change the library.
func TestEngineLibrary(t *testing.T) {
	library, err := embedded.DefaultLibrary()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.Symlink(library, link); err != nil {
		t.Fatal(err)
	}
	s := harness.Start(t, "engine_library "+link)
	reload := func(config string) error {
		t.Helper()
		if err := os.WriteFile(s.Caddyfile(), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.Reload()
	}
	recorded := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(s.Folder, "data", "version.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before, own := recorded(), s.Config("")
	other := strings.ReplaceAll(own, link, library)
	if err := reload(other); err == nil || !strings.Contains(err.Error(), "engine_library can't be changed by a reload") {
		t.Errorf("a reload with another library: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := reload(s.Config("respond /without ok")); err != nil {
		t.Errorf("a reload without the library's file: %v", err)
	}
	if err := os.WriteFile(link, []byte("another release"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reload(own); err != nil {
		t.Errorf("a reload with another file in its place: %v", err)
	}
	if diff := cmp.Diff(before, recorded()); diff != "" {
		t.Errorf("version.json (-want +got):\n%s", diff)
	}
}

// TestCheck: `upgrade check` says what a start would change, changes nothing itself, and fails if a start would.
func TestCheck(t *testing.T) {
	folder, _ := unpack(t, "tables")
	data := filepath.Join(folder, "data")
	before := files(t, data)
	out, err := command(t, "analytics", "upgrade", "check", data)
	for _, want := range []string{`"state":"older"`, "from version 14 to 15 in one transaction; a copy of the file as it is now is kept at " + filepath.Join(data, "registry.db.v14"), "tables that are missing are created"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("upgrade check lacks %q: %v\n%s", want, err, out)
		}
	}
	if diff := cmp.Diff(before, files(t, data)); diff != "" {
		t.Errorf("it changed the folder (-before +after):\n%s", diff)
	}
	s := start(t, folder)
	if out, err := command(t, "analytics", "upgrade", "check", data); err != nil || !strings.Contains(out, `"state":"current"`) || !strings.Contains(out, `"changes":[]`) {
		t.Errorf("while the server runs: %v\n%s", err, out)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	newerRegistry(t, data)
	if out, err := command(t, "analytics", "upgrade", "check", data); err == nil || !strings.Contains(out, "its tables have version 99") {
		t.Errorf("of a newer folder: %v\n%s", err, out)
	}
	if out, err := command(t, "analytics", "upgrade", "check", t.TempDir()); err != nil || !strings.Contains(out, `"state":"empty"`) {
		t.Errorf("of an empty folder: %v\n%s", err, out)
	}
}

// TestLookingTouchesNothing: neither `validate` nor `adapt` opens the data folder of a config.
func TestLookingTouchesNothing(t *testing.T) {
	folder, _ := unpack(t, "tables")
	data := filepath.Join(folder, "data")
	path := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(path, []byte("{\n\tadmin off\n\tanalytics {\n\t\tdata_dir "+data+"\n\t}\n}\nhttp://127.0.0.1:1 {\n\tanalytics\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t, data)
	for _, verb := range []string{"validate", "adapt"} {
		if out, err := command(t, verb, "--config", path, "--adapter", "caddyfile"); err != nil {
			t.Errorf("caddy %s: %v\n%s", verb, err, out)
		}
		if diff := cmp.Diff(before, files(t, data)); diff != "" {
			t.Errorf("caddy %s changed the folder (-before +after):\n%s", verb, diff)
		}
	}
}

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	return string(out), err
}
