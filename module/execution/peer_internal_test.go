package execution

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// liar is another server, whose answers a test chooses.
type liar func(*PeerRequest) (peers.Answer, error)

func (liar) Owner([32]byte) (nodes.Node, bool) { return nodes.Node{Name: "0000000000000001"}, true }

func (liar) Named(context.Context, string) (nodes.Node, error) { return nodes.Node{}, nodes.ErrGone }
func (liar) Ended(context.Context, nodes.Node) (bool, error)   { return false, nil }
func (liar) Others() (living, dead []nodes.Node)               { return nil, nil }

func (l liar) Ask(_ context.Context, _ nodes.Node, request []byte) (peers.Answer, error) {
	asked, err := ReadPeerRequest(request)
	if err != nil {
		return peers.Answer{}, err
	}
	return l(asked)
}

// peerAnswer is a result at no cost, as the other server receives it.
func peerAnswer(got cache.Answer, key cache.Key, asked *PeerRequest, arrived time.Time, page *PeerPage) peers.Answer {
	a := sendResult(got, key, asked, arrived, page, false)
	return peers.Answer{Kind: a.Kind, Body: append(a.Body, a.Rest...)}
}

// fullDetails returns details with every field set.
func fullDetails() *Details {
	missing, more := 3, true
	return &Details{
		ExecutionID: uuid.New(), HogQL: "SELECT <1>", SQL: "SELECT 1", Limit: 101, Offset: 7, OwnLimit: true, Columns: []string{"n"}, Head: []byte(`"columns":["<n>"]`),
		Compile: time.Millisecond, Stats: clickhouse.Stats{Rows: 1, ReadRows: 2, ReadBytes: 3, Elapsed: 4},
		Insight: &insightAnswer{
			Results: []byte(`[ "<a>" ]`), Head: []byte("h"), More: []byte(",m"), HasMore: &more, Error: []byte(",e"), Dates: []byte(",d"), nextRefresh: 5, until: noon, reversed: true,
		},
		over: true, Missing: &missing, Version: 4, Marks: `{"a":1}`, Warnings: []byte("[]"), Probe: 6, Renewal: &Renewal{Compile: 7, Probe: 8}, basis: new(basis),
		Materialized: noon, Zone: "Asia/Tokyo", Buckets: Buckets{1, 9}, asked: true, Peer: 10,
	}
}

func oneRow(tb testing.TB) *cache.Result {
	tb.Helper()
	b := cache.NewBuilder(cache.Limits{})
	if err := errors.Join(b.Columns([]cache.Column{{Name: "n", Type: "UInt8"}}), b.Row([]byte("[1]"))); err != nil {
		tb.Fatal(err)
	}
	return b.Result()
}

// formOf returns a result in the format in which it is sent.
func formOf(r *cache.Result) []byte {
	head, rows := r.AppendForm(nil)
	return append(head, rows...)
}

// TestDetailsAreSent makes sure that details arrive as they were sent, including fields added later.
func TestDetailsAreSent(t *testing.T) {
	want := fullDetails()
	for _, of := range []reflect.Value{reflect.ValueOf(*want), reflect.ValueOf(*want.Insight)} {
		for i := range of.NumField() {
			if of.Field(i).IsZero() {
				t.Errorf("BUG: the details of the test have no %s", of.Type().Field(i).Name)
			}
		}
	}
	key := cache.KeyParts{Project: 3}.Key()
	asked := &PeerRequest{Nonce: "n", Project: 3}
	page := &PeerPage{Limit: 1}
	sent := peerAnswer(cache.Answer{Entry: cache.NewEntry(oneRow(t), noon, want, 0)}, key, asked, noon.Add(time.Second), page)
	got, err := readPeerResult(sent.Body, asked)
	if err != nil {
		t.Fatal(err)
	}
	// The basis is not sent, and the receiver measures how long it took.
	if diff := cmp.Diff(want, got.details(), cmp.AllowUnexported(Details{}, insightAnswer{}), cmpopts.IgnoreFields(Details{}, "basis", "Peer")); diff != "" {
		t.Errorf("details (-sent +received):\n%s", diff)
	}
	if got.head.Since != -time.Second || string(got.rows.AppendRows(nil, 0, -1)) != "[[1]]" {
		t.Errorf("since %s: %s", got.head.Since, got.rows.AppendRows(nil, 0, -1))
	}
}

