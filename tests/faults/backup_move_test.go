package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestMoveToServer moves a server from the embedded engine to a ClickHouse server, as described in docs/backup.md. Here, the ClickHouse server is
// another engine.
func TestMoveToServer(t *testing.T) {
	server, c := start(t)
	folder := filepath.Join(t.TempDir(), "backups")
	createBackup(t, server, folder)
	unpacked := filepath.Join(t.TempDir(), "unpacked")
	server.MustCommand(t, nil, nil, "backup", "unpack", folder, unpacked)
	if _, stderr, err := server.Command(nil, "backup", "unpack", folder, unpacked); err == nil || !strings.Contains(stderr, "already exists") {
		t.Errorf("unpacking over a folder: %v, %s", err, stderr)
	}

	engine := embeddedtest.New(t)
	moved := harness.Start(t, "clickhouse "+engine.DSN()) // creates the tables
	if _, stderr, err := moved.Command(nil, "backup", "restore", folder); err == nil || !strings.Contains(stderr, "bring the tables there first") {
		t.Errorf("a restore without tables: %v, %s", err, stderr)
	}
	conn := embeddedtest.Connect(t, engine.DSN())
	parts, err := filepath.Glob(filepath.Join(unpacked, "engine", "*", "*"))
	if err != nil || len(parts) < 3 {
		t.Fatalf("the backup has the parts %v, %v", parts, err)
	}
	for _, part := range parts {
		table := filepath.Base(filepath.Dir(part))
		var path string
		if err := conn.QueryRow(t.Context(), "SELECT data_paths[1] FROM system.tables WHERE database = 'analytics' AND name = '"+table+"'").Scan(&path); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(path, "detached", filepath.Base(part)), os.DirFS(part)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Exec(t.Context(), "ALTER TABLE "+table+" ATTACH PART '"+filepath.Base(part)+"'"); err != nil {
			t.Fatal(err)
		}
	}
	// Events of a project that the backup does not know.
	if err := conn.Exec(t.Context(), "INSERT INTO events (uuid, event, timestamp, distinct_id, team_id) VALUES (generateUUIDv4(), 'foreign', now(), 'somebody', 41)"); err != nil {
		t.Fatal(err)
	}
	moved.MustCommand(t, nil, nil, "backup", "restore", folder)
	if id, _ := moved.Project(t, "new"); id != 42 {
		t.Errorf("a new project is project %d, and sees rows of another", id)
	}
	copied := moved.Client(c.Project, c.Key)
	const numbers = "select event, count(), count(distinct person_id) from events group by event"
	for _, row := range c.Query(t, numbers) {
		copied.Shows(t, numbers, toRow([]any{row}))
	}
	goesOn(t, moved, copied)

	// From here on its backups do not include the tables.
	second := filepath.Join(t.TempDir(), "second")
	stdout, stderr, err := moved.Command(nil, "backup", "create", second)
	if err != nil || !strings.Contains(stdout, `"tables":""`) || !strings.Contains(stderr, "the tables on the ClickHouse server are not in the backup") {
		t.Errorf("a backup without tables: %v, %s%s", err, stdout, stderr)
	}
	for destination, want := range map[string]string{
		"Disk('backups', 'x')":                     "BACKUP to Disk('backups', 'x')", // the engine does not support it
		"Disk('backups', 'x') SETTINGS async = 1":  "is not a destination",
		"Disk('backups', 'x'); DROP TABLE events":  "is not a destination",
		"Null() ; SELECT 1":                        "is not a destination",
		`Disk('backups\', 'x'); DROP TABLE t --')`: "is not a destination",
	} {
		if _, stderr, err := moved.Command(nil, "backup", "create", "--clickhouse-to", destination, second); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("a backup to %s: %v, %s", destination, err, stderr)
		}
	}
	if list := listBackups(t, moved, second); len(list) != 1 || !list[0].Whole {
		t.Errorf("after destinations that are refused there are %+v", list)
	}
	if _, stderr, err := server.Command(nil, "backup", "create", "--clickhouse-to", "Disk('backups', 'x')", folder); err == nil || !strings.Contains(stderr, "is for a ClickHouse server") {
		t.Errorf("a destination for the embedded engine: %v, %s", err, stderr)
	}
	for path, want := range map[string]string{
		filepath.Join(server.Folder, "data", "backups"): "is in the data folder of the server",
		os.TempDir(): "has files that are not those of backups",
	} {
		if _, stderr, err := server.Command(nil, "backup", "create", path); err == nil || !strings.Contains(stderr, strings.TrimPrefix(want, "has ")) {
			t.Errorf("a backup in %s: %v, %s", path, err, stderr)
		}
	}
	var answer map[string]any
	if err := server.Ask("/analytics/backups/create", map[string]any{"folder": "relative"}, &answer); err == nil || !strings.Contains(fmt.Sprint(err), "is not an absolute path") {
		t.Errorf("a relative path: %v", err)
	}
}
