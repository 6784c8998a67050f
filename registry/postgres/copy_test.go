package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// held is all that a store holds, except the revisions, which differ after a restore.
type held struct {
	Records []registry.Record
	Entries []registry.Entry
	Kept    map[string]string
}

// contentsOf reads all that a store holds.
func contentsOf(t *testing.T, s registry.Movable) (all held) {
	t.Helper()
	all.Kept = make(map[string]string)
	err := s.Contents(t.Context(), func(c *registry.Contents) error {
		for rec, err := range c.Records {
			if err != nil {
				return err
			}
			rec.Revision = 0
			slices.Sort(rec.Unique)
			all.Records = append(all.Records, *rec)
		}
		for e, err := range c.Entries {
			if err != nil {
				return err
			}
			all.Entries = append(all.Entries, *e)
		}
		for k, err := range c.Kept {
			if err != nil {
				return err
			}
			all.Kept[k.Name] = string(k.Data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// copiable is a store of either kind.
type copiable interface {
	registry.Movable
	registry.Copier
}

// readable is a store with all that a registry can hold, but only of known kinds.
func readable(t *testing.T) *sqlite.Store {
	t.Helper()
	s := released(t)
	unheard := registry.Write{}
	for _, rec := range contentsOf(t, s).Records {
		if _, err := registry.UniqueKeys(&rec); err != nil {
			unheard.Put = append(unheard.Put, registry.Record{Project: rec.Project, Kind: rec.Kind, ID: rec.ID})
		}
	}
	if _, err := s.Write(t.Context(), &unheard); err != nil {
		t.Fatal(err)
	}
	return s
}

// copyOf copies a store.
func copyOf(t *testing.T, s registry.Copier) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := s.Copy(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// restore replaces what a store holds by a copy.
func restore(t *testing.T, s copiable, folder string) {
	t.Helper()
	before, _, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Examine(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), folder, before); err != nil {
		t.Fatal(err)
	}
	if after, _, err := s.Revision(t.Context()); err != nil || after <= before {
		t.Errorf("the revision was %d and is %d: %v", before, after, err)
	}
}

// TestCopy restores a registry with all that there can be from each kind of store into each, over what was there, and compares them record by
// record.
func TestCopy(t *testing.T) {
	kinds := map[string]func() copiable{
		"SQLite":     func() copiable { return inSQLite(t, filepath.Join(t.TempDir(), "registry.db")) },
		"PostgreSQL": func() copiable { return open(t, postgrestest.DSN(t)) },
	}
	first := readable(t)
	if err := first.Keep(t.Context(), registry.NodePrefix+"0", nil); err != nil { // a node's own is not copied
		t.Fatal(err)
	}
	want := contentsOf(t, first)
	if len(want.Records) < 50 || len(want.Entries) < 10 || len(want.Kept) != 3 {
		t.Fatalf("there are %d records, %d entries and %d things kept", len(want.Records), len(want.Entries), len(want.Kept))
	}
	for source, from := range kinds {
		copied := from()
		restore(t, copied, copyOf(t, first))
		if diff := gocmp.Diff(want, contentsOf(t, copied)); diff != "" {
			t.Errorf("from SQLite to %s (-want +got):\n%s", source, diff)
		}
		if err := copied.Keep(t.Context(), registry.NodePrefix+"copied", []byte("one that ran")); err != nil && source == "PostgreSQL" {
			t.Fatal(err)
		}
		folder := copyOf(t, copied)
		for target, to := range kinds {
			last := to()
			for n := range 30 {
				w := &registry.Write{
					Put:    []registry.Record{{Project: 9, Kind: "a", ID: fmt.Sprint(n), Unique: []string{"to go " + fmt.Sprint(n)}, Data: []byte(`1`)}},
					Append: []registry.Entry{{Project: 9, Log: "log", ID: fmt.Sprint(n), Data: []byte(`1`)}},
				}
				if _, err := last.Write(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			if err := last.Keep(t.Context(), "people-2", []byte("to go")); err != nil {
				t.Fatal(err)
			}
			restore(t, last, folder)
			got := contentsOf(t, last)
			if source == "SQLite" { // whose file has no nodes but in this test
				delete(got.Kept, registry.NodePrefix+"copied")
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("from %s to %s (-want +got):\n%s", source, target, diff)
			}
			// Logs are counted anew.
			if _, total, err := last.Entries(t.Context(), 9, "log", registry.EntryPage{Limit: 1}); err != nil || total != 2 {
				t.Errorf("%s: the log has %d entries: %v", target, total, err)
			}
			reg, err := registry.Open(t.Context(), last, registry.Options{})
			if err != nil {
				t.Fatalf("%s: %v", target, err)
			}
			if err := reg.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCopyIsOfOneMoment copies a registry while two nodes write. Each write puts a record, counts in another one, and appends to a log.
func TestCopyIsOfOneMoment(t *testing.T) {
	dsn := postgrestest.DSN(t)
	s := open(t, dsn)
	stop, wrote := make(chan struct{}), make(chan struct{}, 1000)
	var writers sync.WaitGroup
	for project := range int64(2) {
		node := open(t, dsn)
		writers.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprint(n)
				_, err := node.Write(t.Context(), &registry.Write{
					Put: []registry.Record{
						{Project: project, Kind: "counter", ID: "x", Data: []byte(text)},
						{Project: project, Kind: "one", ID: text, Unique: []string{fmt.Sprint(project, " ", n)}, Data: []byte(text)},
					},
					Append: []registry.Entry{{Project: project, Log: "log", ID: text}},
				})
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case wrote <- struct{}{}:
				default:
				}
			}
		})
	}
	var folders []string
	for range 5 {
		<-wrote
		<-wrote
		folders = append(folders, copyOf(t, s))
	}
	close(stop)
	writers.Wait()
	for _, folder := range folders {
		copied, err := sqlite.OpenCopy(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		counted, ones, logged := map[int64]string{}, map[int64]int{}, map[int64]int{}
		all := contentsOf(t, copied)
		for _, rec := range all.Records {
			switch rec.Kind {
			case "counter":
				counted[rec.Project] = string(rec.Data)
			default:
				ones[rec.Project]++
				if len(rec.Unique) != 1 {
					t.Errorf("a record has the unique keys %q", rec.Unique)
				}
			}
		}
		for _, e := range all.Entries {
			logged[e.Project]++
		}
		sum := 0
		for project, n := range counted {
			sum += ones[project]
			if fmt.Sprint(ones[project]) != n || fmt.Sprint(logged[project]) != n {
				t.Errorf("project %d was written %s times, and the copy has %d records and %d entries", project, n, ones[project], logged[project])
			}
		}
		if revision, _, err := copied.Revision(t.Context()); err != nil || revision != uint64(sum) || sum == 0 {
			t.Errorf("the copy is of revision %d, and has %d writes: %v", revision, sum, err)
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyWaitsForACopy: others write and keep while a registry is copied, and the copy does not have it.
func TestNobodyWaitsForACopy(t *testing.T) {
	dsn := postgrestest.DSN(t)
	s, other := open(t, dsn), open(t, dsn)
	if _, err := s.Write(t.Context(), record("before")); err != nil {
		t.Fatal(err)
	}
	err := s.Moment(t.Context(), func(c *registry.Contents) error {
		if _, err := other.Write(t.Context(), record("meanwhile")); err != nil {
			t.Errorf("a write during a copy: %v", err)
		}
		if err := other.Keep(t.Context(), "people-1", []byte("meanwhile")); err != nil {
			t.Errorf("keeping something during a copy: %v", err)
		}
		for rec, err := range c.Records {
			if err != nil || rec.ID != "before" {
				t.Errorf("the copy has %+v: %v", rec, err)
			}
		}
		for k, err := range c.Kept {
			t.Errorf("the copy has %+v: %v", k, err)
		}
		if c.Revision != 1 {
			t.Errorf("the copy is of revision %d", c.Revision)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestoreWhileOthersRun: running nodes see what one of them restores, and do not overwrite it with what they knew before.
func TestRestoreWhileOthersRun(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	openNode := func(dsn string) *registry.Registry {
		t.Helper()
		r, err := registry.Open(ctx, open(t, dsn), registry.Options{Poll: time.Hour, Gather: time.Hour}) // they are told
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	from := openNode(postgrestest.DSN(t))
	p, err := from.CreateProject(ctx, registry.NewProject{Name: "restored"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := from.CreateKey(ctx, registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, now); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := from.Copy(ctx, folder); err != nil {
		t.Fatal(err)
	}

	dsn := postgrestest.DSN(t)
	one, other, beside := openNode(dsn), openNode(dsn), open(t, dsn)
	for range 20 { // so that its revision is ahead of that of the copy
		if _, err := one.CreateProject(ctx, registry.NewProject{Name: "to go"}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	known := other.Snapshot()
	_, release, err := other.Lock(ctx, "people-1", "other")
	if err != nil {
		t.Fatal(err)
	}
	node := registry.NodePrefix + "other"
	if err := other.Keep(ctx, node, []byte("it lives")); err != nil {
		t.Fatal(err)
	}
	if err := one.Examine(ctx, folder); err != nil {
		t.Fatal(err)
	}
	if err := one.Replace(ctx, folder, one.Snapshot()); err != nil {
		t.Fatal(err)
	}
	names := func(s *registry.Snapshot) (names []string) {
		for _, p := range s.Projects() {
			names = append(names, p.Name)
		}
		return names
	}
	if diff := gocmp.Diff([]string{"restored"}, names(one.Snapshot())); diff != "" {
		t.Errorf("the node that did it (-want +got):\n%s", diff)
	}
	eventually.Is(t, "another node has seen it", func() bool { return other.Snapshot().Revision != known.Revision })
	if got := other.Snapshot(); !slices.Equal(names(got), []string{"restored"}) || len(got.Keys(p.ID)) != 1 {
		t.Errorf("another node has %q and %d keys", names(got), len(got.Keys(p.ID)))
	}
	// What was decided on the earlier state is refused, whatever it is about.
	stale := &registry.Write{
		Expect: []registry.Expectation{{Project: p.ID, Revision: known.Revision}},
		Put:    []registry.Record{{Project: p.ID, Kind: "insight", ID: "1", Data: []byte(`{}`)}},
	}
	if _, err := beside.Write(ctx, stale); !errors.Is(err, registry.ErrStale) {
		t.Errorf("a write by the state before the restore: %v", err)
	}
	if err := other.Keep(ctx, "people-1", []byte("by what it knew")); err == nil {
		t.Error("who had a lock before the restore keeps something after it")
	}
	release()
	others, release, err := other.Lock(ctx, "people-1", "other")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if !others {
		t.Error("who had a lock before the restore believes that nothing has changed")
	}
	if data, err := one.Kept(ctx, node); err != nil || string(data) != "it lives" {
		t.Errorf("what a node that runs keeps of itself is %q: %v", data, err)
	}
	next, err := other.CreateProject(ctx, registry.NewProject{Name: "next"}, now)
	if err != nil || next.ID != p.ID+1 {
		t.Errorf("the next project is %+v: %v", next, err)
	}
}

// TestRefusedRestore: a restore that is refused changes nothing.
func TestRefusedRestore(t *testing.T) {
	whole := copyOf(t, readable(t))
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, folder, dsn string)
		want   string
		later  bool // it is found by Replace alone
	}{
		{"no file", func(t *testing.T, folder, _ string) {
			t.Helper()
			if err := os.Remove(filepath.Join(folder, "registry.db")); err != nil {
				t.Fatal(err)
			}
		}, "no such file", false},
		{"a file cut off", func(t *testing.T, folder, _ string) {
			t.Helper()
			if err := os.Truncate(filepath.Join(folder, "registry.db"), 20_000); err != nil {
				t.Fatal(err)
			}
		}, "malformed", false},
		{"bytes overwritten", func(t *testing.T, folder, _ string) {
			t.Helper()
			path := filepath.Join(folder, "registry.db")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 4096; i < len(raw); i++ {
				raw[i] = 'x'
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "malformed", false},
		{"no registry", func(t *testing.T, folder, _ string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(folder, "registry.db"), []byte(strings.Repeat("text", 5000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a database", false},
		{"tables of a newer version", func(t *testing.T, _, dsn string) {
			t.Helper()
			if _, err := connect(t, dsn).Exec(t.Context(), `UPDATE analytics_registry SET version = 99`); err != nil {
				t.Fatal(err)
			}
		}, "a newer version of the program wrote it", true},
		{"another node wrote", func(t *testing.T, _, dsn string) {
			t.Helper()
			if _, err := open(t, dsn).Write(t.Context(), record("later")); err != nil {
				t.Fatal(err)
			}
		}, registry.ErrStale.Error(), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			dsn := postgrestest.DSN(t)
			s := open(t, dsn)
			revision, err := s.Write(t.Context(), record("there"))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Keep(t.Context(), "people-1", []byte("there")); err != nil {
				t.Fatal(err)
			}
			tt.change(t, folder, dsn)
			before := contentsOf(t, s)
			if err := s.Examine(t.Context(), folder); (err == nil) != tt.later || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Examine() = %v", err)
			}
			if err := s.Replace(t.Context(), folder, revision); err == nil || tt.later && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Replace() = %v", err)
			}
			if diff := gocmp.Diff(before, contentsOf(t, s)); diff != "" {
				t.Errorf("what the store holds (-before +after):\n%s", diff)
			}
		})
	}
}