// changed returns an answer with another head.
func changed(tb testing.TB, a peers.Answer, change func(*peerHead)) peers.Answer {
	tb.Helper()
	length := binary.BigEndian.Uint32(a.Body)
	var head peerHead
	if err := json.Unmarshal(a.Body[headLength:headLength+length], &head); err != nil {
		tb.Fatal(err)
	}
	change(&head)
	raw, err := json.Marshal(head)
	if err != nil {
		tb.Fatal(err)
	}
	body := binary.BigEndian.AppendUint32(nil, uint32(len(raw)))
	return peers.Answer{Kind: a.Kind, Body: append(append(body, raw...), a.Body[headLength+length:]...)}
}

// TestLiars makes another server send answers that must not be believed.
func TestLiars(t *testing.T) {
	e := newExecutor(t)
	e.Hops = NewHops()
	project := &registry.Project{ID: 3}
	key := cache.KeyParts{Project: 3, Query: "q"}.Key()
	q := &Query{Key: key, Recipe: &Recipe{Query: []byte(`{}`)}, Marks: "own"}
	caller := Caller{Project: project, Key: &registry.Key{ID: "k", Project: 3}, Snapshot: new(registry.Snapshot), Start: time.Now()}
	rows := oneRow(t)
	answer := func(asked *PeerRequest, of cache.Key, age time.Duration) peers.Answer {
		done := &Details{Columns: []string{"n"}, Marks: "its", Version: 9}
		return peerAnswer(cache.Answer{Entry: cache.NewEntry(rows, noon.Add(-age), done, 0), Status: cache.Hit}, of, asked, noon, nil)
	}
	var earlier peers.Answer
	limit := func(owner string, name LimitName) peers.Answer {
		return peers.Answer{Kind: peers.Failure, Body: []byte(`{"nonce":"NONCE","limit":{"Limit":"` + string(name) + `","Owner":"` + owner + `","Detail":"d","Wait":1}}`)}
	}
	tests := []struct {
		name    string
		answer  func(*PeerRequest) peers.Answer
		result  int
		failure bool
		purged  bool
		anew    bool
	}{
		{name: "the result", answer: func(r *PeerRequest) peers.Answer { earlier = answer(r, key, time.Second); return earlier }, result: peerStored},
		{name: "an earlier answer", answer: func(*PeerRequest) peers.Answer { return earlier }, result: peerUnfit},
		{name: "of another key", answer: func(r *PeerRequest) peers.Answer { return answer(r, cache.KeyParts{Project: 3, Query: "r"}.Key(), 0) }, result: peerUnfit},
		{name: "of another project", answer: func(r *PeerRequest) peers.Answer { return answer(r, cache.KeyParts{Project: 4, Query: "q"}.Key(), 0) }, result: peerUnfit},
		{name: "of another project, with the key", answer: func(r *PeerRequest) peers.Answer {
			return changed(t, answer(r, key, 0), func(h *peerHead) { h.Project = 4 })
		}, result: peerUnfit},
		{name: "older than it may be", answer: func(r *PeerRequest) peers.Answer { return answer(r, key, time.Hour) }, result: peerUnfit},
		{name: "from before a purge", answer: func(r *PeerRequest) peers.Answer { return answer(r, key, time.Second) }, result: peerUnfit, purged: true},
		{name: "from before a purge while it was asked for", answer: func(r *PeerRequest) peers.Answer {
			e.Cache.Purge(3)
			return answer(r, key, 0)
		}, result: peerStored},
		{name: "from before it was to be computed again", answer: func(r *PeerRequest) peers.Answer { return answer(r, key, time.Millisecond) }, result: peerUnfit, anew: true},
		{name: "from the future", answer: func(r *PeerRequest) peers.Answer { return answer(r, key, -time.Hour) }, result: peerStored},
		{name: "from another age", answer: func(r *PeerRequest) peers.Answer { return answer(r, key, -2*maxClaimedAge) }, result: peerUnfit},
		{name: "a page", answer: func(r *PeerRequest) peers.Answer {
			return changed(t, answer(r, key, 0), func(h *peerHead) { h.Page = &PeerPage{Limit: 1} })
		}, result: peerUnfit},
		{name: "of other columns", answer: func(r *PeerRequest) peers.Answer {
			return changed(t, answer(r, key, 0), func(h *peerHead) { h.Details.Columns = []string{"n", "m"} })
		}, result: peerUnfit},
		{name: "of negative times", answer: func(r *PeerRequest) peers.Answer {
			return changed(t, answer(r, key, 0), func(h *peerHead) { h.Details.Compile = -1 })
		}, result: peerUnfit},
		{name: "garbage", answer: func(*PeerRequest) peers.Answer {
			return peers.Answer{Kind: peers.Result, Body: []byte("\xff\xff\xff\xffgarbage")}
		}, result: peerUnfit},
		{name: "invalid rows", answer: func(r *PeerRequest) peers.Answer {
			a := answer(r, key, 0)
			return peers.Answer{Kind: a.Kind, Body: bytes.Replace(a.Body, []byte("[1]"), []byte("{1}"), 1)}
		}, result: peerUnfit},
		{name: "rows of a page", answer: func(r *PeerRequest) peers.Answer {
			whole, of := answer(r, key, 0).Body, formOf(rows)
			page := cacheRows(t, 1, of)
			return peers.Answer{Kind: peers.Result, Body: append(bytes.TrimSuffix(whole, of), page...)}
		}, result: peerUnfit},
		{name: "a page that is gone", answer: NoCutForPeer, result: peerUnfit},
		{name: "declined", answer: func(*PeerRequest) peers.Answer { return peers.Declined("why") }, result: peerDeclined},
		{name: "a refusal of the key", answer: func(*PeerRequest) peers.Answer { return limit("k", LimitKey) }, result: peerFailed, failure: true},
		{name: "a refusal of all", answer: func(*PeerRequest) peers.Answer { return limit("", LimitConcurrency) }, result: peerFailed, failure: true},
		{name: "a refusal of another key", answer: func(*PeerRequest) peers.Answer { return limit("other", LimitKey) }, result: peerUnfit},
		{name: "a refusal by no limit", answer: func(*PeerRequest) peers.Answer { return limit("k", "made up") }, result: peerUnfit},
		{name: "a failure", answer: func(r *PeerRequest) peers.Answer {
			return peerFailure(&clickhouse.Error{Kind: clickhouse.Timeout, Message: "m"}, r)
		}, result: peerFailed, failure: true},
		{name: "a failure of the server", answer: func(r *PeerRequest) peers.Answer {
			return peerFailure(&clickhouse.Error{Kind: clickhouse.Unavailable}, r)
		}, result: peerDeclined},
		{name: "a failure of no kind", answer: func(*PeerRequest) peers.Answer {
			return peers.Answer{Kind: peers.Failure, Body: []byte(`{"nonce":"NONCE","clickhouse":{"kind":99}}`)}
		}, result: peerUnfit},
		{name: "a failure of another request", answer: func(*PeerRequest) peers.Answer {
			return peers.Answer{Kind: peers.Failure, Body: []byte(`{"nonce":"x","clickhouse":{"kind":1}}`)}
		}, result: peerUnfit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e.Peers = liar(func(r *PeerRequest) (peers.Answer, error) {
				a := tt.answer(r)
				a.Body = bytes.Replace(a.Body, []byte("NONCE"), []byte(r.Nonce), 1)
				return a, nil
			})
			if tt.purged {
				e.Cache.Purge(3)
			}
			x := e.NewComputation(&caller, q)
			x.policy, x.anew = cache.Policy{Fresh: time.Minute}, tt.anew
			entry, result, err := x.askOwner(t.Context(), nodes.Node{})
			if result != tt.result || (err != nil) != tt.failure || (entry != nil) != (tt.result == peerStored) {
				t.Fatalf("%s: entry %v, %v; want %s", peerResults[result], entry, err, peerResults[tt.result])
			}
			if entry == nil {
				return
			}
			done, _ := entry.Meta.(*Details)
			if done.Marks != "own" || done.Version != 0 || entry.ComputedAt.After(time.Now()) || !entry.Fetched {
				t.Errorf("what a server says of the query is believed: %q %d %s", done.Marks, done.Version, entry.ComputedAt)
			}
		})
	}
}

