package cache_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

func loadRows(result *cache.Result) cache.Load {
	return func(context.Context) (*cache.Entry, error) { return cache.NewEntry(result, time.Now(), nil, 0), nil }
}

func BenchmarkHit(b *testing.B) {
	c, err := cache.New(cache.Config{MaxBytes: 256 << 20, Stale: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx, now := b.Context(), time.Now()
	policy := cache.Policy{Fresh: time.Hour, Now: now}
	load := loadRows(naive{rows: rowsOf(100)}.result(b))
	keys := make([]cache.Key, 64)
	for i := range keys {
		keys[i] = cache.KeyParts{Project: 1, Endpoint: "e", Variables: strconv.Itoa(i), Zone: "UTC"}.Key()
		if _, err := c.Do(ctx, keys[i], policy, load); err != nil {
			b.Fatal(err)
		}
		for ok := false; !ok; _, ok = c.Get(keys[i], policy) { // the store gets it after the call
			runtime.Gosched()
		}
	}
	page := cache.PageKey{Offset: 20, Limit: 20, Variant: "cached"}
	serve := func(key cache.Key) cache.Body {
		answer, ok := c.Get(key, policy)
		if !ok {
			b.Error("not a hit")
		}
		if body := c.GetPage(answer.Entry, page, cache.Gzip); body != nil {
			return *body
		}
		return c.Page(answer.Entry, page, cache.Gzip, func(dst []byte) []byte {
			return answer.Entry.Result.AppendRows(dst, 20, 20)
		})
	}
	for _, key := range keys {
		serve(key)
	}

	b.Run("do", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(ctx, keys[0], policy, load); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get and page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			serve(keys[0])
		}
	})
	b.Run("get and page, parallel, one key", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				serve(keys[0])
			}
		})
	})
	b.Run("get and page, parallel, 64 keys", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				serve(keys[i%len(keys)])
			}
		})
	})
}

func BenchmarkMiss(b *testing.B) {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	load := loadRows(naive{rows: rowsOf(100)}.result(b))
	key := cache.KeyParts{Project: 1}.Key()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), key, cache.Policy{Fresh: time.Hour, Mode: cache.Recompute}, load); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuilder(b *testing.B) {
	const rows = 50_000
	row := []byte(`["2026-01-01 00:00:00.000","commit authored",37605,12.5,null]`)
	b.ReportAllocs()
	b.SetBytes(int64(rows * len(row)))
	for b.Loop() {
		var builder cache.Builder
		if err := builder.Columns(nil); err != nil {
			b.Fatal(err)
		}
		for range rows {
			if err := builder.Row(row); err != nil {
				b.Fatal(err)
			}
		}
		if builder.Result().Len() != rows {
			b.Fatal("rows are missing")
		}
	}
}

func BenchmarkMemoGet(b *testing.B) {
	memo := cache.NewMemo[*int](1<<20, nil)
	key := []byte(`{"variables":{"component":"tsdb","year":2023},"limit":20,"offset":40}`)
	memo.Put(key, new(int))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := memo.Get(key); !ok {
				b.Error("not a hit")
			}
		}
	})
}

func BenchmarkNegotiate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if cache.Negotiate("gzip, deflate, br;q=0.9, zstd") != cache.Zstd {
			b.Fatal("not zstd")
		}
	}
}

func BenchmarkMatchETag(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !cache.MatchETag(`W/"abc", "n4bQgYhMfWWaL-qgxVrQFQ.gzip"`, `"n4bQgYhMfWWaL-qgxVrQFQ.gzip"`) {
			b.Fatal("no match")
		}
	}
}
