package cache_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// numbered returns a result of n rows, with more rows beyond them.
func numbered(tb testing.TB, n int) *cache.Result {
	tb.Helper()
	b := cache.NewBuilder(cache.Limits{Keep: max(n, 1)})
	if err := b.Columns([]cache.Column{{Name: "n", Type: "UInt64"}, {Name: "", Type: "Nullable(String)"}}); err != nil {
		tb.Fatal(err)
	}
	for i := range n + 1 {
		if err := b.Row(fmt.Appendf(nil, `[%d,"row, %d"]`, i, i*i*i)); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Result()
}

func sameResult(t *testing.T, want, got *cache.Result, offset, limit int) {
	t.Helper()
	if diff := cmp.Diff(want.Columns(), got.Columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if w, g := string(want.AppendRows(nil, offset, limit)), string(got.AppendRows(nil, offset, limit)); w != g {
		t.Errorf("rows of %d, %d: %s, want %s", offset, limit, g, w)
	}
	if w, g := want.PageLen(offset, limit), got.PageLen(offset, limit); w != g {
		t.Errorf("length of %d, %d: %d, want %d", offset, limit, g, w)
	}
	if w, g := want.HasMore(offset, limit), got.HasMore(offset, limit); w != g {
		t.Errorf("more than %d, %d: %t, want %t", offset, limit, g, w)
	}
	for i := offset; i < offset+want.PageLen(offset, limit); i++ {
		if w, g := string(want.Row(i)), string(got.Row(i)); w != g {
			t.Errorf("row %d: %s, want %s", i, g, w)
		}
	}
}

// formOf returns the complete encoding of a result.
func formOf(r *cache.Result) []byte {
	head, rows := r.AppendForm(nil)
	return append(head, rows...)
}

func TestResultForm(t *testing.T) {
	for _, n := range []int{0, 1, 2, 300} {
		want := numbered(t, n)
		data := formOf(want)
		got, err := cache.ReadResult(data, cache.Limits{Keep: n + 1, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		clear(data) // it keeps no part of it
		sameResult(t, want, got, 0, -1)
		if got.Len() != want.Len() || got.More() != want.More() {
			t.Errorf("%d rows, more: %t; want %d, %t", got.Len(), got.More(), want.Len(), want.More())
		}
	}
}

func TestResultFormLimits(t *testing.T) {
	data := formOf(numbered(t, 10))
	for name, limits := range map[string]cache.Limits{"rows": {Keep: 9}, "bytes": {MaxBytes: 100}} {
		if _, err := cache.ReadResult(data, limits); !errors.Is(err, cache.ErrTooLarge) {
			t.Errorf("more %s than the limit: %v", name, err)
		}
	}
	for n := range data {
		if _, err := cache.ReadResult(data[:n], cache.Limits{}); err == nil {
			t.Errorf("%d of %d bytes are a result", n, len(data))
		}
	}
	if _, err := cache.ReadResult(append(data, 'x'), cache.Limits{}); err == nil {
		t.Error("a result with something behind it is one")
	}
}

// TestCut compares pages that were cut, and sent, with pages of the whole result.
func TestCut(t *testing.T) {
	whole := numbered(t, 20)
	for _, page := range [][2]int{{0, 5}, {5, 5}, {15, 5}, {18, 5}, {19, 1}, {20, 5}, {30, 5}, {0, 20}, {7, 0}} {
		cut := whole.Cut(page[0], page[1])
		sameResult(t, whole, cut, page[0], page[1])
		got, err := cache.ReadResult(formOf(cut), cache.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		sameResult(t, whole, got, page[0], page[1])
		if got.First() != min(page[0], whole.Len()) {
			t.Errorf("the first row of %v is %d", page, got.First())
		}
		if page[1] < 20 && cut.Size() >= whole.Size() {
			t.Errorf("a page of %d rows takes %d bytes, the whole %d", page[1], cut.Size(), whole.Size())
		}
		n := 0
		for row := range got.Rows() {
			if want := string(whole.Row(page[0] + n)); string(row) != want {
				t.Errorf("row %d of %v: %s, want %s", n, page, row, want)
			}
			n++
		}
	}
}

// FuzzReadResult checks that whatever can be read is a result: encoding it again gives the same bytes.
func FuzzReadResult(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		f.Add(formOf(numbered(f, n)))
		f.Add(formOf(numbered(f, n).Cut(1, 1)))
	}
	f.Add([]byte{1, 1, 0, 0, 255, 255, 255, 255, 15, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := cache.ReadResult(data, cache.Limits{Keep: 100, MaxBytes: 1 << 10})
		if err != nil {
			return
		}
		n := 0
		for row := range r.Rows() {
			if len(row) < 2 || row[0] != '[' || row[len(row)-1] != ']' {
				t.Errorf("row %d: %q", n, row)
			}
			n++
		}
		again, err := cache.ReadResult(formOf(r), cache.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if n > 100 || !bytes.Equal(again.AppendRows(nil, 0, -1), r.AppendRows(nil, 0, -1)) || again.Len() != r.Len() {
			t.Errorf("%d rows %s became %s", n, r.AppendRows(nil, 0, -1), again.AppendRows(nil, 0, -1))
		}
	})
}

func TestDigest(t *testing.T) {
	key := cache.KeyParts{Project: 1, Query: "q"}
	if again := key; key.Key().Digest() != again.Key().Digest() {
		t.Error("a key has two digests")
	}
	other := key
	other.Project = 2
	if key.Key().Digest() == other.Key().Digest() {
		t.Error("keys of two projects have the same digest")
	}
}
