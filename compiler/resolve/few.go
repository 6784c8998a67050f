package resolve

// few is a map from names whose zero value is ready and that is cheap while it is small: it searches its entries, which
// keep their order, until there are many.
type few[V any] struct {
	entries []entry[V]
	places  map[string]int // once there are more than manyEntries
}

type entry[V any] struct {
	key   string
	value V
}

const manyEntries = 16

// at returns the value of a key, for reading and changing until the next put; nil when there is none.
func (f *few[V]) at(key string) *V {
	if f.places != nil {
		if i, ok := f.places[key]; ok {
			return &f.entries[i].value
		}
		return nil
	}
	for i := range f.entries {
		if f.entries[i].key == key {
			return &f.entries[i].value
		}
	}
	return nil
}

// put adds a key that is not there.
func (f *few[V]) put(key string, value V) {
	if f.entries == nil {
		f.entries = make([]entry[V], 0, 4)
	}
	f.entries = append(f.entries, entry[V]{key, value})
	switch n := len(f.entries); {
	case f.places != nil:
		f.places[key] = n - 1
	case n > manyEntries:
		f.places = make(map[string]int, 2*n)
		for i, e := range f.entries {
			f.places[e.key] = i
		}
	}
}