// TestOutdatedWhileAsked changes data while another server computes a result: callers that asked before get it, and nobody else does.
func TestOutdatedWhileAsked(t *testing.T) {
	e := newExecutor(t)
	e.Hops = NewHops()
	key := cache.KeyParts{Project: 3, Query: "q"}.Key()
	asked := 0
	e.Peers = liar(func(r *PeerRequest) (peers.Answer, error) {
		asked++
		e.Cache.Outdate(3)
		entry := cache.NewEntry(oneRow(t), noon, &Details{Columns: []string{"n"}}, 0)
		return peerAnswer(cache.Answer{Entry: entry, Status: cache.Miss}, key, r, noon, nil), nil
	})
	caller := Caller{Project: &registry.Project{ID: 3}, Key: &registry.Key{ID: "k", Project: 3}, Snapshot: new(registry.Snapshot)}
	for n := range 2 {
		x := e.NewComputation(&caller, &Query{Key: key, Recipe: new(Recipe)})
		got, err := x.answer(t.Context(), cache.Policy{Fresh: time.Minute})
		if err != nil || got.Status != cache.Miss || asked != n+1 {
			t.Fatalf("call %d: %s, %v, having asked %d times", n, got.Status, err, asked)
		}
	}
}

// TestBackgroundQuestions: when somebody begins to wait for a result that was requested in the background, the owner is told.
func TestBackgroundQuestions(t *testing.T) {
	key := cache.KeyParts{Project: 3, Query: "q"}.Key()
	caller := Caller{Project: &registry.Project{ID: 3}, Key: &registry.Key{ID: "k", Project: 3}, Snapshot: new(registry.Snapshot)}
	answer := func(r *PeerRequest) peers.Answer {
		entry := cache.NewEntry(oneRow(t), noon, &Details{Columns: []string{"n"}}, 0)
		return peerAnswer(cache.Answer{Entry: entry, Status: cache.Miss}, key, r, noon, nil)
	}
	answers := func(r *PeerRequest) (peers.Answer, error) { return answer(r), nil }
	for name, tt := range map[string]struct {
		mode   cache.Mode
		second func(*PeerRequest) (peers.Answer, error)
	}{
		"answered":             {second: answers},
		"declined":             {second: func(*PeerRequest) (peers.Answer, error) { return peers.Declined("busy"), nil }},
		"silent":               {second: func(*PeerRequest) (peers.Answer, error) { return peers.Answer{}, peers.ErrSilent }},
		"to be computed again": {mode: cache.Recompute, second: answers},
		"again, of what it knows": {mode: cache.Recompute, second: func(r *PeerRequest) (peers.Answer, error) {
			entry := cache.NewEntry(oneRow(t), noon.Add(-time.Minute), &Details{Columns: []string{"n"}}, 0)
			return peerAnswer(cache.Answer{Entry: entry, Status: cache.Hit}, key, r, noon, nil), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t)
			e.Hops = NewHops()
			first, asked, end := make(chan *PeerRequest, 1), make(chan *PeerRequest, 1), make(chan struct{})
			e.Peers = liar(func(r *PeerRequest) (peers.Answer, error) {
				if r.Background {
					first <- r
					<-end
					return answer(r), nil
				}
				defer close(end)
				asked <- r
				return tt.second(r)
			})
			x := e.NewComputation(&caller, &Query{Key: key, Recipe: new(Recipe)})
			var waiting sync.WaitGroup
			wait := func(p cache.Policy) {
				waiting.Go(func() {
					if got, err := x.exec.Cache.Do(t.Context(), key, p, x.load); err != nil || got.Entry == nil {
						t.Errorf("%s, %v", got.Status, err)
					}
				})
			}
			x.policy, x.anew = cache.Policy{Fresh: time.Minute}, tt.mode == cache.Recompute
			wait(cache.Policy{Fresh: time.Minute, Mode: tt.mode, Background: true})
			one := <-first
			wait(cache.Policy{Fresh: time.Minute})
			two := <-asked
			waiting.Wait()
			if one.Recompute != x.anew || two.Recompute || two.Nonce == one.Nonce || two.Key != one.Key {
				t.Errorf("asked %+v and then %+v", one, two)
			}
		})
	}
}

