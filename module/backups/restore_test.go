package backups_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/postgres" // the store of postgres://…
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// start returns the Backups of a new server. All servers use the tables of one ClickHouse.
func start(t *testing.T) *backups.Backups {
	t.Helper()
	return startOn(t, storeOf(t, ""))
}

// storeOf opens the store of a DSN; an empty one is a new file.
func storeOf(t *testing.T, dsn string) registry.Store {
	t.Helper()
	store, err := registry.OpenStore(t.Context(), dsn, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// startOn is start with a registry in a store.
func startOn(t *testing.T, store registry.Store) *backups.Backups {
	t.Helper()
	dir := t.TempDir()
	reg, err := registry.Open(t.Context(), store, registry.Options{Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	wh, err := warehouse.Open(clickhouse.Config{DSN: engine.DSN()}, reg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{MaxBytes: 1 << 20, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(log.Close(), wh.Close(), reg.Close()); err != nil {
			t.Error(err)
		}
	})
	return backups.New(backups.Config{
		Registry: reg, Shards: warehouse.Only(wh), Journal: log, DataDir: dir, Program: "test", Logger: zap.NewNop(),
		Restored: func(context.Context) error { return nil },
	})
}

func create(t *testing.T, b *backups.Backups, name string) {
	t.Helper()
	if _, err := b.Registry.CreateProject(t.Context(), registry.NewProject{Name: name}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func quiet(string, int64, int64) {}

// TestProjectsDuringARestore: while a backup is being read, the server creates no projects. A project that another server of the registry creates is
// kept, and the restore is refused.
func TestProjectsDuringARestore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	from := start(t)
	create(t, from, "backed up")
	if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	to := start(t)
	made := false
	_, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, func(doing string, _, _ int64) {
		if made || !strings.HasPrefix(doing, "verifying ") {
			return
		}
		made = true
		if _, err := to.Creating(); err == nil || !strings.Contains(err.Error(), "a backup is being restored") {
			t.Errorf("projects may be created: %v", err)
		}
		create(t, to, "another server's")
	})
	if _, ok := errors.AsType[*backups.RefusedError](err); !made || !ok || !strings.Contains(err.Error(), "this server has 1 project") {
		t.Errorf("the restore gives %v", err)
	}
	if projects := to.Registry.Snapshot().Projects(); len(projects) != 1 || projects[0].Name != "another server's" {
		t.Errorf("the projects are %+v", projects)
	}
	done, err := to.Creating()
	if err != nil {
		t.Fatalf("no projects may be created after it: %v", err)
	}
	done()
	if broken, err := backups.BrokenOff(to.DataDir); broken != nil || err != nil {
		t.Errorf("a restore that was refused is noted: %v, %v", broken, err)
	}

	fresh := start(t)
	if _, err := fresh.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	if projects := fresh.Registry.Snapshot().Projects(); len(projects) != 1 || projects[0].Name != "backed up" {
		t.Errorf("the projects restored are %+v", projects)
	}
}

// overtaken is a store that another server writes to just before its records are replaced.
type overtaken struct {
	*sqlite.Store

	write func()
}

func (o overtaken) Replace(ctx context.Context, folder string, before uint64) error {
	o.write()
	return o.Store.Replace(ctx, folder, before)
}

// TestOvertakenRestore: what another server writes at the last moment is neither overwritten nor mistaken for restored data.
func TestOvertakenRestore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	from := start(t)
	create(t, from, "backed up")
	if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "registry.db")
	other := startOn(t, storeOf(t, "sqlite:"+path))
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	to := startOn(t, overtaken{store, func() { create(t, other, "another server's") }})
	for _, want := range []string{"another server wrote to the registry", "this server has projects that were made after an interrupted restore"} {
		_, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet)
		if _, ok := errors.AsType[*backups.RefusedError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("the restore gives %v, want %s", err, want)
		}
		if err := to.Registry.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if projects := to.Registry.Snapshot().Projects(); len(projects) != 1 || projects[0].Name != "another server's" {
			t.Errorf("the projects are %+v", projects)
		}
	}
}

// TestPostgreSQL makes a backup of a registry that several servers share, and restores it while others run.
func TestPostgreSQL(t *testing.T) {
	server := postgrestest.New(t)
	folder := filepath.Join(t.TempDir(), "backups")
	from := startOn(t, storeOf(t, server.Database(t)))
	create(t, from, "backed up")
	if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	shared := server.Database(t)
	to, other := startOn(t, storeOf(t, shared)), startOn(t, storeOf(t, shared))
	if _, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the other server has seen it", func() bool { return len(other.Registry.Snapshot().Projects()) > 0 })
	for name, b := range map[string]*backups.Backups{"that restored it": to, "beside it": other} {
		if projects := b.Registry.Snapshot().Projects(); len(projects) != 1 || projects[0].Name != "backed up" {
			t.Errorf("the server %s has the projects %+v", name, projects)
		}
	}
	alone := start(t)
	if _, err := alone.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	if projects := alone.Registry.Snapshot().Projects(); len(projects) != 1 || projects[0].Name != "backed up" {
		t.Errorf("in SQLite the projects are %+v", projects)
	}
}

var errAway = errors.New("the database went away")

// away is a store whose database is lost while its records are replaced.
type away struct {
	*sqlite.Store

	once    sync.Once
	applied bool   // whether it is lost only after the records are replaced
	write   func() // by another server, then
}

func (a *away) Replace(ctx context.Context, folder string, before uint64) (err error) {
	a.once.Do(func() {
		if a.applied {
			err = a.Store.Replace(ctx, folder, before)
		}
		a.write()
		err = errors.Join(err, errAway)
	})
	if err != nil {
		return err
	}
	return a.Store.Replace(ctx, folder, before)
}

// TestRegistryAwayDuringARestore: a restore that could not replace the registry, or does not know that it did, is resumed by the same command. What
// another server has written since is not taken for the backup, even if it has the same number and name.
func TestRegistryAwayDuringARestore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	from := start(t)
	create(t, from, "default")
	entry := journal.Entry{Project: 1, Arrived: time.Now(), Events: 1, Data: []byte("waiting")}
	if err := from.Journal.Append(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	made, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	backedUp := from.Registry.Snapshot().Project(1).CreatedAt
	const madeSince = "this server has projects that were made after an interrupted restore"
	tests := []struct {
		name    string
		applied bool
		other   string // the project that another server creates
		want    string // the error of the second restore
	}{
		{name: "not replaced"},
		{name: "replaced", applied: true},
		{name: "another project", other: "another server's", want: madeSince},
		{name: "another project of the same name", other: "default", want: madeSince},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.db")
			other := startOn(t, storeOf(t, "sqlite:"+path))
			store, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			to := startOn(t, &away{Store: store, applied: tt.applied, write: func() {
				if tt.other != "" {
					create(t, other, tt.other)
				}
			}})
			restore := func() error {
				_, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet)
				return err
			}
			if err := restore(); !errors.Is(err, errAway) {
				t.Fatalf("the first restore gives %v", err)
			}
			err = restore()
			if err := to.Registry.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			projects, waiting := to.Registry.Snapshot().Projects(), to.Journal.Stats().Events
			broken, brokenErr := backups.BrokenOff(to.DataDir)
			if brokenErr != nil || len(projects) != 1 {
				t.Fatalf("the projects are %+v, and the interrupted restore is %v, %v", projects, broken, brokenErr)
			}
			if tt.want != "" {
				if _, ok := errors.AsType[*backups.RefusedError](err); !ok || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the second restore gives %v, want %s", err, tt.want)
				}
				if projects[0].Name != tt.other || waiting != 0 || broken == nil || broken.Name != made.Name {
					t.Errorf("after it, the project is %+v, %d events wait, and the interrupted restore is %v", projects[0], waiting, broken)
				}
				return
			}
			if err != nil || !projects[0].CreatedAt.Equal(backedUp) || waiting != 1 || broken != nil {
				t.Errorf("the second restore gives %v; the project is %+v, %d events wait, and the interrupted restore is %v", err, projects[0], waiting, broken)
			}
		})
	}
}

