package registry_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

func TestTouchIsWrittenOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		r, s := openSwitched(t, path, registry.Options{})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		k, _ := createKey(t, r, p.ID)
		serial, revision := r.Snapshot().Serial(p.ID), r.Snapshot().Revision
		tests := []struct {
			name    string
			at      time.Time
			want    time.Time
			written bool
		}{
			{"first", now, moment, true},
			{"at once again", now, moment, false},
			{"within the hour", now.Add(time.Hour - 2*time.Second), moment, false},
			{"after an hour", now.Add(time.Hour), moment.Add(time.Hour), true},
			{"by a clock that went back", now, moment.Add(time.Hour), false},
		}
		for _, tt := range tests {
			before := writesTo(s)
			r.Touch(k, tt.at)
			if got := r.Snapshot().LastUsed(k); got != tt.want {
				t.Errorf("%s: last used at %s, want %s", tt.name, got, tt.want)
			}
			time.Sleep(21 * time.Second)
			synctest.Wait()
			if got := writesTo(s) != before; got != tt.written {
				t.Errorf("%s: written %t, want %t", tt.name, got, tt.written)
			}
			if got := openAt(t, path, quiet).Snapshot().LastUsed(k); got != tt.want {
				t.Errorf("%s: another process reads %s, want %s", tt.name, got, tt.want)
			}
		}
		if err := r.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := r.Snapshot(); now.Revision != revision || now.Serial(p.ID) != serial {
			t.Errorf("uses made the revision %d of %d, and the serial number %d of %d", now.Revision, revision, now.Serial(p.ID), serial)
		}
		checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
	})
}

func TestExecutedIsWrittenEveryHalfHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		r := openAt(t, path, registry.Options{})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
		must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 2")}, now))(t)
		type times struct{ Endpoint, First, Second time.Time }
		tests := []struct {
			name    string
			version int
			at      time.Time
			want    times
		}{
			{"the second version", 2, now, times{moment, time.Time{}, moment}},
			{"the first version", 1, now.Add(time.Minute), times{moment.Add(time.Minute), moment.Add(time.Minute), moment}},
			{"within half an hour", 2, now.Add(20 * time.Minute), times{moment.Add(time.Minute), moment.Add(time.Minute), moment}},
			{"after half an hour", 2, now.Add(30 * time.Minute), times{moment.Add(30 * time.Minute), moment.Add(time.Minute), moment.Add(30 * time.Minute)}},
			{"an unknown version", 3, now.Add(time.Hour), times{moment.Add(30 * time.Minute), moment.Add(time.Minute), moment.Add(30 * time.Minute)}},
		}
		for _, tt := range tests {
			r.Executed(r.Snapshot().Endpoint(p.ID, "e"), tt.version, tt.at)
			s, e := r.Snapshot(), r.Snapshot().Endpoint(p.ID, "e")
			if diff := cmp.Diff(tt.want, times{s.LastExecuted(e, 0), s.LastExecuted(e, 1), s.LastExecuted(e, 2)}); diff != "" {
				t.Errorf("%s, not written yet (-want +got):\n%s", tt.name, diff)
			}
			time.Sleep(21 * time.Second)
			synctest.Wait()
			s = openAt(t, path, quiet).Snapshot()
			if diff := cmp.Diff(tt.want, times{s.LastExecuted(e, 0), s.LastExecuted(e, 1), s.LastExecuted(e, 2)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
	})
}

func TestUsesOfWhatIsGone(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	revoked, _ := createKey(t, r, p.ID)
	must(r.RevokeKey(t.Context(), revoked.ID, now))(t)
	old := must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	if err := r.DeleteEndpoint(t.Context(), p.ID, "e", now); err != nil {
		t.Fatal(err)
	}
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)

	r.Touch(revoked, now)
	r.Executed(old, 1, now) // its name stands for another endpoint now
	r.Executed(&registry.Endpoint{Project: 9, Name: "e"}, 1, now)
	before, log := r.Snapshot(), usesIn(t, path)
	for _, gone := range []*registry.Endpoint{old, {Project: 9, Name: "e"}, {Project: p.ID, Name: "none"}} {
		if at := before.LastExecuted(gone, 0); !at.IsZero() {
			t.Errorf("endpoint %s of project %d, which is gone, was last run at %v", gone.Name, gone.Project, at)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	after := openAt(t, path, quiet).Snapshot()
	checkSame(t, before, after)
	if at := after.LastUsed(revoked); !at.IsZero() {
		t.Errorf("a revoked key was used at %s", at)
	}
	if diff := cmp.Diff(log, usesIn(t, path)); diff != "" {
		t.Errorf("uses of what is gone were written (-before +after):\n%s", diff)
	}
}

// usesIn is the log of uses of the store at path.
func usesIn(t *testing.T, path string) []registry.Entry {
	t.Helper()
	s := openStore(t, path)
	entries, _, err := s.Entries(t.Context(), 0, "use", registry.EntryPage{})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return entries
}

// writesTo is how often a store was asked to write.
func writesTo(s *switched) (n int) {
	s.set(func(s *switched) { n = s.writes })
	return n
}

func TestUsesSurviveAnOutageAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		r, s := openSwitched(t, path, registry.Options{})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		k, _ := createKey(t, r, p.ID)
		e := must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)

		s.set(func(s *switched) { s.write = errDown })
		r.Touch(k, now)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.set(func(s *switched) { s.write = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		tried := writesTo(s)
		time.Sleep(time.Minute)
		synctest.Wait()
		if again := writesTo(s); again != tried {
			t.Errorf("with nothing to write the store was asked %d times more", again-tried)
		}
		r.Executed(e, 1, now) // not gathered yet when the registry is closed
		if err := r.Close(); err != nil {
			t.Fatalf("Close() = %v", err)
		}
		after := openAt(t, path, quiet).Snapshot()
		got := []time.Time{after.LastUsed(k), after.LastExecuted(e, 0)}
		if diff := cmp.Diff([]time.Time{moment, moment}, got); diff != "" {
			t.Errorf("last use of the key and the endpoint (-want +got):\n%s", diff)
		}
	})
}

func TestUsesKnownFromTheStoreAreNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		r := openAt(t, path, registry.Options{})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		k, _ := createKey(t, r, p.ID)
		r.Touch(k, now)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		again, s := openSwitched(t, path, registry.Options{})
		again.Touch(k, now.Add(time.Minute))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := writesTo(s); got != 0 {
			t.Errorf("after a restart a use within the hour was written: the store was asked %d times", got)
		}
	})
}

func TestUsesAreSeenByOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := sqlitetest.Path(t)
		here, cut := openSwitched(t, path, registry.Options{Gather: 21 * time.Second})
		there, down := openSwitched(t, path, registry.Options{})
		p := must(here.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		k, _ := createKey(t, here, p.ID)
		e := must(here.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
		after := func(wait time.Duration, want time.Time) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			s := there.Snapshot()
			if diff := cmp.Diff([]time.Time{want, want}, []time.Time{s.LastUsed(k), s.LastExecuted(e, 0)}); diff != "" {
				t.Errorf("%s later, the last uses of the key and the endpoint (-want +got):\n%s", wait, diff)
			}
		}
		use := func() time.Time {
			at := time.Now()
			here.Touch(k, at)
			here.Executed(e, 1, at)
			return at.UTC().Truncate(time.Microsecond)
		}
		time.Sleep(55 * time.Second) // what was used then is written 63 seconds after the start, and the other one reads after 60 and 120
		first := use()
		after(2*time.Minute, first)

		time.Sleep(time.Hour)
		cut.set(func(s *switched) { s.write = errDown }) // one process does not reach the store for three hours
		late := use()
		after(3*time.Hour, first)
		cut.set(func(s *switched) { s.write = nil })
		after(time.Hour+2*time.Minute, late)

		down.set(func(s *switched) { s.entries = errDown }) // the other one can't read for as long
		missed := use()
		after(3*time.Hour, late)
		down.set(func(s *switched) { s.entries = nil })
		after(2*time.Minute, missed)
	})
}

// TestUsesOfARestoredStore: the times are those of the copy, even where later ones were known.
func TestUsesOfARestoredStore(t *testing.T) {
	r, p := fresh(t)
	k, _ := createKey(t, r, p.ID)
	use := func(r *registry.Registry, at time.Time) {
		r.Touch(k, at)
		if got := r.Snapshot().LastUsed(k); !got.Equal(at) {
			t.Errorf("a use at %s is shown as %s", at, got)
		}
	}
	path := sqlitetest.Path(t)
	source := must(registry.Open(t.Context(), openStore(t, path), quiet))(t)
	must(source.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	k, _ = createKey(t, source, p.ID)
	use(source, moment)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	source = openAt(t, path, quiet)
	folder := t.TempDir()
	if err := source.Copy(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	use(source, moment.Add(2*time.Hour))
	for name, to := range map[string]*registry.Registry{"the same registry": source, "another one": r} {
		if err := to.Replace(t.Context(), folder, to.Snapshot()); err != nil {
			t.Fatal(err)
		}
		if got := to.Snapshot().LastUsed(k); !got.Equal(moment) {
			t.Errorf("%s shows %s, want %s", name, got, moment)
		}
	}
}

func TestUsesThatFindNoRoomAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1500 // more than wait at a time
		path := sqlitetest.Path(t)
		r, s := openSwitched(t, path, registry.Options{Poll: time.Hour})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		var w registry.Write
		for i := range many {
			hash := registry.HashKey(strconv.Itoa(i))
			w.Put = append(w.Put, registry.Record{
				Project: p.ID, Kind: registry.KindKey, ID: strconv.Itoa(i),
				Data: fmt.Appendf(nil, `{"kind": "personal", "hash": "%x", "scopes": ["*"], "created_at": "2026-02-03T04:05:06Z"}`, hash),
			})
		}
		if _, err := s.Store.Write(t.Context(), &w); err != nil {
			t.Fatal(err)
		}
		if err := r.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		used := func() int { return len(usesIn(t, path)) }
		touchAll := func() {
			for _, k := range r.Snapshot().Keys(p.ID) {
				r.Touch(k, now)
			}
			synctest.Wait()
		}
		rest := func() {
			time.Sleep(time.Minute)
			synctest.Wait()
		}

		hold := make(chan struct{})
		s.set(func(s *switched) { s.hold = hold })
		r.Touch(r.Snapshot().Keys(p.ID)[0], now)
		rest() // the writer is stuck from here on
		touchAll()
		s.set(func(s *switched) { s.hold = nil })
		close(hold)
		rest()
		if got := used(); got == 0 || got == many {
			t.Errorf("%d of %d uses were written, want only those that found room", got, many)
		}
		touchAll()
		rest()
		if got := used(); got != many {
			t.Errorf("%d of %d uses were written after a second try", got, many)
		}
	})
}