// TestStoredForOthers: a caller joins another that accepts older results from another server.
func TestStoredForOthers(t *testing.T) {
	key := cache.KeyParts{Project: 3, Query: "q"}.Key()
	caller := Caller{Project: &registry.Project{ID: 3}, Key: &registry.Key{ID: "k", Project: 3}, Snapshot: new(registry.Snapshot)}
	for name, policy := range map[string]cache.Policy{
		"a fresher one":  {Fresh: time.Minute, Mode: cache.NoStale},
		"one that lasts": {Fresh: time.Minute, Mode: cache.NoStale, Lasting: func(*cache.Entry) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t)
			e.Hops = NewHops()
			first, end := make(chan struct{}), make(chan struct{})
			e.Peers = liar(func(r *PeerRequest) (peers.Answer, error) {
				age := time.Duration(0)
				switch {
				case r.Background:
					close(first)
					<-end
					return peers.Declined("the other question is answered"), nil
				case r.Fresh == time.Hour: // the second caller has come
					defer close(end)
					age = 30 * time.Minute
				}
				entry := cache.NewEntry(oneRow(t), noon.Add(-age), &Details{Columns: []string{"n"}}, 0)
				return peerAnswer(cache.Answer{Entry: entry, Status: cache.Hit}, key, r, noon, nil), nil
			})
			var waiting sync.WaitGroup
			waiting.Go(func() {
				x := e.NewComputation(&caller, &Query{Key: key, Recipe: new(Recipe)})
				if got, err := x.answer(t.Context(), cache.Policy{Fresh: time.Hour, Background: true}); err != nil || got.Age < 29*time.Minute { // clocks are set meanwhile
					t.Errorf("the first caller got one of %s, %v", got.Age, err)
				}
			})
			<-first
			got, err := e.NewComputation(&caller, &Query{Key: key, Recipe: new(Recipe)}).answer(t.Context(), policy)
			if err != nil || (got.Age < time.Minute) != (policy.Lasting == nil) {
				t.Errorf("got one of %s, %v", got.Age, err)
			}
			waiting.Wait()
		})
	}
}

