package registrytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// rec is a record of a kind that no program knows.
func rec(project int64, id, data string, unique ...string) registry.Record {
	r := registry.Record{Project: project, Kind: "a", ID: id, Unique: unique}
	if data != "" {
		r.Data = []byte(data)
	}
	return r
}

// write does a write that must succeed, and returns its revision.
func write(t exam, s registry.Store, w registry.Write) uint64 {
	t.Helper()
	revision, err := s.Write(t.Context(), &w)
	if err != nil {
		t.Fatalf("Write() = %v", err)
	}
	return revision
}

func put(t exam, s registry.Store, records ...registry.Record) uint64 {
	t.Helper()
	return write(t, s, registry.Write{Put: records})
}

// refuse does a write that must fail with the error want, and checks that nothing changed.
func refuse(t exam, s registry.Store, want error, w registry.Write) {
	t.Helper()
	before := load(t, s, 0)
	entries := entriesOf(t, s, 1, "log")
	_, err := s.Write(t.Context(), &w)
	if conflict, ok := errors.AsType[*registry.ConflictError](want); ok {
		got, _ := errors.AsType[*registry.ConflictError](err)
		if got == nil || *got != *conflict {
			t.Errorf("Write() = %v, want the conflict %+v", err, conflict)
		}
	} else if !errors.Is(err, want) {
		t.Errorf("Write() = %v, want %v", err, want)
	}
	if diff := gocmp.Diff(before, load(t, s, 0)); diff != "" {
		t.Errorf("a refused write changed the store (-before +after):\n%s", diff)
	}
	if diff := gocmp.Diff(entries, entriesOf(t, s, 1, "log")); diff != "" {
		t.Errorf("a refused write changed a log (-before +after):\n%s", diff)
	}
}

