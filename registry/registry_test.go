package registry_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// switched is a store that can be made to fail, or to become another one.
type switched struct {
	registry.Store

	mu                    sync.Mutex
	load, write, revision error
	entries               error
	writes                int           // asked for
	hold                  chan struct{} // writes wait until it is closed; nil: they don't
	wrote                 func()        // called after each write that was done; nil: nothing is
	asked                 chan struct{} // takes a value when the revision is asked for, and the answer waits until it is taken; nil: it does not
	slow                  time.Duration // how long reading takes
}

func (s *switched) set(change func(*switched)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *switched) Load(ctx context.Context, since uint64) (*registry.Changes, error) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load != nil {
		return nil, s.load
	}
	return s.Store.Load(ctx, since)
}

func (s *switched) Write(ctx context.Context, w *registry.Write) (uint64, error) {
	if hold := s.counted(); hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write != nil {
		return 0, s.write
	}
	revision, err := s.Store.Write(ctx, w)
	if err == nil && s.wrote != nil {
		s.wrote()
	}
	return revision, err
}

func (s *switched) counted() (hold chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	return s.hold
}

func (s *switched) Revision(ctx context.Context) (revision uint64, mark int64, err error) {
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	if asked != nil {
		asked <- struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != nil {
		return 0, 0, s.revision
	}
	return s.Store.Revision(ctx)
}

func (s *switched) Entries(ctx context.Context, project int64, log string, page registry.EntryPage) ([]registry.Entry, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries != nil {
		return nil, 0, s.entries
	}
	return s.Store.Entries(ctx, project, log, page)
}

// Watch reports nothing: tests decide by the poll when they see what others wrote.
func (s *switched) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

var errDown = errors.New("the store is down")

// openSwitched is openAt with a store that can be made to fail.
func openSwitched(t *testing.T, path string, opts registry.Options) (*registry.Registry, *switched) {
	t.Helper()
	s := &switched{Store: openStore(t, path)}
	r, err := registry.Open(t.Context(), s, opts)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return r, s
}

func createKey(tb testing.TB, r *registry.Registry, project int64) (*registry.Key, string) {
	tb.Helper()
	k, text, err := r.CreateKey(tb.Context(), registry.NewKey{Project: project, Scopes: []string{"*"}}, now)
	if err != nil {
		tb.Fatal(err)
	}
	return k, text
}

func TestAnotherProcessSeesARevokedKeyWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		here, there := openAt(t, path, registry.Options{}), openAt(t, path, registry.Options{})
		p := must(here.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		k, text := createKey(t, here, p.ID)
		wait := func() {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		wait()
		if there.Snapshot().KeyByHash(registry.HashKey(text)) == nil {
			t.Fatal("the other process doesn't see the new key")
		}
		must(here.RevokeKey(t.Context(), k.ID, now))(t)
		wait()
		if there.Snapshot().KeyByHash(registry.HashKey(text)) != nil {
			t.Error("the other process still takes the revoked key")
		}
		checkSame(t, here.Snapshot(), there.Snapshot())
	})
}

func TestPollSaysOnceThatTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		r, s := openSwitched(t, sqlitetest.Path(t), registry.Options{Logger: zap.New(core)})
		must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		s.set(func(s *switched) { s.revision = errDown })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if r.Snapshot().Project(1) == nil {
			t.Error("the snapshot is gone with the store")
		}
		s.set(func(s *switched) { s.revision = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var got []string
		for _, entry := range logs.All() {
			got = append(got, entry.Message)
		}
		want := []string{"the store does not answer; serving what is known", "the store answers again"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestOwnWriteShowsThoughOthersCannotBeRead(t *testing.T) {
	path := sqlitetest.Path(t)
	r, s := openSwitched(t, path, quiet)
	other := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	k, text := createKey(t, r, p.ID)
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(other.CreateProject(t.Context(), registry.NewProject{Name: "Elsewhere"}, now))(t)

	s.set(func(s *switched) { s.load = errDown })
	before := r.Snapshot()
	must(r.RevokeKey(t.Context(), k.ID, now))(t)
	after := r.Snapshot()
	if after.KeyByHash(registry.HashKey(text)) != nil {
		t.Error("the revoked key still works")
	}
	if after.Revision != before.Revision || after.Serial(p.ID) == before.Serial(p.ID) {
		t.Errorf("revision %d after %d, serial %d after %d: want the same revision in another state of the project",
			after.Revision, before.Revision, after.Serial(p.ID), before.Serial(p.ID))
	}
	if err := r.Refresh(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("Refresh() = %v, want %v", err, errDown)
	}

	s.set(func(s *switched) { s.load = nil })
	if err := r.Refresh(t.Context()); err != nil {
		t.Errorf("Refresh() = %v", err)
	}
	checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
}

func TestWriteOnTopOfAnothersChange(t *testing.T) {
	path := sqlitetest.Path(t)
	here, there := openAt(t, path, quiet), openAt(t, path, quiet)
	p := must(here.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	must(here.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)

	// "there" knows nothing of all this yet.
	e := must(there.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 2")}, now))(t)
	if e.CurrentVersion != 2 {
		t.Errorf("the update made version %d, want 2", e.CurrentVersion)
	}
	e = must(here.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 3")}, now))(t)
	if e.CurrentVersion != 3 {
		t.Errorf("the update made version %d, want 3", e.CurrentVersion)
	}
	k, _ := createKey(t, there, p.ID)
	must(here.RevokeKey(t.Context(), k.ID, now))(t)
	if err := there.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSame(t, here.Snapshot(), there.Snapshot())
}

func TestSchemaStaysTheSameWhenAnotherProcessChangesOtherThings(t *testing.T) {
	path := sqlitetest.Path(t)
	here, there := openAt(t, path, quiet), openAt(t, path, quiet)
	p := must(here.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	before := here.Snapshot().Schema(p.ID)
	createKey(t, there, p.ID)
	if err := here.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if here.Snapshot().Schema(p.ID) != before {
		t.Error("a new key made another schema")
	}
	d := registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyNumeric}
	if err := there.SetProperty(t.Context(), p.ID, d); err != nil {
		t.Fatal(err)
	}
	if err := here.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if here.Snapshot().Schema(p.ID) == before {
		t.Error("a new property definition made no other schema")
	}
}

func TestFailedWriteShowsNothing(t *testing.T) {
	r, s := openSwitched(t, sqlitetest.Path(t), quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	before := r.Snapshot()
	s.set(func(s *switched) { s.write = errDown })
	_, _, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, now)
	if !errors.Is(err, errDown) || err.Error() != "creating a key: the store is down" {
		t.Errorf("CreateKey() = %v", err)
	}
	if r.Snapshot() != before {
		t.Error("a write that failed made another snapshot")
	}
}

func TestRestoredStoreIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	r, s := openSwitched(t, filepath.Join(dir, "registry.db"), quiet)
	for _, name := range []string{"Shop", "Elsewhere"} {
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: name}, now))(t)
		createKey(t, r, p.ID)
	}
	backup := filepath.Join(dir, "backup.db")
	old := openAt(t, backup, quiet)
	must(old.CreateProject(t.Context(), registry.NewProject{Name: "Long ago"}, now))(t)

	restored := openStore(t, backup)
	s.set(func(s *switched) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.Store = restored
	})
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatalf("Refresh() = %v", err)
	}
	checkSame(t, old.Snapshot(), r.Snapshot())
}

func TestUnusableProjectIsSkipped(t *testing.T) {
	path := sqlitetest.Path(t)
	core, logs := observer.New(zap.InfoLevel)
	r, s := openSwitched(t, path, registry.Options{Poll: time.Hour, Gather: time.Hour, Logger: zap.New(core)})
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	k, text := createKey(t, r, p.ID)

	// As a newer version of the program, which knows one zone more, would write.
	base := registry.Record{Project: 2, Kind: registry.KindProject, Data: []byte(`{"name": "Base", "timezone": "Mars/Base"}`)}
	if _, err := s.Store.Write(t.Context(), &registry.Write{Put: []registry.Record{base}}); err != nil {
		t.Fatal(err)
	}
	must(openAt(t, path, quiet).RevokeKey(t.Context(), k.ID, now))(t)
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatalf("Refresh() = %v", err)
	}
	if r.Snapshot().KeyByHash(registry.HashKey(text)) != nil {
		t.Error("one unusable project hides that a key was revoked")
	}
	if r.Snapshot().Project(2) != nil {
		t.Error("a project in an unknown zone is served")
	}
	if got := logs.FilterMessage("leaving out a project").Len(); got != 1 {
		t.Errorf("it was logged %d times, want once", got)
	}
}

func TestOpenFails(t *testing.T) {
	s := &switched{Store: openStore(t, sqlitetest.Path(t)), load: errDown}
	if _, err := registry.Open(t.Context(), s, registry.Options{}); err == nil || err.Error() != "reading the registry: the store is down" {
		t.Errorf("Open() = %v", err)
	}
	if _, _, err := s.Store.Revision(t.Context()); err != nil {
		t.Errorf("Open() closed a store that it could not read: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	r, p := fresh(t)
	if err := r.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close() again = %v", err)
	}
	if _, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Late"}, now); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("CreateProject() = %v, want %v", err, registry.ErrClosed)
	}
	if err := r.Refresh(t.Context()); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("Refresh() = %v, want %v", err, registry.ErrClosed)
	}
	if r.Snapshot().Project(p.ID) == nil {
		t.Error("the last snapshot is gone")
	}
}

// TestWritersThatGoAway: a writer that waits for another write gives up when its context ends.
func TestWritersThatGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := openSwitched(t, sqlitetest.Path(t), quiet)
		hold := make(chan struct{})
		s.set(func(s *switched) { s.hold = hold })
		first := make(chan error, 1)
		go func() {
			_, err := r.CreateProject(t.Context(), registry.NewProject{Name: "first"}, now)
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.CreateProject(ctx, registry.NewProject{Name: "second"}, now); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that waits for another: %v", err)
		}
		close(hold)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// TestNobodyWaitsForTheAnswerToAPoll: writes go on while the store is asked whether there were others.
func TestNobodyWaitsForTheAnswerToAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := openSwitched(t, sqlitetest.Path(t), quiet)
		asked := make(chan struct{})
		s.set(func(s *switched) { s.asked = asked })
		polled := make(chan error, 1)
		go func() { polled <- r.Refresh(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.CreateProject(ctx, registry.NewProject{Name: "meanwhile"}, now); err != nil {
			t.Errorf("a write during a poll: %v", err)
		}
		s.set(func(s *switched) { s.asked = nil })
		<-asked
		if err := <-polled; err != nil {
			t.Error(err)
		}
	})
}

// TestReadingMuch: what another process wrote is seen even if reading it takes minutes.
func TestReadingMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		there := openAt(t, path, quiet)
		here, s := openSwitched(t, path, registry.Options{})
		s.set(func(s *switched) { s.slow = 3 * time.Minute })
		p := must(there.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if here.Snapshot().Project(p.ID) == nil {
			t.Error("it is not seen after four minutes")
		}
		s.set(func(s *switched) { s.slow = 0 })
	})
}

// TestDeletedAndNotRead: a deleted project is gone, and its keys with it, even if the store can't be read afterwards.
func TestDeletedAndNotRead(t *testing.T) {
	path := sqlitetest.Path(t)
	r, s := openSwitched(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	_, text := createKey(t, r, p.ID)
	s.set(func(s *switched) {
		s.wrote = func() { s.load, s.revision = errDown, errDown }
	})
	removal, err := r.DeleteProject(t.Context(), p.ID, p.Name, now)
	if err != nil || removal.Records[registry.KindKey] != 1 {
		t.Fatalf("DeleteProject() = %+v, %v", removal, err)
	}
	snap := r.Snapshot()
	if snap.Project(p.ID) != nil || snap.KeyByHash(registry.HashKey(text)) != nil || snap.Removal(p.ID) == nil {
		t.Error("what was deleted is still shown")
	}
	s.set(func(s *switched) { s.wrote, s.load, s.revision = nil, nil, nil })
	before := records(snap)
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, records(r.Snapshot())); diff != "" {
		t.Errorf("what is shown without reading (-want +got):\n%s", diff)
	}
}

// TestWritesDuringADeletion: others write while all records are read for a deletion, and what they add to the project goes too.
func TestWritesDuringADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := openSwitched(t, sqlitetest.Path(t), quiet)
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		s.set(func(s *switched) { s.slow = time.Minute })
		type outcome struct {
			removal *registry.Removal
			err     error
		}
		deleted := make(chan outcome, 1)
		go func() {
			removal, err := r.DeleteProject(t.Context(), p.ID, p.Name, now)
			deleted <- outcome{removal, err}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		k, _, err := r.CreateKey(ctx, registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, now)
		if err != nil {
			t.Errorf("a write during a deletion: %v", err)
		}
		got := <-deleted
		if got.err != nil || got.removal.Records[registry.KindKey] != 1 {
			t.Errorf("DeleteProject() = %+v, %v; the key is %v", got.removal, got.err, k)
		}
		left := must(s.Store.Load(t.Context(), 0))(t)
		for _, rec := range left.Records {
			if rec.Project == p.ID {
				t.Errorf("the record %s %s is left", rec.Kind, rec.ID)
			}
		}
	})
}

func TestReadersWhileWriting(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 0")}, now))(t)
	_, text := createKey(t, r, p.ID)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Snapshot()
				e := s.Endpoint(p.ID, "e")
				if e.Version(0) == nil || e.CurrentVersion != len(e.Versions) || len(s.Endpoints(p.ID)) != 1 {
					t.Errorf("at revision %d the endpoint is at version %d of %d", s.Revision, e.CurrentVersion, len(e.Versions))
				}
				k := s.KeyByHash(registry.HashKey(text))
				r.Touch(k, now)
				r.Executed(e, e.CurrentVersion, now)
			}
		})
	}
	for i := range 30 {
		must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select " + string(rune('a'+i)))}, now))(t)
	}
	close(stop)
	readers.Wait()
}

func TestLookupsOfAnUnknownProject(t *testing.T) {
	r, _ := fresh(t)
	s := r.Snapshot()
	if s.Project(9) != nil || s.Schema(9) != nil || s.Keys(9) != nil || s.Endpoint(9, "e") != nil || s.Endpoints(9) != nil || s.Variables(9) != nil ||
		s.VariableByCode(9, "v") != nil || s.VariableByID(9, "v") != nil || s.VariableDefaults(9) != nil || s.PropertyDefinitions(9) != nil || s.GroupTypes(9) != nil {
		t.Error("something is found in a project that is not there")
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&registry.FieldError{Field: "name", Code: registry.CodeRequired, Message: "This field is required."}, "name: This field is required."},
		{&registry.ConflictError{Kind: registry.KindKey, Key: "1 label of a user"}, "another key has the same unique key"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}
