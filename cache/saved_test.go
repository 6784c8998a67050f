package cache_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestSavedPieces: another cache finds the saved pieces, except those of projects that were purged or erased.
func TestSavedPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newWorld(t).c, newWorld(t).c
		columns := []cache.Column{{Name: "day", Type: "Date"}, {Name: "count", Type: "UInt64"}}
		day := func(n int64) cache.Span { return cache.Span{From: n, To: n + 1} }
		keys := []cache.Key{key(1, "a"), key(1, "b"), key(2, "a"), key(3, "a"), key(4, "none")}
		for n, k := range keys[:4] {
			from.KeepPieces(from.Pieces(k), columns, map[cache.Span]*cache.Piece{
				day(1): pieceOf(n, 7, time.Now()), day(2): pieceOf(10+n, 8, time.Now()),
			}, nil)
		}
		time.Sleep(time.Second)
		from.Purge(2)
		from.Erase(3, time.Now())
		var file bytes.Buffer
		if queries, err := from.SavePieces(&file); queries != 2 || err != nil {
			t.Fatalf("SavePieces() = %d, %v, want 2", queries, err)
		}
		if queries, err := to.LoadPieces(&file); queries != 2 || err != nil {
			t.Fatalf("LoadPieces() = %d, %v, want 2", queries, err)
		}
		for n, k := range keys {
			found := to.Pieces(k)
			for s, want := range map[cache.Span]*cache.Piece{day(1): pieceOf(n, 7, time.Time{}), day(2): pieceOf(10+n, 8, time.Time{})} {
				got := found.Find(s)
				switch {
				case n > 1 && got != nil:
					t.Errorf("key %d has a piece, which was purged, erased or never there", n)
				case n > 1:
				case got == nil:
					t.Errorf("key %d has no piece of %v", n, s)
				case got.Version != want.Version || !got.ComputedAt.Equal(time.Now().Add(-time.Second)):
					t.Errorf("key %d, %v: version %d of %v", n, s, got.Version, got.ComputedAt)
				default:
					if diff := cmp.Diff(string(want.Rows.AppendRows(nil, 0, -1)), string(got.Rows.AppendRows(nil, 0, -1))); diff != "" {
						t.Errorf("key %d, %v (-want +got):\n%s", n, s, diff)
					}
				}
			}
			if n < 2 && !slices.Equal(found.Columns(), columns) {
				t.Errorf("key %d has the columns %v", n, found.Columns())
			}
		}
	})
}

// TestLoadDamagedPieces: a damaged file is discarded as a whole.
func TestLoadDamagedPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := newWorld(t).c, newWorld(t).c
		for n := range int64(3) {
			from.KeepPieces(from.Pieces(key(n, "")), nil, map[cache.Span]*cache.Piece{{From: 1, To: 2}: pieceOf(1, 7, time.Now())}, nil)
		}
		var file bytes.Buffer
		if _, err := from.SavePieces(&file); err != nil {
			t.Fatal(err)
		}
		if queries, err := to.LoadPieces(bytes.NewReader(file.Bytes()[:file.Len()-3])); queries != 0 || err == nil {
			t.Errorf("LoadPieces() = %d, %v, want an error", queries, err)
		}
		for n := range int64(3) {
			if to.Pieces(key(n, "")).Find(cache.Span{From: 1, To: 2}) != nil {
				t.Errorf("the piece of key %d is kept", n)
			}
		}
	})
}

// FuzzLoadPieces: no file makes a cache panic, and what it accepts can be saved again.
func FuzzLoadPieces(f *testing.F) {
	c, err := cache.New(cache.Config{MaxBytes: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	c.KeepPieces(c.Pieces(key(1, "a")), []cache.Column{{Name: "n", Type: "UInt8"}}, map[cache.Span]*cache.Piece{{From: 1, To: 2}: pieceOf(1, 7, time.Unix(1, 0))}, nil)
	var file bytes.Buffer
	if _, err := c.SavePieces(&file); err != nil {
		f.Fatal(err)
	}
	c.Close()
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:file.Len()-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cache.New(cache.Config{MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		loaded, _ := c.LoadPieces(bytes.NewReader(data))
		if saved, err := c.SavePieces(&bytes.Buffer{}); saved > loaded || err != nil {
			t.Errorf("of %d queries that were loaded, %d are saved: %v", loaded, saved, err)
		}
	})
}
