package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCopy replaces a registry, which other processes read too, by the copy of another one.
func TestCopy(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	from := openRegistry(t, filepath.Join(t.TempDir(), "registry.db"))
	p, err := from.CreateProject(ctx, registry.NewProject{Name: "copied"}, now)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := from.CreateKey(ctx, registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.CreateInsight(ctx, p.ID, registry.InsightFields{}, "me", now); err != nil {
		t.Fatal(err)
	}
	if err := from.Keep(ctx, "people-1", []byte("an intent")); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := from.Copy(ctx, folder); err != nil {
		t.Fatal(err)
	}
	if _, err := from.CreateProject(ctx, registry.NewProject{Name: "later"}, now); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "other.db")
	to, reader := openRegistry(t, path), openRegistry(t, path)
	for range 20 { // so that its revision is ahead of that of the copy
		if _, err := to.CreateProject(ctx, registry.NewProject{Name: "to go"}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Keep(ctx, "people-9", []byte("to go")); err != nil {
		t.Fatal(err)
	}
	if err := reader.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if err := to.Examine(ctx, folder); err != nil {
		t.Fatal(err)
	}
	if err := to.Replace(ctx, folder, to.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := reader.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*registry.Registry{"the one that did it": to, "another one": reader} {
		snap := r.Snapshot()
		var names []string
		for _, p := range snap.Projects() {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff([]string{"copied"}, names); diff != "" {
			t.Errorf("projects of %s (-want +got):\n%s", name, diff)
		}
		if len(snap.Keys(p.ID)) != 1 {
			t.Errorf("%s has %d keys", name, len(snap.Keys(p.ID)))
		}
		if kept, err := r.Kept(ctx, "people-1"); err != nil || string(kept) != "an intent" {
			t.Errorf("%s keeps %q, %v", name, kept, err)
		}
		if kept, err := r.Kept(ctx, "people-9"); err != nil || kept != nil {
			t.Errorf("%s keeps %q, %v", name, kept, err)
		}
	}
	if secret == "" {
		t.Error("the key has no secret")
	}
	next, err := to.CreateProject(ctx, registry.NewProject{Name: "next"}, now)
	if err != nil || next.ID != p.ID+1 {
		t.Errorf("the next project is %+v: %v", next, err)
	}
}

// TestExamineRefusesNewer: a copy that a newer version wrote is refused.
func TestExamineRefusesNewer(t *testing.T) {
	tests := []struct{ name, change, want string }{
		{"newer tables", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`, "a newer version of the program wrote it"},
		{"an unknown kind of record", `INSERT INTO records VALUES (1, 'unheard', '1', 1, '{}')`, `unknown kind "unheard"`},
		{"a newer form of a record", `INSERT INTO records VALUES (1, 'cohort', '7', 1, '{"$form":99}')`, "a newer version of the program wrote it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			from := openRegistry(t, filepath.Join(t.TempDir(), "registry.db"))
			if err := from.Copy(t.Context(), folder); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", filepath.Join(folder, "registry.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(tt.change); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			to := openRegistry(t, filepath.Join(t.TempDir(), "registry.db"))
			if err := to.Examine(t.Context(), folder); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Examine() = %v", err)
			}
		})
	}
}

func TestCopyIsForTheOwnerOnly(t *testing.T) {
	folder := t.TempDir()
	r := openRegistry(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := r.Copy(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(folder, "registry.db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has the permissions %v: %v", info.Mode(), err)
	}
}
