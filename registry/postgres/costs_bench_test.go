package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// BenchmarkStore measures what a write costs the writer, and what it costs each node that reads it. The server waits for the disk.
func BenchmarkStore(b *testing.B) {
	dsn := postgrestest.New(b).Database(b)
	s := open(b, dsn)
	n := 0
	write := func(b *testing.B) uint64 {
		b.Helper()
		n++
		revision, err := s.Write(b.Context(), record(fmt.Sprint(n)))
		if err != nil {
			b.Fatal(err)
		}
		return revision
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			write(b)
		}
	})
	b.Run("read a write", func(b *testing.B) {
		since := write(b) - 1
		for b.Loop() {
			if changes, err := s.Load(b.Context(), since); err != nil || len(changes.Records) != 1 {
				b.Fatal(changes, err)
			}
		}
	})
	// Of 1 million keys that are used each hour, 10 nodes gather some 500 each in 20 seconds, and 100 nodes some 50.
	for _, many := range []int{1, 30, 300} {
		b.Run(fmt.Sprintf("write %d uses", many), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if _, err := s.Write(b.Context(), &registry.Write{Append: usesOf(many, n)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("read 300 uses", func(b *testing.B) {
		if _, err := s.Write(b.Context(), &registry.Write{Append: usesOf(300, 1e6)}); err != nil {
			b.Fatal(err)
		}
		since := usesOf(1, 1e6)[0].At
		analyze(b, dsn)
		for b.Loop() {
			if uses, _, err := s.Entries(b.Context(), 0, "use", registry.EntryPage{Since: since}); err != nil || len(uses) != 300 {
				b.Fatal(len(uses), err)
			}
		}
	})
	b.Run("ask for the revision", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Revision(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	other := open(b, dsn)
	for name, takers := range map[string][]*postgres.Store{"take a lock again": {s}, "take a lock in turns": {s, other}} {
		b.Run(name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				_, release, err := takers[n%len(takers)].Lock(b.Context(), "people-1", fmt.Sprint("holder-", n%len(takers)))
				if err != nil {
					b.Fatal(err)
				}
				release()
			}
		})
	}
	b.Run("take from an allowance", func(b *testing.B) {
		rate := registry.Rate{Queries: 1_000_000, Per: 1_000_000_000}
		for b.Loop() {
			if _, _, err := s.Take(b.Context(), "key", rate, 10); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// analyze makes the server count what is in the tables, as it does by itself within a minute.
func analyze(b *testing.B, dsn string) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	if _, err := conn.Exec(b.Context(), `ANALYZE`); err != nil {
		b.Fatal(err)
	}
}

// usesOf are the entries of keys that were used, the nth time.
func usesOf(many, n int) []registry.Entry {
	var uses []registry.Entry
	for i := range many {
		id := fmt.Sprintf("5xkTmT0GhQW3n%06d", (n*many+i)%100_000)
		uses = append(uses, registry.Entry{Log: "use", ID: "key/" + id, Item: id, By: "1", At: time.Unix(1_800_000_000+int64(n), 0)})
	}
	return uses
}
