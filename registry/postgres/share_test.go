package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// slow is a rate of which nothing comes back during a test.
var slow = registry.Rate{Queries: 100, Per: 1000 * time.Hour}

// take takes from an allowance, which must work.
func take(t *testing.T, s *postgres.Store, name string, rate registry.Rate, want int) (got int, again time.Duration) {
	t.Helper()
	got, again, err := s.Take(t.Context(), name, rate, want)
	if err != nil {
		t.Fatal(err)
	}
	return got, again
}

func TestTake(t *testing.T) {
	s := open(t, postgrestest.DSN(t))
	for i, tt := range []struct{ want, got int }{{30, 30}, {0, 0}, {50, 50}, {30, 20}, {1, 0}, {5, 0}, {-7, -7}, {5, 5}, {5, 2}, {1, 0}} {
		got, again := take(t, s, "a", slow, tt.want)
		if got != tt.got {
			t.Errorf("step %d: %d of %d wanted, want %d", i, got, tt.want, tt.got)
		}
		if got < tt.want && (again <= 9*time.Hour || again > 10*time.Hour) {
			t.Errorf("step %d: the next one is there in %s", i, again)
		}
	}
	if got, _ := take(t, s, "b", slow, 1000); got != 100 {
		t.Errorf("of another allowance %d were taken, want 100", got)
	}
	// Giving back makes no more of it than the whole.
	take(t, s, "b", slow, -1000)
	if got, _ := take(t, s, "b", slow, 1000); got != 100 {
		t.Errorf("of one that got back more than was taken %d were taken, want 100", got)
	}
	if got, again := take(t, s, "c", registry.Rate{Queries: 1_000_000_000, Per: time.Second}, 5); got != 5 || again != 0 {
		t.Errorf("of the greatest rate %d were taken, and again in %s", got, again)
	}
}

// TestTakeComesBack: what was spent comes back steadily, and no faster.
func TestTakeComesBack(t *testing.T) {
	s := open(t, postgrestest.DSN(t))
	rate := registry.Rate{Queries: 20, Per: time.Second}
	began, total := time.Now(), 0
	for total < 60 {
		got, again := take(t, s, "a", rate, 100)
		if again <= 0 || again > rate.Per/time.Duration(rate.Queries) {
			t.Fatalf("of what is spent there is one in %s", again)
		}
		if total += got; total > 20+int(time.Since(began).Seconds()*20)+1 {
			t.Fatalf("%d were taken in %s", total, time.Since(began))
		}
		time.Sleep(again)
	}
}

// TestTakeAfterTheClockWasSetBack: no more is spent of an allowance than all of it, whatever the database's clock said before.
func TestTakeAfterTheClockWasSetBack(t *testing.T) {
	dsn := postgrestest.DSN(t)
	s := open(t, dsn)
	take(t, s, "a", slow, 1)
	if _, err := connect(t, dsn).Exec(t.Context(), `UPDATE analytics_allowances SET whole = whole + $1::bigint`, int64(5*slow.Per)); err != nil {
		t.Fatal(err)
	}
	if got, again := take(t, s, "a", slow, 1); got != 0 || again <= 9*time.Hour || again > 10*time.Hour {
		t.Errorf("%d were taken, and the next one is there in %s", got, again)
	}
	take(t, s, "a", slow, -30)
	if got, _ := take(t, s, "a", slow, 100); got != 30 {
		t.Errorf("of 30 that were given back %d were taken", got)
	}
}

// TestTakeByMany: nodes that take at once get exactly what there is.
func TestTakeByMany(t *testing.T) {
	dsn := postgrestest.DSN(t)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		s := open(t, dsn)
		for range 4 {
			all.Go(func() {
				for range 10 {
					got, _, err := s.Take(t.Context(), "a", slow, 3)
					if err != nil {
						t.Error(err)
						return
					}
					taken.Add(int64(got))
				}
			})
		}
	}
	all.Wait()
	if taken.Load() != 100 {
		t.Errorf("%d were taken, want 100", taken.Load())
	}
}

// TestUnusedAllowancesGo: allowances that nobody spends are removed, even if they are many, except one that somebody is about to take from. Nobody waits for
// that.
func TestUnusedAllowancesGo(t *testing.T) {
	dsn := postgrestest.DSN(t)
	take(t, open(t, dsn), "used", slow, 1)
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), `INSERT INTO analytics_allowances SELECT 'unused ' || n, 1, 1 FROM generate_series(1, 12000) AS n`); err != nil {
		t.Fatal(err)
	}
	tx, err := connect(t, dsn).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM analytics_allowances WHERE name = 'unused 7' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	take(t, open(t, dsn), "used", slow, 1) // another store, which has not looked yet
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var names []string
		if err := conn.QueryRow(t.Context(), `SELECT array_agg(name ORDER BY name) FROM (SELECT name FROM analytics_allowances LIMIT 3) AS first`).Scan(&names); err != nil {
			t.Fatal(err)
		}
		diff := cmp.Diff([]string{"unused 7", "used"}, names)
		if diff == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("allowances (-want +got):\n%s", diff)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKeptAll(t *testing.T) {
	dsn := postgrestest.DSN(t)
	one, other := open(t, dsn), open(t, dsn)
	for name, data := range map[string]string{"node-a": "1\x00", "node-b": "2", "node_c": "3", "people-1": "4", "node-%": "5"} {
		if err := one.Keep(t.Context(), name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := other.KeptAll(t.Context(), "node-")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"node-a": []byte("1\x00"), "node-b": []byte("2"), "node-%": []byte("5")}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all, err := other.KeptAll(t.Context(), "nobody"); err != nil || len(all) != 0 {
		t.Errorf("of no name: %v, %v", all, err)
	}
}

// TestSharer: a registry in PostgreSQL is one that nodes share, one in SQLite is none.
func TestSharer(t *testing.T) {
	for name, s := range map[string]registry.Store{"PostgreSQL": open(t, postgrestest.DSN(t)), "SQLite": inSQLite(t, t.TempDir()+"/registry.db")} {
		r, err := registry.Open(t.Context(), s, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, shared := r.Sharer(); shared != (name == "PostgreSQL") {
			t.Errorf("%s is shared: %t", name, shared)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
