package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// history is a database that can be set back to what it was.
type history struct {
	*testing.T

	conn *pgx.Conn // to another database of the server
	name string
}

func historyOf(t *testing.T, dsn string) history {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	return history{t, connect(t, u.String()), name}
}

func (h history) exec(statements ...string) {
	h.Helper()
	for _, s := range statements {
		if _, err := h.conn.Exec(h.Context(), strings.ReplaceAll(s, "{db}", h.name)); err != nil {
			h.Fatal(err)
		}
	}
}

// alone executes statements while nobody is connected to the database.
func (h history) alone(do ...string) {
	h.Helper()
	h.exec(`ALTER DATABASE {db} ALLOW_CONNECTIONS false`)
	eventually.Is(h, "nobody is connected", func() (alone bool) {
		h.Helper()
		h.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{db}'`) // again: one may only just have begun
		if err := h.conn.QueryRow(h.Context(), `SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = $1)`, h.name).Scan(&alone); err != nil {
			h.Fatal(err)
		}
		return alone
	})
	h.exec(do...)
	h.exec(`ALTER DATABASE {db} ALLOW_CONNECTIONS true`)
}

// keep keeps what the database holds now.
func (h history) keep() { h.Helper(); h.alone(`CREATE DATABASE {db}_kept TEMPLATE {db}`) }

// back sets the database back to what was kept.
func (h history) back() {
	h.Helper()
	h.alone(`ALTER DATABASE {db} RENAME TO {db}_lost`, `ALTER DATABASE {db}_kept RENAME TO {db}`)
}

// quiet leaves it to the test when to look for others' writes.
var quiet = registry.Options{Poll: time.Hour, Gather: time.Hour, Uses: time.Hour}

