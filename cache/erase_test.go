package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestErase: neither a key nor a ref gives an older result, whether it is stored, held or being computed; results of other projects stay.
func TestErase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		refer := func(k cache.Key) cache.Ref {
			synctest.Wait()
			answer, ok := w.c.Peek(k, use)
			if !ok {
				t.Fatalf("%v is not stored", k)
			}
			w.c.Page(answer.Entry, cache.PageKey{}, cache.Identity, func(dst []byte) []byte { return append(dst, "page"...) })
			return w.c.Refer(k, answer.Entry)
		}
		found := func(refs ...cache.Ref) (all []bool) {
			for _, ref := range refs {
				_, _, ok := w.c.Snapshot(ref, use)
				all = append(all, ok)
			}
			return all
		}
		ask(t, w.c, key(1, ""), use, loadOf("stored", 0))
		ask(t, w.c, key(1, "x"), use, loadOf("held", 0))
		ask(t, w.c, key(2, ""), use, loadOf("other", 0))
		refs := []cache.Ref{refer(key(1, "")), refer(key(1, "x")), refer(key(2, ""))}
		w.c.Purge(1) // which holds them
		ask(t, w.c, key(1, ""), use, loadOf("again", 0))
		refs = append(refs, refer(key(1, "")))
		if diff := cmp.Diff([]bool{true, true, true, true}, found(refs...)); diff != "" {
			t.Fatalf("refs before (-want +got):\n%s", diff)
		}
		time.Sleep(time.Millisecond)
		w.c.Erase(1, time.Now())
		if diff := cmp.Diff([]bool{false, false, true, false}, found(refs...)); diff != "" {
			t.Errorf("refs after (-want +got):\n%s", diff)
		}
		got := []string{ask(t, w.c, key(1, ""), use, loadOf("anew", 0)), ask(t, w.c, key(2, ""), use, loadOf("anew", 0))}
		if diff := cmp.Diff([]string{"anew miss", "other hit"}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if ref := refer(key(1, "")); !found(ref)[0] {
			t.Error("a ref to a result of after is not valid")
		}
	})
}
