package registry

import (
	"cmp"
	"hash/maphash"

	"github.com/benbjohnson/immutable"
)

// row is an entity in a table.
type row[K cmp.Ordered, V any] interface {
	comparable
	// key returns its id within the project.
	key() K
	// code returns another name of it, such as the name of an endpoint; empty for none.
	code() string
	// listed reports whether lists show it.
	listed() bool
	// compare compares two entities in the order of lists.
	compare(V) int
	// size returns the approximate size of its texts in bytes.
	size() int
}

// table holds the entities of one kind of a project in persistent trees. A write copies a path of each tree, so that it costs the same
// however many entities there are, and snapshots share the rest.
type table[K cmp.Ordered, V row[K, V]] struct {
	byID   *immutable.SortedMap[K, V] // including deleted ones
	byCode *immutable.Map[string, V]
	list   *immutable.SortedMap[V, V]
}

func newTable[K cmp.Ordered, V row[K, V]]() table[K, V] {
	return table[K, V]{
		byID:   immutable.NewSortedMap[K, V](ascending[K]{}),
		byCode: immutable.NewMap[string, V](textHasher{}),
		list:   immutable.NewSortedMap[V, V](listOrder[K, V]{}),
	}
}

// get returns the entity with an id; the zero value if there is none.
func (t *table[K, V]) get(id K) V {
	v, _ := t.byID.Get(id)
	return v
}

// coded returns the entity with a code; the zero value if there is none.
func (t *table[K, V]) coded(code string) V {
	v, _ := t.byCode.Get(code)
	return v
}

// put adds an entity, and returns what it replaced. While an entity is in a table, its key, its code and its place in lists must not change.
func (t *table[K, V]) put(v V) Stored {
	was := t.remove(v.key())
	t.byID = t.byID.Set(v.key(), v)
	if code := v.code(); code != "" {
		t.byCode = t.byCode.Set(code, v)
	}
	if v.listed() {
		t.list = t.list.Set(v, v)
	}
	return was
}

// remove takes out the entity with an id, and returns what was there.
func (t *table[K, V]) remove(id K) Stored {
	was, ok := t.byID.Get(id)
	if !ok {
		return Stored{}
	}
	t.byID = t.byID.Delete(id)
	if code := was.code(); code != "" && t.coded(code) == was { // another entity may have taken it over
		t.byCode = t.byCode.Delete(code)
	}
	if was.listed() {
		t.list = t.list.Delete(was)
	}
	return Stored{1, int64(was.size())}
}

// page returns a part of the list. Its cost grows with offset and limit, not with the number of entities.
func (t *table[K, V]) page(offset, limit int) []V {
	var page []V
	each := t.list.Iterator()
	for at := 0; len(page) < limit && !each.Done(); at++ { // offset + limit may overflow
		if _, v, _ := each.Next(); at >= offset {
			page = append(page, v)
		}
	}
	return page
}

// valuesOf returns the values of a tree, in its order, for which keep returns true; all if keep is nil.
func valuesOf[K, V any](tree *immutable.SortedMap[K, V], keep func(V) bool) []V {
	values := []V{}
	if keep == nil {
		values = make([]V, 0, tree.Len())
	}
	for each := tree.Iterator(); !each.Done(); {
		if _, v, _ := each.Next(); keep == nil || keep(v) {
			values = append(values, v)
		}
	}
	return values
}

// Hashers and comparers for the keys of the persistent maps and trees.
type (
	textHasher                            struct{}
	ascending[K cmp.Ordered]              struct{}
	listOrder[K cmp.Ordered, V row[K, V]] struct{}
)

var textSeed = maphash.MakeSeed()

func (textHasher) Hash(text string) uint32 { return uint32(maphash.String(textSeed, text)) } //nolint:gosec // a hash may lose bits
func (textHasher) Equal(a, b string) bool  { return a == b }

func (ascending[K]) Compare(a, b K) int    { return cmp.Compare(a, b) }
func (listOrder[K, V]) Compare(a, b V) int { return a.compare(b) }
