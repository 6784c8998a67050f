package cache_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// pieceOf returns a piece with one row that holds a number.
func pieceOf(n int, version uint64, at time.Time) *cache.Piece {
	b := cache.NewBuilder(cache.Limits{})
	_ = b.Columns(nil)
	_ = b.Row([]byte("[" + strconv.Itoa(n) + "]"))
	return &cache.Piece{Rows: b.Result(), Version: version, ComputedAt: at}
}

// modelPieces are the pieces stored under a key, as documented.
type modelPieces struct {
	key    cache.Key
	purges int
	bySpan map[cache.Span]*cache.Piece
}

func (m *modelPieces) drop(gone func(*cache.Piece) bool) {
	for s, p := range m.bySpan {
		if gone(p) {
			delete(m.bySpan, s)
		}
	}
}

// TestPiecesModel: exactly the stored pieces are found that were neither purged nor erased nor computed again later, whoever else stores pieces. Keys
// with the same hash replace each other, and never find each other's pieces.
func TestPiecesModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { rapid.SyncTest(rt, playPieces) })
}

func playPieces(rt *rapid.T) {
	w := newWorld(rt)
	keys := []*modelPieces{{key: key(1, "a")}, {key: key(1, "b")}, {key: key(2, "a")}, {key: cache.Collide(key(1, "c"))}, {key: cache.Collide(key(2, "c"))}}
	colliding := keys[3:]
	for _, k := range keys {
		k.bySpan = map[cache.Span]*cache.Piece{}
	}
	erased, earliest := map[int64]time.Time{}, map[int64]time.Time{}
	type computation struct {
		of     *modelPieces
		found  *cache.Pieces
		purges int
		began  time.Time
	}
	var running []computation
	count := 0
	spans := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) cache.Span {
		from := rapid.Int64Range(0, 5).Draw(t, "from")
		return cache.Span{From: from, To: from + rapid.Int64Range(1, 2).Draw(t, "length")}
	}), 1, 4, rapid.ID[cache.Span])
	pick := rapid.SampledFrom(keys)
	ofProject := func(project int64, do func(*modelPieces)) {
		for _, k := range keys {
			if k.key.Project() == project {
				do(k)
			}
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"begin": func(rt *rapid.T) {
			k := pick.Draw(rt, "key")
			running = append(running, computation{k, w.c.Pieces(k.key), k.purges, time.Now()})
		},
		"end": func(rt *rapid.T) {
			if len(running) == 0 {
				rt.Skip("nothing runs")
			}
			i := rapid.IntRange(0, len(running)-1).Draw(rt, "computation")
			of := running[i]
			running = append(running[:i], running[i+1:]...)
			computed := map[cache.Span]*cache.Piece{}
			list := spans.Draw(rt, "spans")
			for _, s := range list {
				count++
				computed[s] = pieceOf(count, uint64(count), of.began)
				computed[s].Reach = time.UnixMicro(s.From)
			}
			w.c.KeepPieces(of.found, nil, computed, list)
			if of.purges != of.of.purges {
				return
			}
			for s, p := range computed {
				if old := of.of.bySpan[s]; !p.Reach.Before(earliest[of.of.key.Project()]) && !p.ComputedAt.Before(erased[of.of.key.Project()]) && (old == nil || !old.ComputedAt.After(p.ComputedAt)) {
					of.of.bySpan[s] = p
				}
			}
			for _, other := range colliding {
				if (of.of == colliding[0] || of.of == colliding[1]) && other != of.of {
					other.drop(func(*cache.Piece) bool { return true })
				}
			}
		},
		"purge": func(rt *rapid.T) {
			project := rapid.Int64Range(1, 2).Draw(rt, "project")
			w.c.Purge(project)
			ofProject(project, func(k *modelPieces) {
				k.purges++
				k.drop(func(*cache.Piece) bool { return true })
			})
		},
		"erase": func(rt *rapid.T) {
			project, before := rapid.Int64Range(1, 2).Draw(rt, "project"), time.Now()
			w.c.Erase(project, before)
			erased[project] = before
			ofProject(project, func(k *modelPieces) {
				k.purges++
				k.drop(func(*cache.Piece) bool { return true })
			})
		},
		"erase outdated": func(rt *rapid.T) {
			project := rapid.Int64Range(1, 2).Draw(rt, "project")
			from := time.UnixMicro(rapid.Int64Range(0, 5).Draw(rt, "from"))
			w.c.EraseOutdated(time.Now(), map[int64]time.Time{project: from})
			earliest[project] = from
			ofProject(project, func(k *modelPieces) {
				k.drop(func(p *cache.Piece) bool { return p.Reach.Before(from) })
			})
		},
		"outdate": func(rt *rapid.T) { w.c.Outdate(rapid.Int64Range(1, 2).Draw(rt, "project")) },
		"wait":    func(*rapid.T) { time.Sleep(time.Second) },
		"": func(rt *rapid.T) {
			for _, k := range keys {
				got, found := map[cache.Span]*cache.Piece{}, w.c.Pieces(k.key)
				for from := int64(0); from <= 6; from++ {
					for to := from + 1; to <= from+2; to++ {
						if p := found.Find(cache.Span{From: from, To: to}); p != nil {
							got[cache.Span{From: from, To: to}] = p
						}
					}
				}
				if diff := cmp.Diff(k.bySpan, got, cmp.Comparer(func(a, b *cache.Piece) bool { return a == b })); diff != "" {
					rt.Fatalf("pieces of %v (-want +got):\n%s", k.key, diff)
				}
			}
		},
	})
}

