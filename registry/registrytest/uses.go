package registrytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usedBy lets a process of its own note uses, and end.
func usedBy(t exam, use func(*registry.Registry)) {
	t.Helper()
	r := must(registry.Open(t.Context(), t.place(t.T), quiet))(t)
	use(r)
	if err := r.Close(); err != nil { // writes what was gathered
		t.Fatal(err)
	}
}

// readsUses opens a registry that reads uses all the time.
func readsUses(t exam) *registry.Registry {
	t.Helper()
	often := quiet
	often.Uses = 10 * time.Millisecond
	r := must(registry.Open(t.Context(), t.place(t.T), often))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// areUses checks what a new process reads, and what an existing one arrives at. No record changes.
func areUses(t exam, what string, there *registry.Registry, want []time.Time, uses func(*registry.Snapshot) []time.Time) {
	t.Helper()
	fresh := openRegistry(t).Snapshot()
	same(t, what, want, uses(fresh))
	for end := time.Now().Add(30 * time.Second); !slices.Equal(uses(there.Snapshot()), want) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	same(t, what+", for another process", want, uses(there.Snapshot()))
	if now := there.Snapshot().Revision; fresh.Revision != now {
		t.Errorf("%s: the revision is %d, and was %d", what, fresh.Revision, now)
	}
}

func testKeyUsed(t exam) {
	p := newPair(t)
	k, there := p.key(registry.NewKey{Project: p.project().ID}), readsUses(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, tt := range []struct{ at, want time.Time }{
		{now, now},
		{now.Add(time.Hour), now.Add(time.Hour)},
		{now.Add(time.Hour + time.Minute), now.Add(time.Hour)},
		{now, now.Add(time.Hour)}, // never back
		{now.Add(3 * time.Hour), now.Add(3 * time.Hour)},
	} {
		usedBy(t, func(r *registry.Registry) { r.Touch(&k, tt.at) })
		areUses(t, fmt.Sprintf("a use at %v", tt.at), there, []time.Time{tt.want}, func(s *registry.Snapshot) []time.Time { return []time.Time{s.LastUsed(&k)} })
	}
}

func testExecuted(t exam) {
	p := newPair(t)
	shop := p.project()
	p.endpoint(shop.ID, "daily")
	e := must(p.UpdateEndpoint(t.Context(), shop.ID, "daily", registry.EndpointUpdate{Query: odd("2")}, at))(t)
	there := readsUses(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, tt := range []struct {
		version            int
		at                 time.Time
		endpoint, one, two time.Time
	}{
		{2, now.Add(time.Hour), now.Add(time.Hour), time.Time{}, now.Add(time.Hour)},
		{1, now, now.Add(time.Hour), now, now.Add(time.Hour)}, // the endpoint's own time stays
		{2, now, now.Add(time.Hour), now, now.Add(time.Hour)},
		{3, now.Add(9 * time.Hour), now.Add(time.Hour), now, now.Add(time.Hour)},
	} {
		usedBy(t, func(r *registry.Registry) { r.Executed(e, tt.version, tt.at) })
		areUses(t, fmt.Sprintf("a run of version %d at %v", tt.version, tt.at), there, []time.Time{tt.endpoint, tt.one, tt.two},
			func(s *registry.Snapshot) []time.Time {
				return []time.Time{s.LastExecuted(e, 0), s.LastExecuted(e, 1), s.LastExecuted(e, 2)}
			})
	}
}

// testUsesInRecords: earlier versions wrote uses into the records. Their times stay until there is a later one.
func testUsesInRecords(t exam) {
	p := newPair(t)
	shop := p.project()
	k := p.key(registry.NewKey{Project: shop.ID})
	p.endpoint(shop.ID, "daily")
	e := p.Snapshot().Endpoint(shop.ID, "daily")
	is := func(what string, key, version time.Time) {
		t.Helper()
		s := openRegistry(t).Snapshot()
		same(t, what, []time.Time{key, version, version}, []time.Time{s.LastUsed(&k), s.LastExecuted(e, 0), s.LastExecuted(e, 1)})
	}
	s := open(t)
	older := func(last time.Time) {
		t.Helper()
		var puts []registry.Record
		for _, rec := range load(t, s, 0).Records {
			switch rec.Kind {
			case registry.KindKey:
				rec.Data = withField(t, rec.Data, "last_used_at", last)
			case registry.KindVersion:
				rec.Data = withField(t, rec.Data, "last_executed_at", last)
			default:
				continue
			}
			rec.Unique = must(registry.UniqueKeys(&rec))(t)
			puts = append(puts, rec)
		}
		put(t, s, puts...)
	}
	older(at)
	is("what an earlier version wrote", at, at)
	usedBy(t, func(r *registry.Registry) {
		r.Touch(&k, at.Add(2*time.Hour))
		r.Executed(e, 1, at.Add(3*time.Hour))
	})
	is("a later use", at.Add(2*time.Hour), at.Add(3*time.Hour))
	older(at.Add(4 * time.Hour))
	is("a still later one by an earlier version", at.Add(4*time.Hour), at.Add(4*time.Hour))
}

// withField returns an object of JSON with a field set.
func withField(t exam, object []byte, name string, value any) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		t.Fatal(err)
	}
	fields[name] = value
	return must(json.Marshal(fields))(t)
}

// testUsesForgotten: uses are removed with what was used, and with its project.
func testUsesForgotten(t exam) {
	p := newPair(t)
	ctx, s := t.Context(), open(t)
	shop, other := p.project(), p.project()
	left := func(what string, want ...string) {
		t.Helper()
		ids := []string{}
		for _, e := range entriesOf(t, s, 0, "use") {
			ids = append(ids, e.ID)
		}
		slices.Sort(ids)
		slices.Sort(want)
		same(t, "uses that are left after "+what, want, ids)
	}
	kept, gone, theirs := p.key(registry.NewKey{Project: shop.ID}), p.key(registry.NewKey{Project: shop.ID}), p.key(registry.NewKey{Project: other.ID})
	p.endpoint(shop.ID, "gone")
	e := p.Snapshot().Endpoint(shop.ID, "gone")
	usedBy(t, func(r *registry.Registry) {
		for _, k := range []registry.Key{kept, gone, theirs} {
			r.Touch(&k, at)
		}
		r.Executed(e, 1, at)
	})
	ofKey := func(k registry.Key) string { return "key/" + k.ID }
	left("all were used", ofKey(kept), ofKey(gone), ofKey(theirs), "version/"+e.ID+"/1")
	must(p.RevokeKey(ctx, gone.ID, at))(t)
	if err := p.DeleteEndpoint(ctx, shop.ID, "gone", at); err != nil {
		t.Fatal(err)
	}
	must(p.Purge(ctx, shop.ID, at.Add(time.Second)))(t)
	left("a purge", ofKey(kept), ofKey(theirs))
	must(p.DeleteProject(ctx, shop.ID, shop.Name, at))(t)
	left("the deletion of a project", ofKey(theirs))
	late := registry.Entry{Log: "use", ID: ofKey(kept), Item: kept.ID, By: strconv.FormatInt(shop.ID, 10), At: at}
	must(s.Write(ctx, &registry.Write{Append: []registry.Entry{late}}))(t)
	if err := p.ForgetProject(ctx, shop.ID); err != nil {
		t.Fatal(err)
	}
	left("another process wrote one late", ofKey(theirs))
}
