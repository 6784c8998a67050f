package registry_test

import (
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
		r := openAt(t, path, registry.Options{})
		p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
		_, text := createKey(t, r, p.ID)
		touch := func(at time.Time) *registry.Key {
			r.Touch(r.Snapshot().KeyByHash(registry.HashKey(text)), at)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			return r.Snapshot().KeyByHash(registry.HashKey(text))
		}
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
			before := r.Snapshot().Revision
			if got := touch(tt.at).LastUsedAt; got != tt.want {
				t.Errorf("%s: last used at %s, want %s", tt.name, got, tt.want)
			}
			if got := r.Snapshot().Revision != before; got != tt.written {
				t.Errorf("%s: written %t, want %t", tt.name, got, tt.written)
			}
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
			{"a version that is not there", 3, now.Add(time.Hour), times{moment.Add(30 * time.Minute), moment.Add(time.Minute), moment.Add(30 * time.Minute)}},
		}
		for _, tt := range tests {
			r.Executed(r.Snapshot().Endpoint(p.ID, "e"), tt.version, tt.at)
			s, e := r.Snapshot(), r.Snapshot().Endpoint(p.ID, "e")
			if diff := cmp.Diff(tt.want, times{s.LastExecuted(e, 0), s.LastExecuted(e, 1), s.LastExecuted(e, 2)}); diff != "" {
				t.Errorf("%s, not written yet (-want +got):\n%s", tt.name, diff)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			e = r.Snapshot().Endpoint(p.ID, "e")
			if diff := cmp.Diff(tt.want, times{e.LastExecutedAt, e.Versions[0].LastExecutedAt, e.Versions[1].LastExecutedAt}); diff != "" {
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
	before := r.Snapshot()
	for _, gone := range []*registry.Endpoint{old, {Project: 9, Name: "e"}, {Project: p.ID, Name: "none"}} {
		if at := before.LastExecuted(gone, 0); !at.IsZero() {
			t.Errorf("endpoint %s of project %d, which is gone, was last run at %v", gone.Name, gone.Project, at)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	checkSame(t, before, openAt(t, path, quiet).Snapshot())
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
		time.Sleep(5 * time.Second)
		synctest.Wait()
		s.set(func(s *switched) { s.write = nil })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var tried int
		s.set(func(s *switched) { tried = s.writes })
		time.Sleep(time.Minute)
		synctest.Wait()
		s.set(func(s *switched) {
			if s.writes != tried {
				t.Errorf("with nothing to write the store was asked %d times more", s.writes-tried)
			}
		})
		r.Executed(e, 1, now) // not gathered yet when the registry is closed
		if err := r.Close(); err != nil {
			t.Fatalf("Close() = %v", err)
		}
		after := openAt(t, path, quiet).Snapshot()
		got := []time.Time{after.Keys(p.ID)[0].LastUsedAt, after.Endpoint(p.ID, "e").LastExecutedAt}
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
		again := openAt(t, path, registry.Options{})
		before := again.Snapshot().Revision
		again.Touch(k, now.Add(time.Minute))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := again.Snapshot().Revision; got != before {
			t.Errorf("a use within the hour was written after a restart: revision %d, was %d", got, before)
		}
	})
}

func TestUsesThatFindNoRoomAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1500 // more than wait at a time
		r, s := openSwitched(t, sqlitetest.Path(t), registry.Options{Poll: time.Hour})
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
		used := func() (n int) {
			for _, k := range r.Snapshot().Keys(p.ID) {
				if !k.LastUsedAt.IsZero() {
					n++
				}
			}
			return n
		}
		touchAll := func() {
			for _, k := range r.Snapshot().Keys(p.ID) {
				r.Touch(k, now)
			}
			synctest.Wait()
		}
		rest := func() {
			time.Sleep(5 * time.Second)
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
