package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// decode undoes an encoding with the library's readers.
func decode(tb testing.TB, body cache.Body) string {
	tb.Helper()
	var r io.Reader = bytes.NewReader(body.Bytes)
	switch body.Encoding {
	case cache.Gzip:
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			tb.Fatalf("gzip: %v", err)
		}
		r = unpacked
	case cache.Zstd:
		unpacked, err := zstd.NewReader(r)
		if err != nil {
			tb.Fatalf("zstd: %v", err)
		}
		defer unpacked.Close()
		r = unpacked
	case cache.Identity:
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		tb.Fatalf("decoding %s: %v", body.Encoding, err)
	}
	return string(plain)
}

// newPages returns a cache, an entry with rows, and a render function that counts its calls.
func newPages(tb testing.TB) (c *cache.Cache, e *cache.Entry, render func(dst []byte) []byte, renders *atomic.Int32) {
	tb.Helper()
	c, err := cache.New(cache.Config{MaxBytes: 16 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	e = cache.NewEntry(naive{rows: rowsOf(200)}.result(tb), time.Now(), nil, 0)
	renders = new(atomic.Int32)
	return c, e, func(dst []byte) []byte {
		renders.Add(1)
		return e.Result.AppendRows(dst, 0, -1)
	}, renders
}

func TestPageEncodings(t *testing.T) {
	c, e, render, renders := newPages(t)
	plain := string(e.Result.AppendRows(nil, 0, -1))
	tags := make(map[string]cache.Encoding)
	for _, encoding := range []cache.Encoding{cache.Identity, cache.Gzip, cache.Zstd} {
		t.Run(encoding.String(), func(t *testing.T) {
			renders.Store(0)
			first := c.Page(e, cache.PageKey{}, encoding, render)
			second := c.Page(e, cache.PageKey{}, encoding, render)
			if first.Encoding != encoding {
				t.Errorf("encoding %s, want %s", first.Encoding, encoding)
			}
			if diff := cmp.Diff(plain, decode(t, first)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(first, second); diff != "" || &first.Bytes[0] != &second.Bytes[0] || renders.Load() != 1 {
				t.Errorf("the second call does not give the stored body, or it was rendered %d times (-first +second):\n%s", renders.Load(), diff)
			}
			if first.ContentLength != strconv.Itoa(len(first.Bytes)) {
				t.Errorf("ContentLength %s of %d bytes", first.ContentLength, len(first.Bytes))
			}
			if encoding != cache.Identity && len(first.Bytes) > len(plain)/2 {
				t.Errorf("%d bytes of %d", len(first.Bytes), len(plain))
			}
			if other, taken := tags[first.ETag]; taken {
				t.Errorf("%s has the entity tag of %s", encoding, other)
			}
			tags[first.ETag] = encoding
			if stored := c.GetPage(e, cache.PageKey{}, encoding); stored == nil || stored.ETag != first.ETag {
				t.Errorf("GetPage = %+v, %t", stored, stored != nil)
			}
		})
	}
}

func TestPageTooShortToCompress(t *testing.T) {
	c, e, _, renders := newPages(t)
	short := func(dst []byte) []byte {
		renders.Add(1)
		return append(dst, `{"results":[]}`...)
	}
	want := c.Page(e, cache.PageKey{}, cache.Identity, short)
	renders.Store(0)
	for range 2 {
		if diff := cmp.Diff(want, c.Page(e, cache.PageKey{}, cache.Gzip, short)); diff != "" {
			t.Errorf("short body asked for as gzip (-as identity +got):\n%s", diff)
		}
	}
	if renders.Load() != 1 {
		t.Errorf("rendered %d times, want once", renders.Load())
	}
}

func TestPageThatDoesNotCompress(t *testing.T) {
	c, e, _, _ := newPages(t)
	noise := make([]byte, 4<<10) // a byte sequence without repetitions: a linear congruential generator
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	body := c.Page(e, cache.PageKey{}, cache.Zstd, func(dst []byte) []byte { return append(dst, noise...) })
	if body.Encoding != cache.Identity || !bytes.Equal(body.Bytes, noise) {
		t.Errorf("%d bytes as %s", len(body.Bytes), body.Encoding)
	}
}

// Each part of the key, and the entry, distinguishes pages.
func TestPagesAreToldApart(t *testing.T) {
	c, e, _, _ := newPages(t)
	other := cache.NewEntry(e.Result, e.ComputedAt, nil, 0)
	seen := make(map[string]string)
	for name, page := range map[string]struct {
		entry *cache.Entry
		key   cache.PageKey
	}{
		"first":         {e, cache.PageKey{}},
		"offset":        {e, cache.PageKey{Offset: 1}},
		"limit":         {e, cache.PageKey{Limit: 1}},
		"variant":       {e, cache.PageKey{Variant: "debug"}},
		"another entry": {other, cache.PageKey{}},
	} {
		body := c.Page(page.entry, page.key, cache.Identity, func(dst []byte) []byte { return append(dst, name...) })
		if string(body.Bytes) != name {
			t.Errorf("page %q is %q", name, body.Bytes)
		}
		if also, taken := seen[body.ETag]; taken {
			t.Errorf("pages %q and %q have the same entity tag", name, also)
		}
		seen[body.ETag] = name
	}
}

func TestRenderStoresNothing(t *testing.T) {
	c, e, render, _ := newPages(t)
	once := c.Render(cache.Gzip, render)
	if stored := c.GetPage(e, cache.PageKey{}, cache.Gzip); stored != nil || c.Stats().Bytes != 0 {
		t.Error("Render stored the page")
	}
	if diff := cmp.Diff(c.Page(e, cache.PageKey{}, cache.Gzip, render), once); diff != "" {
		t.Errorf("Render (-Page +Render):\n%s", diff)
	}
}

// Two bodies of different length that were rendered into the same pooled buffer must not share memory.
func TestBodiesDoNotShareMemory(t *testing.T) {
	c, e, _, _ := newPages(t)
	first := c.Page(e, cache.PageKey{}, cache.Identity, func(dst []byte) []byte { return append(dst, "first"...) })
	for i := range 10 {
		c.Page(e, cache.PageKey{Offset: i + 1}, cache.Identity, func(dst []byte) []byte { return append(dst, "later"...) })
	}
	if string(first.Bytes) != "first" || cap(first.Bytes) != len("first") {
		t.Errorf("the first body has become %q, capacity %d", first.Bytes, cap(first.Bytes))
	}
}

func TestConcurrentPagesAreRenderedOnce(t *testing.T) {
	c, e, _, renders := newPages(t)
	const rounds, callers = 1000, 16
	for offset := range rounds {
		start, bodies := make(chan struct{}), make(chan cache.Body, callers)
		for range callers {
			go func() {
				<-start
				bodies <- c.Page(e, cache.PageKey{Offset: offset}, cache.Identity, func(dst []byte) []byte {
					renders.Add(1)
					return append(dst, "page"...)
				})
			}()
		}
		close(start)
		first := <-bodies
		for range callers - 1 {
			if other := <-bodies; &other.Bytes[0] != &first.Bytes[0] {
				t.Fatalf("page %d has two bodies", offset)
			}
		}
	}
	if stats := c.Stats(); renders.Load() != rounds || stats.PageMisses != rounds || stats.PageHits > rounds*(callers-1) {
		t.Errorf("%d pages were rendered %d times; %+v", rounds, renders.Load(), stats)
	}
}

// A page found under the hash of another page is not used.
func TestPagesWithCollidingHashes(t *testing.T) {
	c, e, render, _ := newPages(t)
	c.Page(e, cache.PageKey{Variant: "mine"}, cache.Identity, func(dst []byte) []byte { return append(dst, "mine"...) })
	c.Misplace(e, cache.PageKey{Variant: "mine"}, cache.PageKey{Variant: "theirs"})
	if body := c.GetPage(e, cache.PageKey{Variant: "theirs"}, cache.Identity); body != nil {
		t.Errorf("GetPage found %q", body.Bytes)
	}
	want := string(e.Result.AppendRows(nil, 0, -1))
	if body := c.Page(e, cache.PageKey{Variant: "theirs"}, cache.Identity, render); string(body.Bytes) != want {
		t.Errorf("Page gave %q", body.Bytes)
	}
}

func TestRenderThatPanics(t *testing.T) {
	c, e, render, _ := newPages(t)
	func() {
		defer func() {
			if recover() != "BUG in render" {
				t.Error("the panic of render did not reach its caller")
			}
		}()
		c.Page(e, cache.PageKey{}, cache.Identity, func([]byte) []byte { panic("BUG in render") })
	}()
	want := string(e.Result.AppendRows(nil, 0, -1))
	if body := c.Page(e, cache.PageKey{}, cache.Identity, render); string(body.Bytes) != want {
		t.Errorf("page after the panic: %q", body.Bytes)
	}
}

func TestPagesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := cache.NewEntry(new(cache.Result), time.Now(), nil, 0)
		w.c.Page(e, cache.PageKey{}, cache.Identity, func(dst []byte) []byte { return append(dst, "page"...) })
		if w.c.Stats().Bytes == 0 {
			t.Fatal("the page was not stored")
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got := w.c.Stats().Bytes; got != 0 {
			t.Errorf("%d bytes are taken by a page that nobody asks for", got)
		}
	})
}

// The cost of a page is its real size.
func TestPageCost(t *testing.T) {
	c, e, _, _ := newPages(t)
	body := c.Page(e, cache.PageKey{Variant: "v"}, cache.Gzip, func(dst []byte) []byte {
		return append(dst, strings.Repeat("page ", 10_000)...)
	})
	least, most := int64(len(body.Bytes)), int64(len(body.Bytes)*9/8+512)
	if got := c.Stats().Bytes; got < least || got > most {
		t.Errorf("%d bytes are charged for %d", got, len(body.Bytes))
	}
}

func ExampleCache() {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20, Stale: time.Hour})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	key := cache.KeyParts{Project: 7, Endpoint: "busiest-days", Version: 1, Zone: "UTC"}.Key()
	load := func(context.Context) (*cache.Entry, error) { // asks the database
		var rows cache.Builder
		if err := rows.Columns([]cache.Column{{Name: "day", Type: "Date"}, {Name: "n", Type: "UInt64"}}); err != nil {
			return nil, err
		}
		for _, row := range []string{`["2026-01-01",10]`, `["2026-01-02",7]`, `["2026-01-03",5]`} {
			if err := rows.Row([]byte(row)); err != nil {
				return nil, err
			}
		}
		return cache.NewEntry(rows.Result(), time.Now(), nil, 0), nil
	}
	for range 2 {
		answer, err := c.Do(context.Background(), key, cache.Policy{Fresh: time.Minute}, load)
		if err != nil {
			panic(err)
		}
		body := c.Page(answer.Entry, cache.PageKey{Offset: 1, Limit: 2}, cache.Identity, func(dst []byte) []byte {
			return answer.Entry.Result.AppendRows(dst, 1, 2)
		})
		fmt.Println(answer.Status, string(body.Bytes))
	}
	// Output:
	// miss [["2026-01-02",7],["2026-01-03",5]]
	// hit [["2026-01-02",7],["2026-01-03",5]]
}