// cacheRows returns the rows of a result as sent, which claim that there are others before them.
func cacheRows(tb testing.TB, before byte, sent []byte) []byte {
	tb.Helper()
	out := bytes.Clone(sent)
	out[2] = before
	if got, err := cache.ReadResult(out, cache.Limits{}); err != nil || got.First() != int(before) {
		tb.Fatalf("BUG: rows after %d others: %v", before, err)
	}
	return out
}

// TestCutsOfLiars makes another server send pages that must not be believed.
func TestCutsOfLiars(t *testing.T) {
	e := newExecutor(t)
	caller := Caller{Project: &registry.Project{ID: 3}, Key: &registry.Key{ID: "k", Project: 3}, Snapshot: new(registry.Snapshot), Start: time.Now()}
	rows := oneRow(t)
	of := formOf(rows)
	page := func(asked *PeerRequest, before byte, offset int, marks string) peers.Answer {
		entry := cache.NewEntry(rows, noon, &Details{Columns: []string{"n"}, Marks: marks}, 0)
		a := peerAnswer(cache.Answer{Entry: entry, Status: cache.Hit}, cache.KeyParts{Project: 3}.Key(), asked, noon, &PeerPage{Limit: 1})
		a = changed(t, a, func(h *peerHead) { h.Page.Offset = offset })
		a.Body = append(bytes.TrimSuffix(a.Body, of), cacheRows(t, before, of)...)
		return a
	}
	for name, tt := range map[string]struct {
		answer func(*PeerRequest) (peers.Answer, error)
		ok     bool
		gone   bool
	}{
		"the page":                {answer: func(r *PeerRequest) (peers.Answer, error) { return page(r, 5, 5, `{"a":1}`), nil }, ok: true},
		"of no variables":         {answer: func(r *PeerRequest) (peers.Answer, error) { return page(r, 0, 0, ""), nil }, ok: true},
		"rows after it":           {answer: func(r *PeerRequest) (peers.Answer, error) { return page(r, 6, 5, ""), nil }},
		"invalid marks":           {answer: func(r *PeerRequest) (peers.Answer, error) { return page(r, 0, 0, "{"), nil }},
		"marks of no variables":   {answer: func(r *PeerRequest) (peers.Answer, error) { return page(r, 0, 0, "[1]"), nil }},
		"gone":                    {answer: func(r *PeerRequest) (peers.Answer, error) { return NoCutForPeer(r), nil }, gone: true},
		"gone for another cursor": {answer: func(*PeerRequest) (peers.Answer, error) { return NoCutForPeer(&PeerRequest{Nonce: "x"}), nil }},
		"a failure of a query": {answer: func(r *PeerRequest) (peers.Answer, error) {
			return peerFailure(&clickhouse.Error{Kind: clickhouse.Timeout}, r), nil
		}},
		"declined": {answer: func(*PeerRequest) (peers.Answer, error) { return peers.Declined("busy"), nil }},
		"nothing":  {answer: func(*PeerRequest) (peers.Answer, error) { return peers.Answer{}, peers.ErrSilent }},
		"garbage": {answer: func(*PeerRequest) (peers.Answer, error) {
			return peers.Answer{Kind: peers.Result, Body: []byte("x")}, nil
		}},
		"a garbage of failures": {answer: func(*PeerRequest) (peers.Answer, error) {
			return peers.Answer{Kind: peers.Failure, Body: []byte("x")}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e.Peers = liar(tt.answer)
			cut, err := e.AskCut(t.Context(), &caller, nodes.Node{}, Recipe{Endpoint: "mine"})
			if (err == nil) != tt.ok || errors.Is(err, ErrSnapshotGone) != tt.gone || (cut != nil) != tt.ok {
				t.Errorf("%v, %v", cut, err)
			}
		})
	}
}