// TestErasedPiecesOfRunningComputations: pieces whose computation began before an erasure are not stored after it, even if the computation looked for
// pieces later.
func TestErasedPiecesOfRunningComputations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		time.Sleep(time.Second)
		w.c.Erase(1, time.Now())
		span := cache.Span{From: 1, To: 2}
		w.c.KeepPieces(w.c.Pieces(key(1, "")), nil, map[cache.Span]*cache.Piece{span: pieceOf(1, 1, began)}, []cache.Span{span})
		if w.c.Pieces(key(1, "")).Find(span) != nil {
			t.Error("a piece of before the erasure is kept")
		}
	})
}

// TestPiecesHaveBounds: the number and the bytes of a query's pieces are limited, and the pieces of the last answer stay.
func TestPiecesHaveBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		name := key(1, "")
		keep := func(from, n int64, size int) {
			computed, list := map[cache.Span]*cache.Piece{}, []cache.Span{}
			for i := from; i < from+n; i++ {
				b := cache.NewBuilder(cache.Limits{})
				_ = b.Columns(nil)
				_ = b.Row([]byte(`["` + string(make([]byte, size)) + `"]`))
				s := cache.Span{From: i, To: i + 1}
				computed[s], list = &cache.Piece{Rows: b.Result(), ComputedAt: time.Now()}, append(list, s)
			}
			w.c.KeepPieces(w.c.Pieces(name), nil, computed, list)
		}
		found := func(from, to int64) (n int) {
			kept := w.c.Pieces(name)
			for i := from; i < to; i++ {
				if kept.Find(cache.Span{From: i, To: i + 1}) != nil {
					n++
				}
			}
			return n
		}
		for from := int64(0); from < 600; from += 50 {
			keep(from, 50, 900)
			if n := found(from, from+50); n != 50 {
				t.Fatalf("of 50 pieces that were just kept %d are there", n)
			}
			if size := w.c.Stats().Bytes; size > budget/8 {
				t.Fatalf("pieces of one query take %d bytes, and the most is %d", size, budget/8)
			}
		}
		if n := found(0, 600); n < 60 || n == 600 {
			t.Errorf("%d pieces are left", n)
		}
		keep(1000, 50, 900) // earlier than those, but part of the answer
		keep(700, 50, 900)
		if n := found(700, 750); n != 50 {
			t.Errorf("of 50 earlier pieces %d are there", n)
		}
		keep(2000, 1, budget)
		if n := found(2000, 2001); n != 0 {
			t.Error("a piece is kept that is larger than all of them may be")
		}
	})
}

// TestPiecesAtOnce: computations that store pieces of one query at the same time lose none, while others read and purge.
func TestPiecesAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for j := range int64(50) {
				s := cache.Span{From: i*50 + j, To: i*50 + j + 1}
				found := w.c.Pieces(key(1, ""))
				w.c.KeepPieces(found, []cache.Column{{Name: "n"}}, map[cache.Span]*cache.Piece{s: pieceOf(int(s.From), 1, time.Now())}, []cache.Span{s})
				w.c.Purge(2)
			}
		})
	}
	all.Wait()
	kept := w.c.Pieces(key(1, ""))
	for i := range int64(400) {
		p := kept.Find(cache.Span{From: i, To: i + 1})
		if p == nil || string(p.Rows.Row(0)) != "["+strconv.FormatInt(i, 10)+"]" {
			t.Fatalf("piece %d: %v", i, p)
		}
	}
	if diff := cmp.Diff([]cache.Column{{Name: "n"}}, kept.Columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
