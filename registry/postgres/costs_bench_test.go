package postgres_test

import (
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// BenchmarkStore measures what a write costs who makes it, and what it costs each node that reads it. The server waits for the disk.
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
	b.Run("ask for the revision", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Revision(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("take from an allowance", func(b *testing.B) {
		rate := registry.Rate{Queries: 1_000_000, Per: 1_000_000_000}
		for b.Loop() {
			if _, _, err := s.Take(b.Context(), "key", rate, 10); err != nil {
				b.Fatal(err)
			}
		}
	})
}
