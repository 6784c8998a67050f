package registry

import (
	"iter"
	"maps"
)

// shards is how many maps a table has, a power of two: what a change copies is one of them.
const shards = 64

// table is an immutable map in pieces, so that the next version of a large one costs the copy of a small one.
type table[K tableKey, V any] [shards]map[K]V

type tableKey interface{ int64 | [32]byte }

func shardOf[K tableKey](k K) int {
	switch k := any(k).(type) {
	case int64:
		return int(k & (shards - 1))
	case [32]byte:
		return int(k[0] & (shards - 1))
	}
	panic("BUG: a table key of another type")
}

// get returns the value of a key, the zero value when there is none.
func (t *table[K, V]) get(k K) V { return t[shardOf(k)][k] }

// all yields the values in no order.
func (t *table[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, shard := range t {
			for _, v := range shard {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// tableDraft is the next version of a table: it copies a shard when that is first changed.
type tableDraft[K tableKey, V any] struct {
	table *table[K, V]
	own   [shards]bool
}

func (d *tableDraft[K, V]) put(k K, v V) { d.shard(k)[k] = v }
func (d *tableDraft[K, V]) remove(k K)   { delete(d.shard(k), k) }

func (d *tableDraft[K, V]) shard(k K) map[K]V {
	i := shardOf(k)
	if !d.own[i] {
		d.own[i] = true
		if d.table[i] == nil {
			d.table[i] = make(map[K]V)
		} else {
			d.table[i] = maps.Clone(d.table[i])
		}
	}
	return d.table[i]
}
