package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Movable is a Store whose contents can be moved to another one.
type Movable interface {
	Store
	// Contents calls read with all that the store holds. No records or logs are written until read returns.
	Contents(ctx context.Context, read func(*Contents) error) error
	// Fill puts contents as they are into a store that holds nothing. It puts all of the records and logs or none. A store that holds something is ErrNotEmpty.
	Fill(ctx context.Context, c *Contents) error
}

// Contents is all that a store holds. Texts are in the order of their bytes.
type Contents struct {
	Revision uint64
	Records  iter.Seq2[*Record, error] // by project, kind and id, with their unique keys, without removed ones
	Entries  iter.Seq2[*Entry, error]  // by project, log and id
	Kept     iter.Seq2[*Kept, error]   // by name
}

// Kept is data that a store keeps under a name.
type Kept struct {
	Name string
	Data []byte
}

// Rows are the rows of a database's answer.
type Rows interface {
	Next() bool
	Err() error
}

// Scanned returns the rows of a query as values. It closes the rows when the iteration ends.
func Scanned[R Rows, T any](query func() (R, error), closeRows func(R), scan func(R, *T) error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		rows, err := query()
		if err != nil {
			yield(nil, err)
			return
		}
		defer closeRows(rows)
		for rows.Next() {
			value := new(T)
			if err := scan(rows, value); err != nil {
				yield(nil, err)
				return
			}
			if !yield(value, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// ErrNotEmpty says that a store holds something, and so can't be filled.
var ErrNotEmpty = errors.New("the registry to move to is not empty")

// Moved counts what was moved and verified.
type Moved struct {
	Revision   uint64 `json:"revision"`
	Records    int    `json:"records"`
	UniqueKeys int    `json:"unique_keys"`
	Entries    int    `json:"entries"`
	Kept       int    `json:"kept"`
}

// Move copies all that a store holds into another one, which is empty, and compares the two record by record. Records and logs of the store are not written
// meanwhile. Kept data, which is not locked, is compared too: if it changed meanwhile, that is an error. What nodes keep about themselves stays behind: the
// other store has other nodes.
func Move(ctx context.Context, from, to Movable) (moved Moved, err error) {
	err = from.Contents(ctx, func(source *Contents) error {
		source = source.WithoutNodes()
		if err := to.Fill(ctx, source); err != nil {
			return err
		}
		return to.Contents(ctx, func(copied *Contents) error {
			moved, err = compare(source, copied.WithoutNodes())
			return err
		})
	})
	if err != nil {
		return Moved{}, fmt.Errorf("moving the registry: %w", err)
	}
	return moved, nil
}

// WithoutNodes returns the contents without what nodes keep about themselves.
func (c *Contents) WithoutNodes() *Contents {
	left := *c
	left.Kept = func(yield func(*Kept, error) bool) {
		for k, err := range c.Kept {
			if err == nil && strings.HasPrefix(k.Name, NodePrefix) {
				continue
			}
			if !yield(k, err) {
				return
			}
		}
	}
	return &left
}

// compare counts what two stores hold, which must be the same.
func compare(a, b *Contents) (n Moved, err error) {
	if a.Revision != b.Revision {
		return n, fmt.Errorf("the revision is %d, and was %d", b.Revision, a.Revision)
	}
	n.Revision = a.Revision
	n.Records, err = compareAll("record", a.Records, b.Records, func(x, y *Record) bool {
		slices.Sort(x.Unique)
		slices.Sort(y.Unique)
		n.UniqueKeys += len(x.Unique)
		return x.Project == y.Project && x.Kind == y.Kind && x.ID == y.ID && x.Revision == y.Revision && string(x.Data) == string(y.Data) && slices.Equal(x.Unique, y.Unique)
	}, func(r *Record) string { return fmt.Sprintf("%s %q of project %d", r.Kind, r.ID, r.Project) })
	if err != nil {
		return n, err
	}
	n.Entries, err = compareAll("entry", a.Entries, b.Entries, func(x, y *Entry) bool {
		return x.Project == y.Project && x.Log == y.Log && x.ID == y.ID && x.Item == y.Item && x.By == y.By && x.At.Equal(y.At) &&
			(x.Data == nil) == (y.Data == nil) && string(x.Data) == string(y.Data)
	}, func(e *Entry) string { return fmt.Sprintf("%q of the log %q of project %d", e.ID, e.Log, e.Project) })
	if err != nil {
		return n, err
	}
	n.Kept, err = compareAll("thing kept", a.Kept, b.Kept, func(x, y *Kept) bool { return x.Name == y.Name && string(x.Data) == string(y.Data) },
		func(k *Kept) string { return k.Name })
	return n, err
}

// compareAll counts the values of two sequences, which must be the same.
func compareAll[T any](what string, a, b iter.Seq2[*T, error], same func(x, y *T) bool, name func(*T) string) (n int, err error) {
	next, stop := iter.Pull2(b)
	defer stop()
	for x, err := range a {
		if err != nil {
			return n, err
		}
		y, err, ok := next()
		switch {
		case err != nil:
			return n, err
		case !ok:
			return n, fmt.Errorf("the %s %s is missing", what, name(x))
		case !same(x, y):
			return n, fmt.Errorf("the %s %s differs after the move: %s", what, name(x), name(y))
		}
		n++
	}
	y, err, ok := next()
	switch {
	case err != nil:
		return n, err
	case ok:
		return n, fmt.Errorf("the copy has the %s %s, which the source does not have", what, name(y))
	}
	return n, nil
}
