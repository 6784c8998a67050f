package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// fileAt makes a file whose tables are at an older version, and returns its path.
func fileAt(t *testing.T, version int64, fill func(db *sql.DB) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	db := connect(path, "_txlock", "immediate")
	defer func() { _ = db.Close() }()
	p, err := migrator(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if err := fill(db); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadAll opens the file and gives all that is in it.
func loadAll(t *testing.T, path string) *registry.Changes {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	defer func() { _ = s.Close() }()
	changes, err := s.Load(t.Context(), 0)
	if err != nil {
		t.Fatalf("Load() = %v", err)
	}
	return changes
}

func TestMigrateKeepsWhatOlderVersionsWrote(t *testing.T) {
	at := time.UnixMicro(1).UTC()
	hash := registry.HashKey("k")
	path := fileAt(t, 1, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `
			INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
			INSERT INTO keys (id, project_id, kind, label, mask, hash, scopes, created_at) VALUES ('k', 1, 'personal', 'l', 'm', ?, '["*"]', 1);
			UPDATE registry SET revision = 7;`, hash[:])
		return err
	})
	got := loadAll(t, path)
	want := &registry.Changes{Revision: 7, Projects: []registry.ProjectRecord{{
		Project: registry.Project{ID: 1, Name: "Shop", Timezone: "UTC", CreatedAt: at},
		Keys: []registry.Key{{
			ID: "k", User: 1, Kind: registry.Personal, Label: "l", Mask: "m", Hash: hash, Project: 1, Scopes: []string{"*"}, CreatedAt: at,
		}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load(0) (-want +got):\n%s", diff)
	}
}

// TestMigrateTakesOlderVersionsAsPublished: before drafts, every version of an endpoint had been the current one.
func TestMigrateTakesOlderVersionsAsPublished(t *testing.T) {
	path := fileAt(t, 3, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `
			INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
			INSERT INTO endpoints (id, project_id, name, active, derived_from_insight, tags, current_version, created_at, updated_at, created_by)
				VALUES ('e', 1, 'daily', 1, '', '[]', 1, 1, 1, '');
			INSERT INTO endpoint_versions (id, endpoint_id, number, query, description, freshness_seconds, active, created_at, updated_at, created_by)
				VALUES ('v', 'e', 1, '{}', '', 900, 1, 5, 6, '');`)
		return err
	})
	changes := loadAll(t, path)
	want := registry.Version{
		ID: "v", Number: 1, Query: []byte(`{}`), FreshnessSeconds: 900, Active: true,
		CreatedAt: time.UnixMicro(5).UTC(), UpdatedAt: time.UnixMicro(6).UTC(), PublishedAt: time.UnixMicro(5).UTC(),
	}
	if diff := cmp.Diff(want, changes.Projects[0].Endpoints[0].Versions[0]); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
}

// TestMigrateKeepsTiles: the table of the tiles is made anew for those that show a text.
func TestMigrateKeepsTiles(t *testing.T) {
	path := fileAt(t, 9, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `
			INSERT INTO projects (name, timezone, week_start, created_at, revision) VALUES ('Shop', 'UTC', 0, 1, 7);
			INSERT INTO insights (project_id, short_id, filters, deleted, favorited, saved, tags, created_at, updated_at, last_modified_at, created_by, last_modified_by)
				VALUES (1, 'abc', '{}', 0, 0, 1, '[]', 1, 1, 1, '', '');
			INSERT INTO dashboards (project_id, description, pinned, deleted, filters, variables, breakdown_color, tags, created_at, created_by)
				VALUES (1, '', 0, 0, '{}', '{}', '[]', '[]', 1, '');
			INSERT INTO dashboard_tiles (id, project_id, dashboard_id, insight_id, layouts, color, show_description, filter_overrides, deleted)
				VALUES (5, 1, 1, 1, '{"sm":{}}', 'blue', 1, '{"date_to":"-1d"}', 1);`)
		return err
	})
	changes := loadAll(t, path)
	since := &changes.Projects[0].Dashboards[0].Tiles[0].DeletedAt // it is not known, and counts from the migration on
	if ago := time.Since(*since); ago < 0 || ago > time.Hour {
		t.Errorf("deleted %v ago", ago)
	}
	*since = time.Time{}
	want := []registry.Tile{{
		ID: 5, Project: 1, Dashboard: 1, Insight: 1, Layouts: []byte(`{"sm":{}}`), Color: new("blue"), ShowDescription: new(true),
		FilterOverrides: []byte(`{"date_to":"-1d"}`), Deleted: true,
	}}
	if diff := cmp.Diff(want, changes.Projects[0].Dashboards[0].Tiles); diff != "" {
		t.Errorf("tiles (-want +got):\n%s", diff)
	}
}

func TestOpenRefusesANewerFile(t *testing.T) {
	path := fileAt(t, 3, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		return err
	})
	_, err := Open(t.Context(), path)
	want := "opening the registry " + path + ": its tables are at version 99, and this program knows versions up to 14: a newer version of the program wrote it"
	if err == nil || err.Error() != want {
		t.Errorf("Open() = %v, want %s", err, want)
	}
}

func TestConnectionsAreSafe(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"}
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
