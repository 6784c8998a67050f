package cohorts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCalculation: a cohort is computed when it is created and each time it is changed; a version has either all its members or none, and a
// calculation that finds the same members keeps the version.
func TestCalculation(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.load(t, people)
	id := s.create(t, person("paid"))
	first := s.settled(t, id)
	if got := s.members(t, id, first.Version); got != "bob cid" || *first.Count != 2 || first.LastCalculation.IsZero() {
		t.Errorf("members %q, record %+v", got, first)
	}
	s.update(t, id, registry.CohortFields{Filters: registry.To(json.RawMessage(person("free")))})
	second := s.settled(t, id)
	if got := s.members(t, id, second.Version); got != "ann" || *second.Count != 1 || second.Version <= first.Version {
		t.Errorf("members %q, record %+v", got, second)
	}
	if got := s.members(t, id, first.Version); got != "bob cid" {
		t.Errorf("queries that run have lost members: %q", got)
	}
	s.update(t, id, registry.CohortFields{Description: registry.To("the same"), Calculate: true})
	third := s.settled(t, id)
	if third.Version != second.Version || !third.LastCalculation.After(second.LastCalculation) || *third.Count != 1 {
		t.Errorf("computed again %+v, before %+v", third, second)
	}
	eventually.Is(t, "the one with the same members is gone", func() bool { return s.versions(t, id) == cmpVersions(first, second) })
	s.load(t, `{"type":"person","distinct_ids":["ann"],"properties":{"plan":"paid"}}`)
	s.update(t, id, registry.CohortFields{Calculate: true})
	if c := s.settled(t, id); c.Version == second.Version || *c.Count != 0 {
		t.Errorf("a cohort that lost its last member: %+v", c)
	}
}

func cmpVersions(list ...*registry.Cohort) string {
	var b strings.Builder
	for _, c := range list {
		text, _ := json.Marshal([]uint64{c.Version})
		b.Write(text)
	}
	return b.String()
}

