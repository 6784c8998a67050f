package resolve

// smallMap is a map keyed by names that is cheap while it is small: it searches its entries, which keep their order, until there are many. Its zero
// value is ready to use.
type smallMap[V any] struct {
	entries []entry[V]
	places  map[string]int // used above indexAbove
}

type entry[V any] struct {
	key   string
	value V
}

const indexAbove = 16

// at returns a pointer to the value of a key, valid until the next put; nil if there is none.
func (f *smallMap[V]) at(key string) *V {
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

// put adds a new key.
func (f *smallMap[V]) put(key string, value V) {
	if f.entries == nil {
		f.entries = make([]entry[V], 0, 4)
	}
	f.entries = append(f.entries, entry[V]{key, value})
	switch n := len(f.entries); {
	case f.places != nil:
		f.places[key] = n - 1
	case n > indexAbove:
		f.places = make(map[string]int, 2*n)
		for i, e := range f.entries {
			f.places[e.key] = i
		}
	}
}
