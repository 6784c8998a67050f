package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// seen are registries on one database, of which the first one writes.
type seen struct {
	all     []*registry.Registry
	project int64
}

// deaf is a store that no notification reaches, as behind a pooler that lends a connection for one transaction.
type deaf struct{ *postgres.Store }

func (deaf) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

func newSeen(tb testing.TB, others int, hears bool) *seen {
	tb.Helper()
	dsn := postgrestest.DSN(tb)
	s := new(seen)
	for range others + 1 {
		opened := open(tb, dsn)
		store := registry.Store(opened)
		if !hears {
			store = deaf{opened}
		}
		r, err := registry.Open(tb.Context(), store, registry.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = r.Close() })
		s.all = append(s.all, r)
	}
	p, err := s.all[0].CreateProject(tb.Context(), registry.NewProject{Name: "seen"}, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	s.project = p.ID
	s.everywhere(tb, func(snap *registry.Snapshot) bool { return snap.Project(p.ID) != nil })
	return s
}

// everywhere waits until all see something, and returns how long it took the last of them.
func (s *seen) everywhere(tb testing.TB, is func(*registry.Snapshot) bool) time.Duration {
	tb.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for n, r := range s.all {
		all.Go(func() {
			for !is(r.Snapshot()) {
				if ctx.Err() != nil {
					tb.Errorf("node %d does not see a write", n)
					return
				}
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// key makes a key and revokes it, and returns how long it took the others to see each.
func (s *seen) key(tb testing.TB) (made, revoked time.Duration) {
	tb.Helper()
	key, _, err := s.all[0].CreateKey(tb.Context(), registry.NewKey{Project: s.project, Scopes: []string{"*"}}, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	made = s.everywhere(tb, func(snap *registry.Snapshot) bool { return snap.KeyByHash(key.Hash) != nil })
	if _, err := s.all[0].RevokeKey(tb.Context(), key.ID, time.Now()); err != nil {
		tb.Fatal(err)
	}
	return made, s.everywhere(tb, func(snap *registry.Snapshot) bool { return snap.KeyByHash(key.Hash) == nil })
}

// TestWritesAreSeen: all others see a new key and its revocation within a second after the write returned, even if notifications are lost.
func TestWritesAreSeen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others int
		hears  bool
	}{{"1 other", 1, true}, {"3 others", 3, true}, {"8 others", 8, true}, {"no notifications", 3, false}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSeen(t, tt.others, tt.hears)
			var most time.Duration
			for range 10 {
				made, revoked := s.key(t)
				most = max(most, made, revoked)
			}
			if most > time.Second {
				t.Errorf("the last of them saw a write %s later", most)
			}
		})
	}
}

// BenchmarkSeen measures how long after a write has returned the last of the other nodes shows it.
func BenchmarkSeen(b *testing.B) {
	for _, others := range []int{1, 3, 8} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			s := newSeen(b, others, true)
			var made, revoked time.Duration
			for b.Loop() {
				m, r := s.key(b)
				made, revoked = max(made, m), max(revoked, r)
			}
			b.ReportMetric(float64(made.Microseconds())/1000, "max-ms/write")
			b.ReportMetric(float64(revoked.Microseconds())/1000, "max-ms/revocation")
		})
	}
}

// BenchmarkWrite measures writes of one record, by one writer.
func BenchmarkWrite(b *testing.B) {
	s := open(b, postgrestest.DSN(b))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := s.Write(b.Context(), record(fmt.Sprint(n))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTake measures taking from an allowance that all share, by several at once.
func BenchmarkTake(b *testing.B) {
	s := open(b, postgrestest.DSN(b))
	rate := registry.Rate{Queries: 1_000_000_000, Per: time.Second}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := s.Take(b.Context(), "a", rate, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
