package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// fileAt makes a file whose tables are at an older version, and returns its path.
func fileAt(t *testing.T, version int, fill string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	db := connect(path, "_txlock", "immediate")
	defer func() { _ = db.Close() }()
	steps, err := old.ReadDir("old")
	if err != nil {
		t.Fatal(err)
	}
	statements := versionTable
	for n, step := range steps[:version] {
		text, err := old.ReadFile("old/" + step.Name())
		if err != nil {
			t.Fatal(err)
		}
		statements += fmt.Sprintf("; %s; INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, 1)", text, n+1)
	}
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), fill, args...); err != nil {
		t.Fatal(err)
	}
	return path
}

// snapshotOf opens the file, and gives all that is in it.
func snapshotOf(t *testing.T, path string) *registry.Snapshot {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	r, err := registry.Open(t.Context(), s, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return r.Snapshot()
}

func TestMigrateKeepsWhatOlderVersionsWrote(t *testing.T) {
	at := time.UnixMicro(1).UTC()
	hash := registry.HashKey("k")
	path := fileAt(t, 1, `
		INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
		INSERT INTO keys (id, project_id, kind, label, mask, hash, scopes, created_at) VALUES ('k', 1, 'personal', 'l', 'm', ?, '["*"]', 1);
		UPDATE registry SET revision = 7;`, hash[:])
	snap := snapshotOf(t, path)
	if snap.Revision != 7 {
		t.Errorf("the revision is %d, want 7", snap.Revision)
	}
	if diff := cmp.Diff([]*registry.Project{{ID: 1, Name: "Shop", Timezone: "UTC", CreatedAt: at, Epoch: 1}}, snap.Projects()); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	want := []*registry.Key{{ID: "k", User: 1, Kind: registry.Personal, Label: "l", Mask: "m", Hash: hash, Project: 1, Scopes: []string{"*"}, CreatedAt: at}}
	if diff := cmp.Diff(want, snap.Keys(1)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// TestMigrateTakesOlderVersionsAsPublished: before drafts, every version of an endpoint had been the current one.
func TestMigrateTakesOlderVersionsAsPublished(t *testing.T) {
	path := fileAt(t, 3, `
		INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
		INSERT INTO endpoints (id, project_id, name, active, derived_from_insight, tags, current_version, created_at, updated_at, created_by)
			VALUES ('e', 1, 'daily', 1, '', '[]', 1, 1, 1, '');
		INSERT INTO endpoint_versions (id, endpoint_id, number, query, description, freshness_seconds, active, created_at, updated_at, created_by)
			VALUES ('v', 'e', 1, '{}', '', 900, 1, 5, 6, '');`)
	want := registry.Version{
		ID: "v", Number: 1, Query: []byte(`{}`), FreshnessSeconds: 900, Active: true,
		CreatedAt: time.UnixMicro(5).UTC(), UpdatedAt: time.UnixMicro(6).UTC(), PublishedAt: time.UnixMicro(5).UTC(),
	}
	if diff := cmp.Diff(want, snapshotOf(t, path).Endpoint(1, "daily").Versions[0]); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
}

// TestMigrateKeepsTiles: the table of the tiles is made anew for those that show a text.
func TestMigrateKeepsTiles(t *testing.T) {
	path := fileAt(t, 9, `
		INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
		INSERT INTO insights (project_id, short_id, filters, deleted, favorited, saved, tags, created_at, updated_at, last_modified_at, created_by, last_modified_by)
			VALUES (1, 'abc', '{}', 0, 0, 1, '[]', 1, 1, 1, '', '');
		INSERT INTO dashboards (project_id, description, pinned, deleted, filters, variables, breakdown_color, tags, created_at, created_by)
			VALUES (1, '', 0, 0, '{}', '{}', '[]', '[]', 1, '');
		INSERT INTO dashboard_tiles (id, project_id, dashboard_id, insight_id, layouts, color, show_description, filter_overrides, deleted)
			VALUES (5, 1, 1, 1, '{"sm":{}}', 'blue', 1, '{"date_to":"-1d"}', 1);`)
	tiles := slices.Clone(snapshotOf(t, path).Dashboard(1, 1).Tiles)
	since := &tiles[0].DeletedAt // it is not known, and counts from the migration on
	if ago := time.Since(*since); ago < 0 || ago > time.Hour {
		t.Errorf("deleted %v ago", ago)
	}
	*since = time.Time{}
	want := []registry.Tile{{
		ID: 5, Project: 1, Dashboard: 1, Insight: 1, Layouts: []byte(`{"sm":{}}`), Color: new("blue"), ShowDescription: new(true),
		FilterOverrides: []byte(`{"date_to":"-1d"}`), Deleted: true,
	}}
	if diff := cmp.Diff(want, tiles); diff != "" {
		t.Errorf("tiles (-want +got):\n%s", diff)
	}
}

// TestMigrateOfEachVersion: a file of each version, even an empty one, becomes one that works.
func TestMigrateOfEachVersion(t *testing.T) {
	for version := 1; version < recordsVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			path := fileAt(t, version, `INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 1);
				UPDATE registry SET revision = 1`)
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := registry.Open(t.Context(), s, registry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "next"}, time.Now())
			if err != nil || p.ID != 2 {
				t.Errorf("CreateProject() = %+v, %v", p, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(fmt.Sprintf("%s.v%d", path, version)); err != nil {
				t.Errorf("the older file: %v", err)
			}
		})
	}
}

func TestOpenRefusesANewerFile(t *testing.T) {
	path := fileAt(t, 3, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
	_, err := Open(t.Context(), path)
	want := "opening the registry " + path + ": its tables are at version 99, and this program knows versions up to 15: a newer version of the program wrote it"
	if err == nil || err.Error() != want {
		t.Errorf("Open() = %v, want %s", err, want)
	}
}

// TestMigrateOnce: a second start finds the tables up to date, and leaves the older file beside it alone.
func TestMigrateOnce(t *testing.T) {
	path := fileAt(t, 14, `INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 1)`)
	times := 0
	beforeCommit = func() { times++ }
	defer func() { beforeCommit = func() {} }()
	snapshotOf(t, path)
	kept, err := os.Stat(path + ".v14")
	if err != nil {
		t.Fatal(err)
	}
	if kept.Mode().Perm() != 0o600 {
		t.Errorf("others can read the older file: %v", kept.Mode())
	}
	snapshotOf(t, path)
	again, err := os.Stat(path + ".v14")
	if err != nil || !again.ModTime().Equal(kept.ModTime()) || times != 1 {
		t.Errorf("migrated %d times; the older file is of %v, then of %v: %v", times, kept.ModTime(), again.ModTime(), err)
	}
	// The older file is whole: it can be migrated itself.
	if got := snapshotOf(t, path+".v14").Projects(); len(got) != 1 || got[0].Name != "Shop" {
		t.Errorf("the older file holds %v", got)
	}
}

func TestMigrateByManyAtOnce(t *testing.T) {
	path := fileAt(t, 14, `INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 1)`)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Errorf("Open() = %v", err)
				return
			}
			if changes, err := s.Load(t.Context(), 0); err != nil || len(changes.Records) != 2 { // the project, and the last number
				t.Errorf("Load() = %+v, %v", changes, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	all.Wait()
}

// TestMigrateThatFails: a file that can't be migrated stays as it was.
func TestMigrateThatFails(t *testing.T) {
	path := fileAt(t, 12, `INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 1);
		PRAGMA ignore_check_constraints = 1;
		INSERT INTO insight_variables (id, project_id, name, code_name, type, default_value, is_multi, created_at, created_by) VALUES ('v', 1, 'v', 'v', 'String', 'no JSON', 0, 1, '')`)
	for range 2 {
		if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "malformed JSON") {
			t.Errorf("Open() = %v", err)
		}
		checkTables(t, path, 12)
	}
}

// checkTables checks that a file has the tables of an older version and nothing of a later one.
func checkTables(t *testing.T, path string, version int64) {
	t.Helper()
	db := connect(path, "_query_only", "1")
	defer func() { _ = db.Close() }()
	var got int64
	var name string
	var records int
	err := db.QueryRowContext(t.Context(), `SELECT (SELECT max(version_id) FROM goose_db_version), (SELECT name FROM projects), (SELECT count(*) FROM sqlite_schema WHERE name = 'records')`).
		Scan(&got, &name, &records)
	if err != nil || got != version || name != "Shop" || records != 0 {
		t.Errorf("the file has version %d, project %q, %d tables of records: %v", got, name, records, err)
	}
}

// crashMigration names the file that a child of TestMigrateThatIsKilled migrates; in its absence this is no such child.
const crashMigration = "REGISTRY_CRASH_MIGRATION"

// TestMigrateThatIsKilled kills a process when it has migrated a file except for the commit.
func TestMigrateThatIsKilled(t *testing.T) {
	if path := os.Getenv(crashMigration); path != "" {
		beforeCommit = func() {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			fmt.Fprintln(os.Stderr, "waiting to be killed", err)
			time.Sleep(time.Hour)
		}
		_, err := Open(t.Context(), path)
		t.Fatalf("the migration was not killed: %v", err)
	}
	path := fileAt(t, 14, `INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 1)`)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMigrateThatIsKilled$")
	child.Env = append(os.Environ(), crashMigration+"="+path)
	out, err := child.CombinedOutput()
	if _, killed := errors.AsType[*exec.ExitError](err); !killed || strings.Contains(string(out), "FAIL") {
		t.Fatalf("the child ended with %v: %s", err, out)
	}
	if _, err := os.Stat(path + ".v14"); err != nil {
		t.Errorf("the copy: %v", err)
	}
	checkTables(t, path, 14)
	if got := snapshotOf(t, path).Projects(); len(got) != 1 || got[0].Name != "Shop" {
		t.Errorf("the next start finds %v", got)
	}
}

// TestForgottenRemovals: a reader from before the removals that the file still knows reads everything.
func TestForgottenRemovals(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	put := func(id, data string) {
		t.Helper()
		rec := registry.Record{Project: 1, Kind: "a", ID: id}
		if data != "" {
			rec.Data = json.RawMessage(data)
		}
		if _, err := s.Write(t.Context(), &registry.Write{Put: []registry.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
	put("x", `1`)
	put("gone", `1`)
	put("gone", "") // revision 3
	if _, err := s.write.ExecContext(t.Context(), `UPDATE registry SET revision = ?`, remembered+10); err != nil {
		t.Fatal(err)
	}
	put("y", `1`)
	put("y", "")
	for _, tt := range []struct {
		since uint64
		whole bool
		want  int
	}{{3, true, 1}, {11, true, 1}, {12, false, 1}} {
		got, err := s.Load(t.Context(), tt.since)
		if err != nil || got.Whole != tt.whole || len(got.Records) != tt.want {
			t.Errorf("Load(%d) = %+v, %v", tt.since, got, err)
		}
	}
}

// TestForgottenStaysForgotten: removals that were forgotten with their project stay so when older ones are forgotten.
func TestForgottenStaysForgotten(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	put := func(project int64, data json.RawMessage) {
		t.Helper()
		if _, err := s.Write(t.Context(), &registry.Write{Put: []registry.Record{{Project: project, Kind: "a", ID: "x", Data: data}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.write.ExecContext(t.Context(), `UPDATE registry SET revision = ?`, remembered+10); err != nil {
		t.Fatal(err)
	}
	put(1, json.RawMessage(`1`))
	put(1, nil) // revision remembered + 12
	if err := s.ForgetProject(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	put(2, json.RawMessage(`1`))
	put(2, nil)
	if got, err := s.Load(t.Context(), remembered+11); err != nil || !got.Whole {
		t.Errorf("who has not read of a removal that is forgotten gets %+v, %v", got, err)
	}
}

// TestFullDisk: a write for which the disk has no room changes nothing, and says that it may be tried again.
func TestFullDisk(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	limit := func(pages string) {
		t.Helper()
		if _, err := s.write.ExecContext(t.Context(), `PRAGMA max_page_count = `+pages); err != nil {
			t.Fatal(err)
		}
	}
	large := &registry.Write{Put: []registry.Record{{Project: 1, Kind: "a", ID: "x", Data: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}}}
	limit("1") // SQLite takes the present size if that is more
	if _, err := s.Write(t.Context(), large); !errors.Is(err, registry.ErrDiskFull) {
		t.Errorf("Write to a full disk: %v", err)
	}
	if got, err := s.Load(t.Context(), 0); err != nil || got.Revision != 0 || len(got.Records) != 0 {
		t.Errorf("the file then has %+v, %v", got, err)
	}
	limit("1000000")
	if _, err := s.Write(t.Context(), large); err != nil {
		t.Errorf("Write once there is room: %v", err)
	}
}

func TestConnectionsAreSafe(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000", "secure_delete": "1"}
	for _, db := range []*sql.DB{s.write, s.read} {
		got := make(map[string]string)
		for pragma := range want {
			var value string
			if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value); err != nil {
				t.Fatal(err)
			}
			got[pragma] = value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pragmas (-want +got):\n%s", diff)
		}
	}
	if _, err := s.read.ExecContext(t.Context(), `UPDATE registry SET revision = 9`); err == nil {
		t.Error("a reading connection can write")
	}
}
