package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// inSQLite opens a store in a file.
func inSQLite(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// released is a store with all that a registry can hold.
func released(t *testing.T) *sqlite.Store {
	t.Helper()
	s := inSQLite(t, sqlitetest.Released(t))
	odd := registry.Record{Project: 9, Kind: "a", ID: `ä/"' ; --`, Unique: []string{"k ' \" {}", "Ä", "ä"}, Data: []byte(`{"text":"' \" ; -- ä\u0000 \\ \t<b>&", "spaces": [ ] }`)}
	removed := registry.Record{Project: 9, Kind: "a", ID: "removed", Data: []byte(`1`)}
	none := registry.Entry{Project: 9, Log: "log", ID: "b", By: "k", At: time.UnixMicro(1)}
	some := registry.Entry{Project: 9, Log: "log", ID: "a", Item: "i", At: time.UnixMicro(-5), Data: []byte(`"\\N"`)}
	for _, w := range []registry.Write{{Put: []registry.Record{odd, removed}, Append: append(usesOf(2, 1), none, some)}, {Put: []registry.Record{{Project: 9, Kind: "a", ID: "removed"}}}} {
		if _, err := s.Write(t.Context(), &w); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string]string{"people-1": "one\x00\xff", "people-10": "ten", "people": strings.Repeat("long", 1<<20), registry.NodePrefix + "0": "gone"} {
		if err := s.Keep(t.Context(), name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// logs are the logs that any entry of the released file is in.
func logs(t *testing.T, s registry.Movable) (all [][2]any) {
	t.Helper()
	err := s.Contents(t.Context(), func(c *registry.Contents) error {
		for e, err := range c.Entries {
			if err != nil {
				return err
			}
			if log := [2]any{e.Project, e.Log}; !slices.Contains(all, log) {
				all = append(all, log)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shown is what a store returns, other than by the methods for moving it.
func shown(t *testing.T, s registry.Store, of [][2]any) (all struct {
	Records *registry.Changes
	Entries [][]registry.Entry
	Kept    map[string]string
},
) {
	t.Helper()
	var err error
	if all.Records, err = s.Load(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	all.Records.Mark, all.Records.SinceMark = 0, 0 // each store has its own
	slices.SortFunc(all.Records.Records, func(a, b registry.Record) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	for _, log := range of {
		entries, _, err := s.Entries(t.Context(), log[0].(int64), log[1].(string), registry.EntryPage{})
		if err != nil {
			t.Fatal(err)
		}
		all.Entries = append(all.Entries, entries)
	}
	all.Kept = make(map[string]string)
	for _, name := range []string{"people-1", "people-10", "people", "people-2"} { // not those of nodes, which do not move
		data, err := s.Kept(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all.Kept[name] = string(data)
	}
	return all
}

// TestMove moves a registry with all that there can be from SQLite to PostgreSQL and back.
func TestMove(t *testing.T) {
	first, between := released(t), open(t, postgrestest.DSN(t))
	last := inSQLite(t, filepath.Join(t.TempDir(), "registry.db"))
	of := logs(t, first)
	want := shown(t, first, of)
	moved, err := registry.Move(t.Context(), first, between)
	if err != nil {
		t.Fatal(err)
	}
	if moved.Records != len(want.Records.Records) || moved.Records < 50 || moved.Entries < 10 || moved.Kept != 3 || moved.UniqueKeys < 10 || moved.Revision != want.Records.Revision {
		t.Errorf("it moved %+v", moved)
	}
	if diff := gocmp.Diff(want, shown(t, between, of)); diff != "" {
		t.Errorf("in PostgreSQL (-before +after):\n%s", diff)
	}
	for _, name := range []string{"1", "9"} {
		if err := between.Keep(t.Context(), registry.NodePrefix+name, []byte("gone")); err != nil {
			t.Fatal(err)
		}
	}
	back, err := registry.Move(t.Context(), between, last)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(moved, back); diff != "" {
		t.Errorf("what moved back (-there +back):\n%s", diff)
	}
	if diff := gocmp.Diff(want, shown(t, last, of)); diff != "" {
		t.Errorf("in SQLite again (-before +after):\n%s", diff)
	}
	for name, s := range map[string]registry.Store{registry.NodePrefix + "0": between, registry.NodePrefix + "1": last} {
		if data, err := s.Kept(t.Context(), name); err != nil || data != nil {
			t.Errorf("what a node kept of itself was moved: %q, %v", data, err)
		}
	}
	for name, s := range map[string]registry.Movable{"PostgreSQL": between, "SQLite": last} {
		taken := &registry.ConflictError{Kind: "a", Key: "Ä"}
		_, err := s.Write(t.Context(), &registry.Write{Put: []registry.Record{{Project: 10, Kind: "a", ID: "x", Unique: []string{"Ä"}, Data: []byte(`1`)}}})
		if got, _ := errors.AsType[*registry.ConflictError](err); got == nil || *got != *taken {
			t.Errorf("%s: a unique key that was moved: %v", name, err)
		}
		if _, err := registry.Move(t.Context(), first, s); !errors.Is(err, registry.ErrNotEmpty) {
			t.Errorf("%s: moving there again: %v", name, err)
		}
		if changes, err := s.Load(t.Context(), want.Records.Revision-1); err != nil || !changes.Whole {
			t.Errorf("%s: a reader of an earlier revision is told of some changes: %v", name, err)
		}
		if _, err := registry.Open(t.Context(), s, registry.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNobodyWritesDuringAMove: writers of the registry that is moved wait.
func TestNobodyWritesDuringAMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	dsn := postgrestest.DSN(t)
	for name, pair := range map[string][2]registry.Movable{
		"SQLite": {inSQLite(t, path), inSQLite(t, path)}, "PostgreSQL": {open(t, dsn), open(t, dsn)},
	} {
		write := func(ctx context.Context) error {
			_, err := pair[1].Write(ctx, &registry.Write{Append: []registry.Entry{{Project: 1, Log: "log", ID: "x"}}})
			return err
		}
		err := pair[0].Contents(t.Context(), func(*registry.Contents) error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := write(ctx); err == nil {
				t.Errorf("%s: a write during the move succeeds", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(t.Context()); err != nil {
			t.Errorf("%s: a write after it: %v", name, err)
		}
	}
}

// damaged is a store that changes what it is filled with.
type damaged struct {
	*postgres.Store

	change func(*registry.Contents)
}

func (d damaged) Contents(ctx context.Context, read func(*registry.Contents) error) error {
	return d.Store.Contents(ctx, func(c *registry.Contents) error {
		d.change(c)
		return read(c)
	})
}

// TestMoveComparesEverything: whatever came over wrong is found.
func TestMoveComparesEverything(t *testing.T) {
	first := released(t)
	for _, tt := range []struct {
		name   string
		change func(*registry.Contents)
		want   string
	}{
		{"a record lost", func(c *registry.Contents) { c.Records = without(c.Records) }, "record"},
		{"an entry lost", func(c *registry.Contents) { c.Entries = without(c.Entries) }, "entry"},
		{"something kept lost", func(c *registry.Contents) { c.Kept = without(c.Kept) }, "thing kept people differs"},
		{"another revision", func(c *registry.Contents) { c.Revision++ }, "the revision is"},
		{"another byte", changed(func(r *registry.Record) { r.Data = append(r.Data, ' ') }), "differs after the move"},
		{"another unique key", changed(func(r *registry.Record) { r.Unique = append(r.Unique, "x") }), "differs after the move"},
		{"records that can't be read to their end", func(c *registry.Contents) { c.Records = brokenOff(c.Records) }, errUnreadable.Error()},
		{"entries that can't be read to their end", func(c *registry.Contents) { c.Entries = brokenOff(c.Entries) }, errUnreadable.Error()},
		{"another revision of a record", changed(func(r *registry.Record) { r.Revision++ }), "differs after the move"},
	} {
		to := damaged{open(t, postgrestest.DSN(t)), tt.change}
		if _, err := registry.Move(t.Context(), first, to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

var errUnreadable = errors.New("the disk is damaged")

// brokenOff fails after the last value.
func brokenOff[T any](values iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for value, err := range values {
			if !yield(value, err) {
				return
			}
		}
		yield(nil, errUnreadable)
	}
}

// without leaves out the first value.
func without[T any](values iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		first := true
		for value, err := range values {
			if !first && !yield(value, err) {
				return
			}
			first = false
		}
	}
}

// changed changes the last record.
func changed(change func(*registry.Record)) func(*registry.Contents) {
	return func(c *registry.Contents) {
		records := c.Records
		c.Records = func(yield func(*registry.Record, error) bool) {
			var before *registry.Record
			for rec, err := range records {
				if err != nil || before != nil && !yield(before, nil) {
					return
				}
				before = rec
			}
			change(before)
			yield(before, nil)
		}
	}
}