// load returns what changed, in order, without unique keys, which no store returns.
func load(t exam, s registry.Store, since uint64) *registry.Changes {
	t.Helper()
	changes, err := s.Load(t.Context(), since)
	if err != nil {
		t.Fatalf("Load(%d) = %v", since, err)
	}
	slices.SortFunc(changes.Records, func(a, b registry.Record) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return changes
}

// shown returns records as texts of project, kind, id, revision and data.
func shown(changes *registry.Changes) []string {
	var all []string
	for _, r := range changes.Records {
		all = append(all, fmt.Sprintf("%d %s %s @%d %s", r.Project, r.Kind, r.ID, r.Revision, r.Data))
	}
	return all
}

// expect compares records with texts as shown returns them.
func expect(t exam, changes *registry.Changes, want ...string) {
	t.Helper()
	if diff := gocmp.Diff(want, shown(changes), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func testEmpty(t exam) {
	s := open(t)
	if revision, _, err := s.Revision(t.Context()); revision != 0 || err != nil {
		t.Errorf("Revision() = %d, %v, want 0", revision, err)
	}
	if diff := gocmp.Diff(&registry.Changes{Whole: true}, load(t, s, 0), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Load(0) (-want +got):\n%s", diff)
	}
}

func testRecords(t exam) {
	s := open(t)
	odd := `{"text":"' \" ; -- ä\u0000 <b>&","n":123456789012345678901234567890,"f":1.0, "spaces": [ ] }`
	large := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	other := registry.Record{Project: 1, Kind: "b", ID: "x", Data: []byte(`1`)}
	if got := put(t, s, rec(1, "x", odd), rec(2, "x", large), rec(0, "", `{}`), rec(1, `a/1/"' ; --`, `[]`), other); got != 1 {
		t.Errorf("the first write has revision %d", got)
	}
	expect(t, load(t, s, 0), "0 a  @1 {}", `1 a a/1/"' ; -- @1 []`, "1 a x @1 "+odd, "1 b x @1 1", "2 a x @1 "+large)
	if got := put(t, s, rec(1, "x", `"changed"`), rec(2, "x", "")); got != 2 {
		t.Errorf("the second write has revision %d", got)
	}
	expect(t, load(t, s, 0), "0 a  @1 {}", `1 a a/1/"' ; -- @1 []`, `1 a x @2 "changed"`, "1 b x @1 1")
	put(t, s, rec(2, "x", `"again"`))
	expect(t, load(t, s, 2), `2 a x @3 "again"`)
	put(t, s, rec(2, "never there", ""))
}

func testUniqueKeys(t exam) {
	s := open(t)
	other := registry.Record{Project: 1, Kind: "b", ID: "x", Data: []byte(`1`), Unique: []string{"k", "l"}}
	put(t, s, rec(1, "x", `1`, "k", "' ; --"), rec(1, "y", `1`, "l"), other)
	for name, w := range map[string]registry.Write{
		"of the same project": {Put: []registry.Record{rec(1, "z", `1`, "free", "k")}},
		"of another project":  {Put: []registry.Record{rec(2, "x", `1`, "k")}},
		"of a changed record": {Put: []registry.Record{rec(1, "y", `2`, "k")}, Append: []registry.Entry{entry("1")}},
		"of the same write":   {Put: []registry.Record{rec(3, "p", `1`, "k"), rec(3, "q", `1`, "k")}},
		"after another":       {Put: []registry.Record{rec(3, "p", `1`, "fresh"), rec(3, "q", `1`, "k")}},
	} {
		t.sub(name, func(t exam) { refuse(t, s, &registry.ConflictError{Kind: "a", Key: "k"}, w) })
	}
	put(t, s, rec(1, "x", `2`, "l"), rec(1, "y", `2`, "k")) // they change places
	put(t, s, rec(1, "x", `3`, "l"))                        // one keeps its own
	put(t, s, rec(1, "x", ""), rec(1, "z", `1`, "l"))       // one that is removed frees its own
	put(t, s, rec(1, "y", `3`))                             // one gives its own up
	put(t, s, rec(5, "y", `3`, "k", "' ; --", "K"))
}

func testExpectations(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`))                                                   // revision 1
	put(t, s, rec(1, "y", `1`))                                                   // 2
	put(t, s, registry.Record{Project: 1, Kind: "b", ID: "x", Data: []byte(`1`)}) // 3
	put(t, s, rec(2, "x", `1`))                                                   // 4
	put(t, s, rec(1, "y", ""))                                                    // 5
	one := func(project int64, id string, revision uint64) registry.Expectation {
		return registry.Expectation{Project: project, Kind: "a", ID: id, One: true, Revision: revision}
	}
	for _, tt := range []struct {
		expect registry.Expectation
		holds  bool
	}{
		{registry.Expectation{Project: 1, Revision: 4}, false},
		{registry.Expectation{Project: 1, Revision: 5}, true},
		{registry.Expectation{Project: 2, Revision: 3}, false},
		{registry.Expectation{Project: 2, Revision: 4}, true},
		{registry.Expectation{Project: 3}, true},
		{registry.Expectation{Project: 1, Kind: "b", Revision: 3}, true},
		{registry.Expectation{Project: 1, Kind: "b", Revision: 2}, false},
		{registry.Expectation{Project: 1, Kind: "a", Revision: 4}, false},
		{registry.Expectation{Project: 1, Kind: "c"}, true},
		{one(1, "x", 1), true},
		{one(1, "x", 0), false},
		{one(1, "y", 4), false}, // it was removed
		{one(1, "", 0), true},
		{one(2, "y", 0), true},
	} {
		t.sub(fmt.Sprintf("%+v", tt.expect), func(t exam) {
			w := registry.Write{Expect: []registry.Expectation{{Project: 9}, tt.expect}, Append: []registry.Entry{entry("1")}}
			if tt.holds {
				write(t, s, w)
				return
			}
			w.Put = []registry.Record{rec(7, "z", `1`)}
			refuse(t, s, registry.ErrStale, w)
		})
	}
}

// testExpectationsForgotten: a write made from a state before something was forgotten is stale, because it is not known what that was.
func testExpectationsForgotten(t exam) {
	s := open(t)
	f, ok := s.(interface {
		ForgetProject(ctx context.Context, project int64) error
	})
	if !ok {
		t.Skip("the store forgets no projects")
	}
	put(t, s, rec(5, "x", `1`))
	seen := put(t, s, rec(6, "x", `1`))
	removed := put(t, s, rec(5, "x", ""))
	if err := f.ForgetProject(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	create := func(since uint64) registry.Write {
		return registry.Write{Expect: []registry.Expectation{{Project: 5, Revision: since}}, Put: []registry.Record{rec(5, "y", `1`)}}
	}
	refuse(t, s, registry.ErrStale, create(seen))
	write(t, s, create(removed))
	c, ok := s.(registry.Copier)
	if !ok {
		return
	}
	folder := t.TempDir()
	if err := c.Copy(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	seen = put(t, s, rec(7, "x", `1`))
	if err := c.Replace(t.Context(), folder, seen); err != nil {
		t.Fatal(err)
	}
	w := registry.Write{Expect: []registry.Expectation{{Project: 7, Revision: seen}}, Put: []registry.Record{rec(7, "y", `1`)}}
	refuse(t, s, registry.ErrStale, w)
}

func testRollback(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`, "k"))
	refuse(t, s, registry.ErrStale, registry.Write{
		Expect: []registry.Expectation{{Project: 1}}, Put: []registry.Record{rec(1, "y", `1`)}, Append: []registry.Entry{entry("1")},
		Forget: []registry.Forgotten{{Project: 1, Log: "log", Item: "1"}},
	})
	refuse(t, s, &registry.ConflictError{Kind: "a", Key: "k"}, registry.Write{Put: []registry.Record{rec(1, "x", ""), rec(1, "y", `1`, "k"), rec(1, "z", `1`, "k")}})
	if got := put(t, s, rec(1, "y", `1`)); got != 2 {
		t.Errorf("after writes that failed, one has revision %d, want 2", got)
	}
}

func testNoChange(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`))
	for name, w := range map[string]registry.Write{
		"nothing":        {},
		"a log":          {Append: []registry.Entry{entry("1")}, Bounds: []registry.Bound{{Project: 1, Log: "log", Entries: 9, Bytes: 9999}}},
		"forgetting":     {Forget: []registry.Forgotten{{Project: 1, Log: "log", Item: "1"}}},
		"an expectation": {Expect: []registry.Expectation{{Project: 1, Revision: 1}}},
	} {
		if revision := write(t, s, w); revision != 0 {
			t.Errorf("%s: revision %d, want 0", name, revision)
		}
	}
	if revision, _, err := s.Revision(t.Context()); revision != 1 || err != nil {
		t.Errorf("Revision() = %d, %v, want 1", revision, err)
	}
}

func testLoadSince(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`), rec(1, "y", `1`))
	put(t, s, rec(2, "x", `1`))
	put(t, s, rec(1, "x", `2`))
	put(t, s, rec(1, "y", ""))
	for _, tt := range []struct {
		since uint64
		want  []string
	}{
		{0, []string{"1 a x @3 2", "2 a x @2 1"}},
		{1, []string{"1 a x @3 2", "1 a y @4 ", "2 a x @2 1"}},
		{2, []string{"1 a x @3 2", "1 a y @4 "}},
		{3, []string{"1 a y @4 "}},
		{4, nil},
	} {
		got := load(t, s, tt.since)
		expect(t, got, tt.want...)
		if got.Revision != 4 || got.Whole != (tt.since == 0) {
			t.Errorf("Load(%d) is of revision %d, whole: %t", tt.since, got.Revision, got.Whole)
		}
		for _, r := range got.Records {
			if removed := r.ID == "y"; (r.Data == nil) != removed {
				t.Errorf("Load(%d) gives %q of %s", tt.since, r.Data, r.ID)
			}
		}
	}
}

