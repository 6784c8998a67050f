package cache_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// A memo may evict entries, but Get never returns anything except the last value put under exactly these bytes.
func TestMemoIsLikeMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		memo := cache.NewMemo[int](0, nil)
		model := make(map[string]int)
		keys := rapid.SliceOfN(rapid.Byte(), 0, 3)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				key, value := keys.Draw(rt, "key"), rapid.Int().Draw(rt, "value")
				model[string(key)] = value
				memo.Put(key, value)
				if got, ok := memo.Get(key); !ok || got != value {
					rt.Errorf("Get(%q) = %d, %t right after Put(%d)", key, got, ok, value)
				}
			},
			"get": func(rt *rapid.T) {
				key := keys.Draw(rt, "key")
				want, put := model[string(key)]
				if got, ok := memo.Get(key); ok && (!put || got != want) {
					rt.Errorf("Get(%q) = %d, put was %d, %t", key, got, want, put)
				}
			},
		})
	})
}

func TestMemoOwnsItsKeys(t *testing.T) {
	memo := cache.NewMemo[string](0, nil)
	buffer := []byte("first request")
	memo.Put(buffer, "first")
	copy(buffer, "other request") // buffers are pooled
	if got, ok := memo.Get(buffer); ok {
		t.Errorf("Get of the buffer's new content = %q", got)
	}
	if got, ok := memo.Get([]byte("first request")); !ok || got != "first" {
		t.Errorf("Get of its old content = %q, %t", got, ok)
	}
}

func TestMemoKeepsWhatFits(t *testing.T) {
	const budget = 1 << 20
	memo := cache.NewMemo[int](budget, nil)
	key := func(i int) []byte { return binary.BigEndian.AppendUint64(make([]byte, 92), uint64(i)) }
	held := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			if got, ok := memo.Get(key(i)); ok {
				if got != i {
					t.Fatalf("Get(%d) = %d", i, got)
				}
				n++
			}
		}
		return n
	}
	for i := range 300 { // well below the number of slots
		memo.Put(key(i), i)
	}
	if n := held(0, 300); n < 295 {
		t.Errorf("%d of 300 entries are kept in a memo for 1000", n)
	}
	for i := range 100_000 {
		memo.Put(key(i), i)
	}
	if n := held(0, 100_000); n < 800 || n > budget/100 {
		t.Errorf("%d entries of 100 bytes are held in %d bytes", n, budget)
	}
}

func TestMemoIsBoundedInBytes(t *testing.T) {
	const budget = 1 << 20
	memo := cache.NewMemo(budget, func(v []byte) int { return cap(v) })
	var keys [][]byte
	for i := range 3000 {
		key := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1+i*31%2000)
		keys = append(keys, key)
		memo.Put(key, make([]byte, i*17%3000))
	}
	held := 0
	for _, key := range keys {
		if value, ok := memo.Get(key); ok {
			held += len(key) + cap(value)
		}
	}
	if held > budget || held < budget/4 {
		t.Errorf("%d bytes are held in a memo of %d", held, budget)
	}
}

func TestMemoRefusesLargeEntries(t *testing.T) {
	memo := cache.NewMemo(0, func(v string) int { return len(v) })
	large := string(make([]byte, 64<<10))
	memo.Put([]byte("key"), "small")
	memo.Put([]byte("key"), large)
	if got, ok := memo.Get([]byte("key")); ok {
		t.Errorf("%d bytes are kept though they don't fit, or the older value is", len(got))
	}
	memo.Put([]byte(large), "small")
	if _, ok := memo.Get([]byte(large)); ok {
		t.Error("a key is kept that does not fit")
	}
}

// An entry that is used often survives a flood of entries that are used once.
func TestMemoKeepsUsedEntries(t *testing.T) {
	memo := cache.NewMemo[int](64<<10, nil)
	popular := []byte("popular")
	memo.Put(popular, 1)
	for i := range 10_000 {
		if _, ok := memo.Get(popular); !ok {
			t.Fatalf("the popular entry was forgotten after %d others", i)
		}
		memo.Put(fmt.Append(nil, i), i)
	}
}

func TestMemoGetDoesNotAllocate(t *testing.T) {
	memo := cache.NewMemo[int](0, nil)
	key := []byte("key")
	memo.Put(key, 1)
	if n := testing.AllocsPerRun(100, func() { memo.Get(key) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestMemoConcurrently(t *testing.T) {
	memo := cache.NewMemo[int](64<<10, nil)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 5000 {
				n := (i*7 + g) % 500
				key := fmt.Append(nil, n)
				if got, ok := memo.Get(key); ok && got != n {
					t.Errorf("Get(%d) = %d", n, got)
				}
				memo.Put(key, n)
			}
		})
	}
	wait.Wait()
}
