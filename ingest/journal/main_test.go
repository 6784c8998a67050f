package journal_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

var arrived = time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)

func open(tb testing.TB, dir string, o journal.Options) *journal.Journal {
	tb.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close() })
	return j
}

func entry(text string) journal.Entry {
	return journal.Entry{Project: 7, Arrived: arrived, Events: 3, Data: []byte(text)}
}

func appendAll(tb testing.TB, j *journal.Journal, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		if err := j.Append(tb.Context(), entry(text)); err != nil {
			tb.Fatalf("Append(%.20q): %v", text, err)
		}
	}
}

// readAll returns what can be read after an ID until nothing more comes.
func readAll(tb testing.TB, j *journal.Journal, after uint64) []journal.Entry {
	tb.Helper()
	var all []journal.Entry
	for {
		got, err := j.Read(&oneLook{Context: tb.Context()}, after, 10_000)
		if errors.Is(err, context.Canceled) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range got {
			if e.ID <= after {
				tb.Fatalf("entry %d comes after %d", e.ID, after)
			}
			after = e.ID
		}
		all = append(all, got...)
	}
}

// oneLook is a context that ends as soon as Read would wait.
type oneLook struct {
	context.Context
	looked bool
}

func (c *oneLook) Err() error {
	if c.looked {
		return context.Canceled
	}
	c.looked = true
	return nil
}

func (c *oneLook) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func texts(entries []journal.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, string(e.Data))
	}
	return strings.Join(all, " ")
}

func segments(tb testing.TB, dir string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// incompressible returns text of about n bytes that zstd cannot make much smaller.
func incompressible(seed, n int) string {
	var b strings.Builder
	x := uint64(seed)*2862933555777941757 + 3037000493
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()
}