// TestUsed: a query waits only for cohorts that were never computed.
func TestUsed(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.load(t, people)
	id := s.create(t, person("paid"))
	snap, err := s.Used(t.Context(), s.project, []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	if snap == nil || snap.Cohort(s.project, id).Version == 0 {
		t.Fatal("the cohort has no members")
	}
	for _, ids := range [][]int64{{id}, {99}, nil} {
		if snap, err = s.Used(t.Context(), s.project, ids); snap != nil || err != nil {
			t.Errorf("%v was waited for: %v", ids, err)
		}
	}
}

// TestBelow: the cohorts that a cohort refers to are computed first, and one that can't be computed is named.
func TestBelow(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.load(t, people)
	below := s.create(t, person("paid"))
	middle := s.create(t, within(below))
	top := s.create(t, within(middle))
	if got := s.members(t, top, s.settled(t, top).Version); got != "bob cid" {
		t.Errorf("members %q", got)
	}
	lost := s.create(t, within(12345))
	c := s.settled(t, lost)
	if c.Version != 0 || c.Errors != 1 || c.LastError != "Could not find cohort with ID 12345" {
		t.Errorf("%+v", c)
	}
	above := s.settled(t, s.create(t, within(lost)))
	if want := "Cohort 4 could not be computed: Could not find cohort with ID 12345"; above.Errors != 1 || above.LastError != want {
		t.Errorf("%+v, want the error %q", above, want)
	}
	_, err := s.Used(t.Context(), s.project, []int64{lost})
	if known, ok := errors.AsType[*diag.Error](err); !ok || !strings.Contains(known.Detail, "could not be computed: Could not find") {
		t.Errorf("a query of a cohort that failed: %v", err)
	}
	s.update(t, lost, registry.CohortFields{Filters: registry.To(json.RawMessage(person("free")))})
	if c = s.settled(t, lost); c.Errors != 0 || c.LastError != "" || *c.Count != 1 {
		t.Errorf("mended: %+v", c)
	}
}

// TestCircle: cohorts that refer to each other, which no write creates, do not prevent a calculation from ending.
func TestCircle(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	one := s.create(t, person("paid"))
	s.settled(t, one)
	two := s.create(t, within(one))
	s.update(t, one, registry.CohortFields{Filters: registry.To(json.RawMessage(within(two)))})
	s.settled(t, one)
	s.settled(t, two)
}

// TestTwoServers: servers of one registry compute a cohort once, and each sees what the other has computed.
func TestTwoServers(t *testing.T) {
	dir := t.TempDir()
	servers := []*server{start(t, dir, nil), start(t, dir, nil)}
	servers[1].project = servers[0].project
	servers[0].load(t, people)
	var done sync.WaitGroup
	for round := range 5 {
		id := servers[round%2].create(t, person("paid"))
		for _, s := range servers {
			done.Go(func() {
				eventually.Is(t, "the server knows the cohort", func() bool { return s.registry.Snapshot().Cohort(s.project, id) != nil })
				if _, err := s.Used(t.Context(), s.project, []int64{id}); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		for _, s := range servers {
			if c := s.settled(t, id); c.LastVersion != 2 || *c.Count != 2 {
				t.Errorf("the cohort was computed more than once: %+v", c)
			}
		}
	}
}

// TestChangesWhileItRuns: of several definitions the last one wins, and nobody sees the count of another.
func TestChangesWhileItRuns(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.load(t, people)
	id := s.create(t, person("free"))
	for range 20 {
		s.update(t, id, registry.CohortFields{Filters: registry.To(json.RawMessage(person("free")))})
		s.update(t, id, registry.CohortFields{Filters: registry.To(json.RawMessage(person("paid", "free")))})
		if c := s.settled(t, id); *c.Count != 3 || s.members(t, id, c.Version) != "ann bob cid" {
			t.Fatalf("%+v", c)
		}
	}
}

// TestOldVersions: versions that nobody reads any more are deleted after a while, including those of deleted cohorts; a restored cohort is recomputed
// before it is read.
func TestOldVersions(t *testing.T) {
	s := start(t, t.TempDir(), func(c *cohorts.Config) { c.Keep = 50 * time.Millisecond })
	s.load(t, people)
	id := s.create(t, person("paid"))
	s.settled(t, id)
	s.update(t, id, registry.CohortFields{Filters: registry.To(json.RawMessage(person("free")))})
	c := s.settled(t, id)
	eventually.Is(t, "the old version is gone", func() bool { return s.versions(t, id) == cmpVersions(c) })
	s.update(t, id, registry.CohortFields{Deleted: registry.To(true)})
	eventually.Is(t, "the deleted cohort's version is gone", func() bool { return s.versions(t, id) == "" })
	s.update(t, id, registry.CohortFields{Deleted: registry.To(false)})
	if snap := s.registry.Snapshot(); snap.Cohort(s.project, id).Version == c.Version {
		t.Error("queries read a version that is gone")
	}
	if got := s.members(t, id, s.settled(t, id).Version); got != "ann" {
		t.Errorf("members of the restored cohort: %q", got)
	}
}

// TestCloseLeavesItWaiting: what a server does not finish is computed by the next one.
func TestCloseLeavesItWaiting(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir, nil)
	first.load(t, people)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	id := first.create(t, person("paid"))
	if _, err := first.Used(t.Context(), first.project, []int64{id}); err == nil {
		t.Error("a calculator that is closed computes")
	}
	second := start(t, dir, nil)
	second.project = first.project
	if diff := cmp.Diff("bob cid", second.members(t, id, second.settled(t, id).Version)); diff != "" {
		t.Error(diff)
	}
}

// TestPanic: a calculation that panics fails, and one that cannot even begin is put off; neither ends the process.
func TestPanic(t *testing.T) {
	s := start(t, t.TempDir(), func(c *cohorts.Config) { c.Compiler = nil })
	id := s.create(t, person("a"))
	if c := s.settled(t, id); c.LastError != "The calculation failed." || c.Errors != 1 {
		t.Errorf("the cohort is %+v", c)
	}
	core, logs := observer.New(zap.WarnLevel)
	s = start(t, t.TempDir(), func(c *cohorts.Config) { c.Places, c.Logger = nil, zap.New(core) })
	id = s.create(t, person("a"))
	eventually.Is(t, "the calculation is put off", func() bool { return logs.FilterMessage("the calculation of a cohort is tried again later").Len() > 0 })
	if c := s.registry.Snapshot().Cohort(s.project, id); !c.Calculating() {
		t.Errorf("the cohort is %+v", c)
	}
}

// TestInDoubt: the members stay if it is not known whether the registry has been told to read them.
func TestInDoubt(t *testing.T) {
	dir := t.TempDir()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	s := startOn(t, warehousetest.InDoubt{Store: store, Text: `"version":`}, func(c *cohorts.Config) { c.Logger = zap.New(core) })
	s.load(t, people)
	id := s.create(t, person("free"))
	eventually.Is(t, "the calculation is put off", func() bool { return logs.FilterMessage("the calculation of a cohort is tried again later").Len() > 0 })
	if err := s.registry.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := s.settled(t, id); c.Version == 0 || s.members(t, id, c.Version) == "" {
		t.Errorf("the members of %+v are gone", c)
	}
}

// counted is a store that counts the locks of cohorts that are held.
type counted struct {
	registry.Store

	held, most, tries *atomic.Int64
}

func (s counted) Lock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	return s.count(name, func() (bool, func(), error) { return s.Store.Lock(ctx, name, holder) })
}

func (s counted) TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	return s.count(name, func() (bool, func(), error) { return s.Store.TryLock(ctx, name, holder) })
}

func (s counted) count(name string, take func() (bool, func(), error)) (others bool, release func(), err error) {
	if !strings.HasPrefix(name, "cohort-") {
		return take()
	}
	s.tries.Add(1)
	others, free, err := take()
	if err != nil {
		return others, nil, err
	}
	now := s.held.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	return others, func() { s.held.Add(-1); free() }, nil
}

// startCounted starts a server with a few places that counts its locks of cohorts.
func startCounted(t *testing.T, dir string, limits admission.Limits) (s *server, places *admission.Scheduler, locks counted) {
	t.Helper()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	locks = counted{store, new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
	places = admission.New(limits)
	return startOn(t, locks, func(c *cohorts.Config) { c.Places = places }), places, locks
}

// TestManyDue: however many cohorts are due, a server has no more locks than places, and few calculations of a project wait for a place at a time.
func TestManyDue(t *testing.T) {
	s, places, locks := startCounted(t, t.TempDir(), admission.Limits{Places: 4, Project: 2, Queue: 10})
	var busy []*admission.Place
	for range 2 {
		place, err := places.Enter(t.Context(), admission.Request{Project: s.project})
		if err != nil {
			t.Fatal(err)
		}
		defer place.Leave()
		busy = append(busy, place)
	}
	const due = 1000
	var last int64
	for range due {
		c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{Project: s.project}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		last = c.ID
	}
	s.Calculate(s.project, last)
	eventually.Is(t, "calculations wait for a place", func() bool {
		_, waiting := places.Of(s.project)
		return waiting > 0
	})
	time.Sleep(300 * time.Millisecond)
	if _, waiting := places.Of(s.project); waiting > 10 || locks.tries.Load() > 0 {
		t.Errorf("%d calculations wait for a place, and %d have tried to take a lock", waiting, locks.tries.Load())
	}
	for _, place := range busy {
		place.Leave()
	}
	eventually.Is(t, "some cohorts are calculated", func() bool { return locks.tries.Load() > 30 })
	if most := locks.most.Load(); most > 2 {
		t.Errorf("%d locks were held at a time by who may have 2 places", most)
	}
	// A cohort that somebody waits for does not wait for the others.
	if _, err := s.Used(t.Context(), s.project, []int64{last}); err != nil {
		t.Error(err)
	}
	if waiting := slices.ContainsFunc(s.registry.Snapshot().Cohorts(s.project), (*registry.Cohort).Calculating); !waiting {
		t.Error("no cohort waits for its calculation any more")
	}
}

// TestElsewhere: while another server computes cohorts, however many, this one takes no place for them and computes others; who waits for one of them gets its
// members.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir, nil)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var releases []func()
	var held []int64
	for range 15 { // more than are begun at a time
		id := first.create(t, person("paid"))
		_, release, err := first.registry.Lock(t.Context(), fmt.Sprintf("cohort-%d-%d", first.project, id), "first")
		if err != nil {
			t.Fatal(err)
		}
		held, releases = append(held, id), append(releases, release)
	}
	s, places, _ := startCounted(t, dir, admission.Limits{Places: 1, Project: 1, Queue: 10})
	s.project = first.project
	used := make(chan error, 1)
	go func() { _, err := s.Used(t.Context(), s.project, held[:1]); used <- err }()
	s.settled(t, s.create(t, person("free")))
	place, err := places.Enter(t.Context(), admission.Request{Project: s.project, Wait: 5 * time.Second})
	if err != nil {
		t.Fatal("the only place is taken: ", err)
	}
	place.Leave()
	select {
	case err := <-used:
		t.Errorf("who waits for a cohort that is not computed yet goes on: %v", err)
	default:
	}
	for _, release := range releases {
		release()
	}
	if err := <-used; err != nil {
		t.Error(err)
	}
	for _, id := range held {
		s.settled(t, id)
	}
}