// TestRestoreAfterTheRegistry: a restore that was interrupted after it replaced the registry continues, whatever was written to the registry since.
func TestRestoreAfterTheRegistry(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	from := start(t)
	create(t, from, "backed up")
	if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	to := start(t)
	to.Restored = func(context.Context) error { return errAway }
	if _, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); !errors.Is(err, errAway) {
		t.Fatalf("the first restore gives %v", err)
	}
	create(t, to, "another server's")
	to.Restored = func(context.Context) error { return nil }
	if _, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	if projects := to.Registry.Snapshot().Projects(); len(projects) != 2 {
		t.Errorf("the projects are %+v", projects)
	}
}

// TestNewerMembers: members of cohorts that were made or computed after the backup are not those of cohorts that are made or computed after the restore.
func TestNewerMembers(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	from := start(t)
	create(t, from, "backed up")
	filters := registry.To(json.RawMessage(`{"properties":{}}`))
	computed, err := from.Registry.CreateCohort(t.Context(), registry.NewCohort{Project: 1, CohortFields: registry.CohortFields{Filters: filters}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	client, err := clickhouse.Open(clickhouse.Config{DSN: engine.DSN()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, fill := range []clickhouse.Fill{
		{Table: physical.ComputedMembers, Columns: []string{"person_id"}, Fixed: []clickhouse.FixedColumn{
			{Name: "cohort_id", Number: 1}, {Name: "version", Number: 6}, {Name: "sign", Number: 1},
		}},
		{Table: physical.StaticMembers, Columns: []string{"id", "person_id"}, Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: 2}}},
	} {
		fill.Query = clickhouse.Query{SQL: "SELECT generateUUIDv4()" + strings.Repeat(", generateUUIDv4()", len(fill.Columns)-1), Project: 1}
		if err := client.Fill(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	to := start(t)
	if _, err := to.Restore(t.Context(), adminapi.OldBackups{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	begun, err := to.Registry.BeginCohort(t.Context(), 1, computed.ID)
	if err != nil || begun.PendingVersion != 7 {
		t.Errorf("the next version is %+v, %v, want 7", begun, err)
	}
	static := registry.CohortFields{Static: registry.To(true)}
	if made, err := to.Registry.CreateCohort(t.Context(), registry.NewCohort{Project: 1, CohortFields: static}, time.Now()); err != nil || made.ID != 3 {
		t.Errorf("the next cohort is %+v, %v, want 3", made, err)
	}
}

// TestLostLocks: a backup during which another server could write, because the connection with the locks was lost, fails and leaves nothing.
func TestLostLocks(t *testing.T) {
	dsn := postgrestest.DSN(t)
	b, other := startOn(t, storeOf(t, dsn)), startOn(t, storeOf(t, dsn))
	create(t, b, "backed up")
	folder := filepath.Join(t.TempDir(), "backups")
	_, err := b.Create(t.Context(), adminapi.NewBackup{Folder: folder}, func(doing string, _, _ int64) {
		if doing != "holding events and imports" {
			return
		}
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`); err != nil {
			t.Error(err)
		}
		release, _, err := other.Shards.Main().Hold(t.Context(), []int64{1})
		if err != nil {
			t.Error(err)
			return
		}
		release()
	})
	if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "another server may have written") {
		t.Errorf("the backup gives %v", err)
	}
	if _, err := b.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Errorf("the next backup gives %v", err)
	}
	if list, err := b.List(t.Context(), folder, true, quiet); err != nil || len(list.Backups) != 1 {
		t.Errorf("the backups are %+v, %v, want one", list, err)
	}
}

// TestDamagedWaitingEvents: waiting events that are damaged do not keep a restore from ending. They are set aside, and the others are restored.
func TestDamagedWaitingEvents(t *testing.T) {
	for _, whole := range []int64{0, 1} {
		t.Run(fmt.Sprint(whole, " whole"), func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "backups")
			from := start(t)
			create(t, from, "backed up")
			for range whole + 1 {
				if err := from.Journal.Append(t.Context(), journal.Entry{Project: 1, Arrived: time.Now(), Events: 1, Data: []byte("waiting")}); err != nil {
					t.Fatal(err)
				}
			}
			segments, err := filepath.Glob(filepath.Join(from.DataDir, "journal", "*.zst"))
			if err != nil || len(segments) != 1 {
				t.Fatalf("the segments are %v, %v", segments, err)
			}
			content, err := os.ReadFile(segments[0])
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)-1] ^= 1
			if err := os.WriteFile(segments[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := from.Create(t.Context(), adminapi.NewBackup{Folder: folder}, quiet); err != nil {
				t.Fatal(err)
			}
			to := start(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := to.Restore(ctx, adminapi.OldBackups{Folder: folder}, quiet); err != nil {
				t.Fatal(err)
			}
			if got := to.Journal.Stats(); got.Events != whole || got.Aside != 1 {
				t.Errorf("after it, %d events wait, and %d files are set aside", got.Events, got.Aside)
			}
		})
	}
}

// TestMoreWaitsThanThereIsRoom: a restore of more waiting events than the server's log has room for goes on as they are delivered.
func TestMoreWaitsThanThereIsRoom(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	large := make([]byte, 600<<10) // two exceed the room of a log
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	wait := func(b *backups.Backups) {
		t.Helper()
		if err := b.Journal.Append(ctx, journal.Entry{Project: 1, Arrived: time.Now(), Events: 1, Data: large}); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(t.TempDir(), "backups")
	from, to := start(t), start(t)
	create(t, from, "backed up")
	wait(from)
	if _, err := from.Create(ctx, adminapi.NewBackup{Folder: folder}, quiet); err != nil {
		t.Fatal(err)
	}
	wait(to)
	full, restored := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := to.Restore(ctx, adminapi.OldBackups{Folder: folder}, func(doing string, _, _ int64) {
			if strings.Contains(doing, "waited") {
				once.Do(func() { close(full) })
			}
		})
		restored <- err
	}()
	select {
	case <-full:
	case err := <-restored:
		t.Fatalf("the restore ended early: %v", err)
	}
	select {
	case err := <-restored:
		t.Fatalf("the restore of more than there is room for ended: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	release, _, err := to.Shards.Main().Hold(ctx, nil) // as a delivery would write
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := to.Journal.Forget(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-restored; err != nil {
		t.Fatal(err)
	}
	if got := to.Journal.Stats(); got.Events != 1 {
		t.Errorf("after it, %d events wait, want that of the backup", got.Events)
	}
}
