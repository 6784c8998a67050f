package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestInspect: Open does to a file what inspecting it says, and inspecting changes nothing.
func TestInspect(t *testing.T) {
	inspect := func(path string) registry.StoreState {
		t.Helper()
		state, err := registry.InspectStore(t.Context(), "sqlite:"+path, "")
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	missing := filepath.Join(t.TempDir(), "registry.db")
	if diff := cmp.Diff(registry.StoreState{Name: missing, Current: 15}, inspect(missing)); diff != "" {
		t.Errorf("no file (-want +got):\n%s", diff)
	}
	path := sqlitetest.Released(t)
	state := inspect(path)
	if state.Version != 14 || !strings.HasSuffix(state.Upgrade, "is kept at "+path+".v14") {
		t.Errorf("a file of a release: %+v", state)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files beside it: %v, %v", entries, err)
	}
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".v14"); err != nil {
		t.Errorf("the copy: %v", err)
	}
	if got := inspect(path); got.Version != 15 || got.Upgrade != "" { // what is committed may be beside the file still
		t.Errorf("while it is open: %+v", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := inspect(path); got.Version != 15 || got.Upgrade != "" {
		t.Errorf("after that: %+v", got)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.InspectStore(t.Context(), "sqlite:"+path, ""); err == nil {
		t.Error("a file that is no database has a version")
	}
}