func testRestored(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`))
	got := load(t, s, 99)
	expect(t, got, "1 a x @1 1")
	if !got.Whole || got.Revision != 1 {
		t.Errorf("Load(99) is of revision %d, whole: %t", got.Revision, got.Whole)
	}
}

func testReopen(t exam) {
	s := t.place(t.T)
	put(t, s, rec(1, "x", `{"a":"ä"}`, "k"), rec(1, "gone", `1`), rec(0, "", `1`))
	put(t, s, rec(1, "gone", ""))
	write(t, s, registry.Write{Append: []registry.Entry{entry("1"), entry("2")}})
	want, since, entries := load(t, s, 0), load(t, s, 1), entriesOf(t, s, 1, "log")
	if err := s.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	again := open(t)
	for name, diff := range map[string]string{
		"records": gocmp.Diff(want, load(t, again, 0)), "changes": gocmp.Diff(since, load(t, again, 1)),
		"entries": gocmp.Diff(entries, entriesOf(t, again, 1, "log")),
	} {
		if diff != "" {
			t.Errorf("after opening it again, %s (-before +after):\n%s", name, diff)
		}
	}
	refuse(t, again, &registry.ConflictError{Kind: "a", Key: "k"}, registry.Write{Put: []registry.Record{rec(2, "x", `1`, "k")}})
}

// testConcurrentWriters increments a record from several stores at once. No two writes may follow the same state.
func testConcurrentWriters(t exam) {
	const writers, each = 4, 15
	stores := []registry.Store{open(t), open(t)} // as two processes
	put(t, stores[0], rec(1, "n", `0`))
	var mu sync.Mutex
	revisions := make(map[uint64]bool)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for done := 0; done < each; {
				changes, err := stores[w%len(stores)].Load(t.Context(), 0)
				if err != nil {
					t.Errorf("Load() = %v", err)
					return
				}
				n, err := strconv.Atoi(string(changes.Records[0].Data))
				if err != nil {
					t.Error(err)
					return
				}
				revision, err := stores[w%len(stores)].Write(t.Context(), &registry.Write{
					Expect: []registry.Expectation{{Project: 1, Revision: changes.Revision}}, Put: []registry.Record{rec(1, "n", strconv.Itoa(n+1))},
				})
				if errors.Is(err, registry.ErrStale) {
					continue
				}
				if err != nil {
					t.Errorf("Write() = %v", err)
					return
				}
				done++
				mu.Lock()
				revisions[revision] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	expect(t, load(t, stores[1], 0), fmt.Sprintf("1 a n @%d %d", writers*each+1, writers*each))
	if len(revisions) != writers*each {
		t.Errorf("%d writes had %d revisions, want as many", writers*each, len(revisions))
	}
}

func testConsistentLoad(t exam) {
	const rounds = 30
	writer, reader := open(t), open(t)
	put(t, writer, rec(1, "x", `0`), rec(2, "x", `0`))
	var done sync.WaitGroup
	done.Go(func() {
		for i := range rounds {
			n := strconv.Itoa(i + 1)
			if _, err := writer.Write(t.Context(), &registry.Write{Put: []registry.Record{rec(1, "x", n), rec(2, "x", n)}}); err != nil {
				t.Errorf("Write() = %v", err)
				return
			}
		}
	})
	var before uint64
	for before < rounds+1 && !t.Failed() {
		changes := load(t, reader, 0)
		n := strconv.FormatUint(changes.Revision-1, 10)
		if changes.Revision < before || string(changes.Records[0].Data) != n || string(changes.Records[1].Data) != n {
			t.Errorf("at revision %d, after %d, the records are %v", changes.Revision, before, shown(changes))
		}
		before = changes.Revision
	}
	done.Wait()
}

func testCancelled(t exam) {
	s := open(t)
	put(t, s, rec(1, "x", `1`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Write(ctx, &registry.Write{Put: []registry.Record{rec(1, "x", `2`)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Write() = %v, want %v", err, context.Canceled)
	}
	// Wherever a write is cut off, it is done completely or not at all, and says which.
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			cancel()
		})
		n := strconv.Itoa(i)
		_, err := s.Write(ctx, &registry.Write{Put: []registry.Record{rec(2, n, n), rec(3, n, n)}})
		both.Wait()
		var there int
		for _, r := range load(t, s, 0).Records {
			if r.ID == n {
				there++
			}
		}
		if there == 1 || err == nil && there != 2 {
			t.Errorf("Write() = %v, and %d of 2 records are there", err, there)
		}
	}
	put(t, s, rec(1, "y", `1`)) // the store still takes writes
}

func testWatch(t exam) {
	here, there := open(t), open(t)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() { ended <- here.Watch(ctx, func() { told <- struct{}{} }) }()
	deadline := time.After(30 * time.Second)
	for n, seen := 0, false; !seen; n++ { // the watch begins some time
		put(t, there, rec(1, "x", strconv.Itoa(n)))
		select {
		case <-told:
			seen = true
		case err := <-ended:
			t.Skipf("this store leaves it to the poll: %v", err)
		case <-deadline:
			t.Fatal("nothing was told of another's writes")
		case <-time.After(300 * time.Millisecond):
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the watch goes on after its context has ended")
	}
}

// entry is an entry of the log "log" of project 1.
func entry(id string) registry.Entry {
	return registry.Entry{Project: 1, Log: "log", ID: id, Item: "1", By: "key", At: at, Data: []byte(`{"text":"ä ' \" ; --"}`)}
}

// entriesOf returns all entries of a log.
func entriesOf(t exam, s registry.Store, project int64, log string) []registry.Entry {
	t.Helper()
	entries, total, err := s.Entries(t.Context(), project, log, registry.EntryPage{})
	if err != nil {
		t.Fatalf("Entries() = %v", err)
	}
	if total != len(entries) {
		t.Errorf("a log of %d entries says that it has %d", len(entries), total)
	}
	return entries
}

func idsOf(entries []registry.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func testEntries(t exam) {
	s := open(t)
	first, second, third, fourth := entry("id-01"), entry("id-02"), entry("id-03"), entry("id-00")
	second.Item, second.By, second.Data = "2", "another", nil
	fourth.Item, fourth.At = "10", at.Add(time.Microsecond)
	elsewhere, otherLog := entry("id-05"), entry("id-06")
	elsewhere.Project, otherLog.Log = 2, "other"
	write(t, s, registry.Write{Append: []registry.Entry{first, second, third}})
	write(t, s, registry.Write{Append: []registry.Entry{elsewhere, otherLog, fourth}})
	for _, tt := range []struct {
		page  registry.EntryPage
		want  []registry.Entry
		total int
	}{
		{registry.EntryPage{}, []registry.Entry{fourth, third, second, first}, 4},
		{registry.EntryPage{Limit: 3}, []registry.Entry{fourth, third, second}, 4},
		{registry.EntryPage{Limit: 3, Offset: 3}, []registry.Entry{first}, 4},
		{registry.EntryPage{Limit: 9, Offset: 9}, nil, 4},
		{registry.EntryPage{Items: []string{"1"}, Limit: 9}, []registry.Entry{third, first}, 2},
		{registry.EntryPage{Items: []string{"1", "10", "7", "' ; --"}, Limit: 2}, []registry.Entry{fourth, third}, 3},
		{registry.EntryPage{Items: []string{"7"}}, nil, 0},
		{registry.EntryPage{Items: []string{}}, nil, 0},
		{registry.EntryPage{By: "another", Limit: 1}, []registry.Entry{second}, 1},
		{registry.EntryPage{By: "nobody", Limit: 1}, nil, 0},
		{registry.EntryPage{Since: fourth.At}, []registry.Entry{fourth}, 1},
		{registry.EntryPage{Since: at}, []registry.Entry{fourth, third, second, first}, 4},
		{registry.EntryPage{Since: fourth.At.Add(time.Microsecond)}, nil, 0},
	} {
		got, total, err := s.Entries(t.Context(), 1, "log", tt.page)
		if diff := gocmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || total != tt.total || err != nil {
			t.Errorf("Entries(%+v) has %d in all, %v, want %d (-want +got):\n%s", tt.page, total, err, tt.total, diff)
		}
	}
}

func testMovedEntries(t exam) {
	s := open(t)
	moved := func(after time.Duration, item string) registry.Entry {
		e := entry("one")
		e.At, e.Item, e.Data = at.Add(after), item, []byte(`"`+item+`"`)
		return e
	}
	for _, tt := range []struct{ given, want registry.Entry }{
		{moved(0, "a"), moved(0, "a")},
		{moved(time.Hour, "b"), moved(time.Hour, "b")},
		{moved(time.Minute, "c"), moved(time.Hour, "b")}, // never back
		{moved(time.Hour, "d"), moved(time.Hour, "d")},
	} {
		write(t, s, registry.Write{Append: []registry.Entry{tt.given}})
		if diff := gocmp.Diff([]registry.Entry{tt.want}, entriesOf(t, s, 1, "log")); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", tt.given.Item, diff)
		}
	}
}

func testForgotten(t exam) {
	s := open(t)
	e := func(project int64, log, id, item, by string) registry.Entry {
		return registry.Entry{Project: project, Log: log, ID: id, Item: item, By: by, At: at}
	}
	write(t, s, registry.Write{Append: []registry.Entry{
		e(1, "log", "a", "1", "x"), e(1, "log", "b", "1", "y"), e(1, "log", "c", "2", "x"), e(1, "log", "d", "2", "y"),
		e(2, "log", "a", "1", "x"), e(1, "other", "a", "1", "x"),
	}})
	write(t, s, registry.Write{Forget: []registry.Forgotten{{Project: 1, Log: "log", Item: "1"}, {Project: 1, Log: "log", By: "nobody"}}})
	if diff := gocmp.Diff([]string{"d", "c"}, idsOf(entriesOf(t, s, 1, "log"))); diff != "" {
		t.Errorf("without an item (-want +got):\n%s", diff)
	}
	write(t, s, registry.Write{Forget: []registry.Forgotten{{Project: 1, Log: "log", By: "x"}}})
	if diff := gocmp.Diff([]string{"d"}, idsOf(entriesOf(t, s, 1, "log"))); diff != "" {
		t.Errorf("without a key (-want +got):\n%s", diff)
	}
	if len(entriesOf(t, s, 2, "log"))+len(entriesOf(t, s, 1, "other")) != 2 {
		t.Error("entries of other logs are gone")
	}
}

func testBounds(t exam) {
	s := open(t)
	add := func(project int64, n int, bound registry.Bound) {
		bound.Project, bound.Log = project, "log"
		e := entry(fmt.Sprintf("%03d", n))
		e.Project, e.Data = project, []byte(`"`+strings.Repeat("x", 998)+`"`)
		write(t, s, registry.Write{Append: []registry.Entry{e}, Bounds: []registry.Bound{bound}})
	}
	left := func(project int64) []string { return idsOf(entriesOf(t, s, project, "log")) }
	few, small := registry.Bound{Entries: 10, Bytes: 1 << 30}, registry.Bound{Entries: 1000, Bytes: 5000}
	for n := range 10 {
		add(1, n, few)
		add(2, n, few)
	}
	if got := left(1); len(got) != 10 {
		t.Errorf("a log that is within its bound was cut to %v", got)
	}
	add(1, 10, few)
	if diff := gocmp.Diff([]string{"010", "009", "008", "007", "006", "005", "004", "003", "002"}, left(1)); diff != "" {
		t.Errorf("ten entries at most (-want +got):\n%s", diff)
	}
	add(1, 11, small)
	if diff := gocmp.Diff([]string{"011", "010", "009", "008"}, left(1)); diff != "" {
		t.Errorf("5,000 bytes at most (-want +got):\n%s", diff)
	}
	add(1, 12, small)
	if got := left(1); len(got) != 5 {
		t.Errorf("the log has room again, and %v", got)
	}
	if got := left(2); len(got) != 10 {
		t.Errorf("another project's log was cut to %v", got)
	}
	bare := registry.Write{Bounds: []registry.Bound{{Project: 4, Log: "log", Entries: 10}}} // entries without data
	for n := range 11 {
		e := entry(fmt.Sprintf("%03d", n))
		e.Project, e.Data = 4, nil
		bare.Append = append(bare.Append, e)
	}
	write(t, s, bare)
	if got := left(4); len(got) != 9 || got[0] != "010" {
		t.Errorf("a log without data that may have 10 entries was cut to %v", got)
	}
	many := registry.Bound{Project: 3, Log: "log", Entries: 10_000, Bytes: 1 << 30}
	full := registry.Write{Append: make([]registry.Entry, many.Entries), Bounds: []registry.Bound{many}}
	for n := range full.Append {
		full.Append[n] = entry(fmt.Sprintf("%05d", n))
		full.Append[n].Project = 3
	}
	write(t, s, full)
	last := entry("10000")
	last.Project = 3
	write(t, s, registry.Write{Append: []registry.Entry{last}, Bounds: []registry.Bound{many}})
	if got := left(3); len(got) != 9000 || got[0] != "10000" || got[8999] != "01001" {
		t.Errorf("a log of %d that was filled at once was cut to %d, from %s to %s", many.Entries, len(got), got[0], got[len(got)-1])
	}
}