// openRegistry opens a registry that is closed with the test.
func openRegistry(t *testing.T, s registry.Store) *registry.Registry {
	t.Helper()
	r, err := registry.Open(t.Context(), s, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func createKey(t *testing.T, r *registry.Registry, project int64) (k *registry.Key, text string) {
	t.Helper()
	k, text, err := r.CreateKey(t.Context(), registry.NewKey{Project: project, Scopes: []string{"*"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k, text
}

// TestSetBack: a registry whose database is set back under it, and counts the same revisions again, reads everything anew when it looks for others' writes, or
// when it writes. Until then, it may show what was lost.
func TestSetBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others int // writes after the database was set back; one was lost
		finds  func(t *testing.T, r *registry.Registry, project int64) error
	}{
		{"earlier", 0, refresh},
		{"the same revision", 1, refresh},
		{"later", 5, refresh},
		{"earlier, found by a write", 0, writes},
		{"the same revision, found by a write", 1, writes},
		{"later, found by a write", 5, writes},
		{"later, found by a deletion", 5, deletes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := postgrestest.DSN(t)
			s := open(t, dsn)
			r := openRegistry(t, s)
			p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			leaked, leakedText := createKey(t, r, p.ID)
			h := historyOf(t, dsn)
			h.keep()
			answers(t, s)
			_, lostText := createKey(t, r, p.ID)
			h.back()
			other := openRegistry(t, open(t, dsn))
			if other.Snapshot().KeyByHash(registry.HashKey(lostText)) != nil {
				t.Fatal("the database was not set back")
			}
			for n := range tt.others {
				if n > 0 {
					createKey(t, other, p.ID)
				} else if _, err := other.RevokeKey(t.Context(), leaked.ID, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			answers(t, s)
			if err := tt.finds(t, r, p.ID); err != nil {
				t.Fatal(err)
			}
			snap := r.Snapshot()
			if snap.KeyByHash(registry.HashKey(lostText)) != nil {
				t.Error("a key that was lost is still shown")
			}
			if tt.others > 0 && snap.KeyByHash(registry.HashKey(leakedText)) != nil {
				t.Error("a key that was revoked is still shown")
			}
			if err := other.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if one, two := len(snap.Keys(p.ID)), len(other.Snapshot().Keys(p.ID)); one != two {
				t.Errorf("%d keys are shown here and %d there", one, two)
			}
		})
	}
}

func refresh(t *testing.T, r *registry.Registry, _ int64) error {
	t.Helper()
	return r.Refresh(t.Context())
}

func writes(t *testing.T, r *registry.Registry, project int64) error {
	t.Helper()
	createKey(t, r, project)
	return nil
}

func deletes(t *testing.T, r *registry.Registry, project int64) error {
	t.Helper()
	removal, err := r.DeleteProject(t.Context(), project, "Shop", time.Now())
	if err == nil && removal.Records[registry.KindKey] != 5 { // one was lost, four came
		t.Errorf("it had %d keys", removal.Records[registry.KindKey])
	}
	return err
}

// TestLocksSetBack: a store whose database was set back reports that others may have had a lock, although the database does not know of them any more, and
// keeps nothing by a lock that was lost with it.
func TestLocksSetBack(t *testing.T) {
	dsn := postgrestest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	lock := func(s *postgres.Store, name, holder string, want bool) (release func()) {
		t.Helper()
		others, release, err := s.Lock(t.Context(), name, holder)
		if err != nil {
			t.Fatal(err)
		}
		if others != want {
			t.Errorf("%s gets the lock %s, others %t, want %t", holder, name, others, want)
		}
		return release
	}
	lock(b, "people-1", "b", true)()
	lock(a, "people-2", "a", true)()
	h := historyOf(t, dsn)
	h.keep()
	answers(t, a)
	answers(t, b)
	lock(b, "people-1", "b", true)() // its connection was lost
	lock(b, "people-1", "b", false)()
	lock(a, "people-1", "a", true)()
	for _, name := range []string{"people-2", "people-3"} { // one that the earlier database knows, and one that it does not
		defer lock(b, name, "b", true)()
	}
	h.back()
	answers(t, a)
	answers(t, b)
	lock(b, "people-1", "b", true)()
	lock(b, "people-1", "b", false)()
	for _, name := range []string{"people-2", "people-3"} {
		release := lock(a, name, "a", true)
		if err := b.Keep(t.Context(), name, []byte("b")); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("who lost the lock %s keeps something: %v", name, err)
		}
		if err := a.Keep(t.Context(), name, []byte("a")); err != nil {
			t.Error(err)
		}
		release()
	}
}

// TestNumbersSetBack: a registry that knew a project or a cohort which its database has lost gives that number to no other one, whatever others do meanwhile.
func TestNumbersSetBack(t *testing.T) {
	dsn := postgrestest.DSN(t)
	sa, sb := open(t, dsn), open(t, dsn)
	a, b := openRegistry(t, sa), openRegistry(t, sb)
	createProject := func(r *registry.Registry) int64 {
		t.Helper()
		p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	shop := createProject(a)
	createCohort := func(r *registry.Registry) int64 {
		t.Helper()
		static := registry.CohortFields{Name: registry.To(new("Buyers")), Static: registry.To(true)}
		c, err := r.CreateCohort(t.Context(), registry.NewCohort{CohortFields: static, Project: shop}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	first := createCohort(a)
	h := historyOf(t, dsn)
	h.keep()
	answers(t, sa)
	answers(t, sb)
	createProject(a)
	project, cohort := createProject(a), createCohort(a)
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.back()
	fresh := openRegistry(t, open(t, dsn))
	if got := createProject(fresh); got != shop+1 {
		t.Fatalf("the database was not set back: the next project is %d", got)
	}
	answers(t, sa)
	answers(t, sb)
	if got := createProject(b); got != project+1 {
		t.Errorf("the next project is %d, want %d", got, project+1)
	}
	if got := createProject(fresh); got != project+2 {
		t.Errorf("the next project of another node is %d, want %d", got, project+2)
	}
	if got := createCohort(b); got != cohort+1 {
		t.Errorf("the next cohort after %d is %d, want %d", first, got, cohort+1)
	}
}

// TestUpgrade: tables of the first version are upgraded, with what they hold.
func TestUpgrade(t *testing.T) {
	dsn := postgrestest.DSN(t)
	first, err := os.ReadFile("migrations/1.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), string(first)+`; UPDATE analytics_registry SET version = 1, revision = 7;
		INSERT INTO analytics_records VALUES (1, 'project', '1', 7, '{"id":1,"name":"Shop","timezone":"UTC"}')`); err != nil {
		t.Fatal(err)
	}
	if state, err := registry.InspectStore(t.Context(), dsn, ""); err != nil || state.Version != 1 || !strings.Contains(state.Upgrade, "from version 1 to 2") {
		t.Errorf("InspectStore() = %+v, %v", state, err)
	}
	s, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	r := openRegistry(t, s)
	createKey(t, r, 1)
	other := openRegistry(t, open(t, dsn))
	createKey(t, other, 1)
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Snapshot(); got.Revision != 9 || len(got.Keys(1)) != 2 {
		t.Errorf("at revision %d there are %d keys", got.Revision, len(got.Keys(1)))
	}
}

// TestLockWritesNothing: whoever takes a lock again that nobody else has had meanwhile writes nothing, unless something may still be kept under its name.
func TestLockWritesNothing(t *testing.T) {
	dsn := postgrestest.DSN(t)
	a, b, conn := open(t, dsn), open(t, dsn), connect(t, dsn)
	lock := func(s *postgres.Store, holder string, want bool) (release func()) {
		t.Helper()
		others, release, err := s.Lock(t.Context(), "people-1", holder)
		if err != nil {
			t.Fatal(err)
		}
		if others != want {
			t.Errorf("%s gets the lock, others %t, want %t", holder, others, want)
		}
		return release
	}
	// Whoever writes or locks a row leaves the id of a transaction in it.
	ids := func() (all string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT xmin::text || ' ' || xmax::text || ' ' || ctid::text FROM analytics_locks WHERE name = 'people-1'`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	lock(a, "a", true)()
	before := ids()
	for range 100 {
		lock(a, "a", false)()
	}
	if after := ids(); after != before {
		t.Errorf("the row of the lock was written or locked: %s, before %s", after, before)
	}
	lock(b, "b", true)()
	lock(a, "a", true)()
	lock(a, "c", true)()
	lock(a, "c", false)()

	release := lock(a, "c", false)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE analytics_kept`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.Keep(ctx, "people-1", []byte("late")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("something is kept in a table that is locked: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
	lock(a, "c", true)()
	lock(a, "c", false)()
}
