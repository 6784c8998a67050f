// Package record reads records: events, and lines that describe persons, groups and members of cohorts.
package record

import (
	"errors"
	"fmt"
	"math"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// maxDepth is how deeply the objects and arrays of a record may be nested.
const maxDepth = 64

// The limits of names: each becomes a path of a JSON column, which ClickHouse tracks in every part and merge.
const (
	// MaxNames is how many names the properties of an event, a person or a group may have, including those of nested objects. The objects of a list share
	// theirs.
	MaxNames = 2000
	// maxRecordNames leaves room for the names of a record itself.
	maxRecordNames = MaxNames + 50
)

var errManyNames = &BoundError{fmt.Sprintf("it has more than %d property names", MaxNames)}

var errNoObject = errors.New("it is not a JSON object")

// BoundError reports JSON that is valid, but has more of something than a record may have.
type BoundError struct{ text string }

func (e *BoundError) Error() string { return e.text }

// Object is a JSON object with its members in order, each key once.
type Object []Member

// Member is a member of an object.
type Member struct {
	Key   string
	Value Value
}

// Get returns the value of a key, or nil.
func (o Object) Get(key string) Value {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Set replaces the value of a key, or adds the key after the others.
func (o Object) Set(key string, value Value) Object {
	for i := range o {
		if o[i].Key == key {
			o[i].Value = value
			return o
		}
	}
	return append(o, Member{key, value})
}

// Without returns the object without a key.
func (o Object) Without(key string) Object {
	for i := range o {
		if o[i].Key == key {
			return append(o[:i:i], o[i+1:]...)
		}
	}
	return o
}

// JSON returns the object as JSON text.
func (o Object) JSON() string {
	size := len("{}")
	for _, m := range o {
		size += len(m.Key) + len(m.Value) + len(`"":,`)
	}
	return string(o.Append(make([]byte, 0, size)))
}

// Append appends the object as JSON text.
func (o Object) Append(b []byte) []byte {
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = chjson.AppendString(b, m.Key)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// Stored reads an object that was written before, with any number of names.
func Stored(text string) (Object, error) { return parseNames([]byte(text), math.MaxInt) }

// Properties reads properties of a person that are sent on their own, with the limits of a record.
func Properties(text []byte) (Object, error) { return parseNames(text, MaxNames) }

// parseObject reads a JSON object and brings its values into a form that ClickHouse's JSON columns accept: valid UTF-8, each key once (the last one wins),
// integers beyond 64 bits as floats, limited nesting.
func parseObject(text []byte) (Object, error) { return parseNames(text, maxRecordNames) }

// parseNames is parseObject for an object with a given limit of names at all depths, where the objects of a list share theirs.
func parseNames(text []byte, most int) (Object, error) {
	r := Reader{in: text, out: make([]byte, 0, len(text)), names: most, most: most}
	if r.Kind() != '{' {
		return nil, errNoObject
	}
	o, _, err := r.members(nil, "", nil)
	if err != nil {
		return nil, err
	}
	return o, r.End()
}