// TestLocalComputations tests computations that ask no other server.
func TestLocalComputations(t *testing.T) {
	e := newExecutor(t)
	e.Hops = NewHops()
	e.Peers = liar(func(*PeerRequest) (peers.Answer, error) {
		t.Error("another server is asked")
		return peers.Answer{}, peers.ErrSilent
	})
	key := cache.KeyParts{Project: 3}.Key()
	good := Caller{Project: &registry.Project{ID: 3}, Key: new(registry.Key), Snapshot: new(registry.Snapshot)}
	nobody := good
	nobody.Key = nil
	for name, x := range map[string]*Computation{
		"for nobody":       e.NewComputation(&nobody, &Query{Key: key, Recipe: new(Recipe)}),
		"without a recipe": e.NewComputation(&good, &Query{Key: key}),
		"for another":      {exec: e, Caller: good, query: &Query{Key: key, Recipe: new(Recipe)}, local: true},
	} {
		if _, ok, err := x.fromOwner(t.Context()); ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	end, _ := e.Hops.serve(key)
	if _, ok, _ := e.NewComputation(&good, &Query{Key: key, Recipe: new(Recipe)}).fromOwner(t.Context()); ok {
		t.Error("what is computed for another server is asked of one")
	}
	end()
	end, ok := e.Hops.ask(key)
	if _, serves := e.Hops.serve(key); !ok || serves {
		t.Error("what is asked of another server is computed for one")
	}
	end()
	if end, ok := e.Hops.serve(key); !ok {
		t.Error("a hop that ended is still there")
	} else {
		end()
	}
}

// FuzzPeerMessages makes sure that anything another server sends is either refused or what was asked for.
func FuzzPeerMessages(f *testing.F) {
	asked := &PeerRequest{Form: PeerForm, Nonce: strings.Repeat("a", 2*nonceBytes), Project: 3, Key: strings.Repeat("0", 64)}
	raw, err := json.Marshal(asked)
	if err != nil {
		f.Fatal(err)
	}
	key := cache.KeyParts{Project: 3}.Key()
	done := &Details{Columns: []string{"n"}}
	f.Add(raw)
	f.Add(peerAnswer(cache.Answer{Entry: cache.NewEntry(oneRow(f), noon, done, 0)}, key, asked, noon, nil).Body)
	f.Add(changed(f, peerAnswer(cache.Answer{Entry: cache.NewEntry(oneRow(f), noon, done, 0)}, key, asked, noon, nil), func(h *peerHead) { h.Key = asked.Key }).Body)
	f.Add(peerFailure(&clickhouse.Error{Kind: clickhouse.Timeout}, asked).Body)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := ReadPeerRequest(data); err == nil && (r.Project <= 0 || r.Fresh < 0 || r.Form != PeerForm) {
			t.Errorf("a request: %+v", r)
		}
		if a, err := readPeerResult(data, asked); err == nil {
			if a.head.Project != 3 || a.head.Key != asked.Key || a.head.Nonce != asked.Nonce || a.page() {
				t.Errorf("an answer: %+v", a.head)
			}
			_ = a.details().Size()
		}
		if e, ok := readPeerFailure(data); ok && e.ClickHouse != nil {
			_ = e.ClickHouse.Kind.String()
		}
	})
}
