package nodes_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/nodes/nodestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func node(n int) nodes.Node {
	return nodes.Node{
		Name: fmt.Sprintf("%016x", n), Address: fmt.Sprintf("10.0.0.%d:9443", n), Fingerprint: sha256.Sum256([]byte{byte(n)}), Version: "v1", Form: 1,
	}
}

func open(b *nodestest.Board, n int) *nodes.Directory {
	return nodes.Open(nodes.Config{Board: b, Self: node(n)})
}

func leave(t *testing.T, all ...*nodes.Directory) {
	t.Helper()
	for _, d := range all {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func names(d *nodes.Directory) (out []string) {
	for _, n := range d.Living() {
		out = append(out, strings.TrimLeft(n.Name, "0"))
	}
	return out
}

func expect(t *testing.T, d *nodes.Directory, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, names(d)); diff != "" || d.Nodes() != len(want) {
		t.Errorf("living (-want +got):\n%s", diff)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		expect(t, one, "1")
		time.Sleep(4500 * time.Millisecond)
		expect(t, one, "1", "2")
		expect(t, two, "1", "2")
		three := open(b, 3)
		time.Sleep(4500 * time.Millisecond)
		expect(t, one, "1", "2", "3")
		leave(t, two)
		time.Sleep(time.Second)
		expect(t, one, "1", "3")
		expect(t, three, "1", "3")
		leave(t, one, three)
		if b.Size() != 0 {
			t.Errorf("%d records of servers that left", b.Size())
		}
	})
}

// TestClocksApart: servers whose clocks differ, or are set, find one another and notice dead servers as usual.
func TestClocksApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		opened := time.Now()
		apart := func(n int, by time.Duration, pace float64) *nodes.Directory {
			return nodes.Open(nodes.Config{Board: b, Self: node(n), Now: func() time.Time {
				return opened.Add(by + time.Duration(pace*float64(time.Since(opened))))
			}})
		}
		one, two, three := apart(1, -24*time.Hour, 0.99), apart(2, time.Minute, 1.01), apart(3, 0, 1)
		time.Sleep(4500 * time.Millisecond)
		for _, d := range []*nodes.Directory{one, two, three} {
			expect(t, d, "1", "2", "3")
		}
		record := b.Of(registry.NodePrefix + node(2).Name)
		leave(t, two)
		b.Put(registry.NodePrefix+node(2).Name, record) // as if it had died
		time.Sleep(2500 * time.Millisecond)
		for _, d := range []*nodes.Directory{one, three} {
			expect(t, d, "1", "2", "3")
		}
		time.Sleep(4 * time.Second)
		for _, d := range []*nodes.Directory{one, three} {
			expect(t, d, "1", "3")
		}
		time.Sleep(11 * time.Minute)
		if b.Size() != 2 {
			t.Errorf("%d records, want those of the two that live", b.Size())
		}
		leave(t, one, three)
	})
}

// TestDeadNodes: the record of a dead server stays.
func TestDeadNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		time.Sleep(4500 * time.Millisecond)
		record := b.Of(registry.NodePrefix + node(2).Name)
		leave(t, two)
		b.Put(registry.NodePrefix+node(2).Name, record) // as if it had been killed
		time.Sleep(time.Second)
		expect(t, one, "1", "2")
		time.Sleep(6 * time.Second)
		expect(t, one, "1")
		if _, known := one.Known(t.Context(), node(2).Fingerprint); !known {
			t.Error("a server whose number stands still for a while is not known")
		}
		time.Sleep(11 * time.Minute)
		expect(t, one, "1")
		if b.Size() != 1 {
			t.Errorf("records: %d, want that of the living server alone", b.Size())
		}
		if _, known := one.Known(t.Context(), node(2).Fingerprint); known {
			t.Error("a server without a record is known")
		}
		late := open(b, 3) // an old record counts only once its counter moves
		b.Put(registry.NodePrefix+node(2).Name, record)
		time.Sleep(4500 * time.Millisecond)
		expect(t, late, "1", "3")
		leave(t, one, late)
	})
}

// TestAwayRegistry: the registry is unavailable for longer than a counter may stop.
func TestAwayRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		time.Sleep(4500 * time.Millisecond)
		b.SetAway(true)
		time.Sleep(time.Minute)
		expect(t, one, "1", "2")
		expect(t, two, "1", "2")
		b.SetAway(false)
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			expect(t, one, "1", "2")
			expect(t, two, "1", "2")
		}
		leave(t, one, two)
	})
}

func TestOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		var all []*nodes.Directory
		for n := range 4 {
			all = append(all, open(b, n+1))
		}
		if _, other := all[0].Owner(sha256.Sum256(nil)); other {
			t.Error("a server that knows of no other asks one")
		}
		other := nodes.Open(nodes.Config{Board: b, Self: nodes.Node{Name: "00000000000000aa", Form: 1}}) // answers nobody
		newer := nodes.Open(nodes.Config{Board: b, Self: nodes.Node{Name: "00000000000000bb", Address: "10.0.0.9:1", Form: 2, Fingerprint: nodes.Fingerprint{9}}})
		elsewhere := node(5) // it has other rows
		elsewhere.Source = "other"
		foreign := nodes.Open(nodes.Config{Board: b, Self: elsewhere})
		time.Sleep(4500 * time.Millisecond)
		owns := make(map[string]int)
		moved := 0
		all[2].Silent(node(2).Name)
		for n := range 4000 {
			key := sha256.Sum256(fmt.Append(nil, n))
			owner, asks := all[0].Owner(key)
			owns[owner.Name]++
			if asks == (owner.Name == node(1).Name) {
				t.Fatalf("the owner of a key is %s, and asked: %t", owner.Name, asks)
			}
			if same, _ := all[1].Owner(key); same != owner {
				t.Fatalf("two servers think that %s and %s own a key", owner.Name, same.Name)
			}
			if without, _ := all[2].Owner(key); without != owner {
				moved++
				if owner.Name != node(2).Name || without.Name == node(2).Name {
					t.Fatalf("without a server the owner is %s, not %s", without.Name, owner.Name)
				}
			}
		}
		if len(owns) != 4 || moved != owns[node(2).Name] {
			t.Errorf("keys by their owner: %v, of which moved without one: %d", owns, moved)
		}
		for name, n := range owns {
			if n < 800 || n > 1200 {
				t.Errorf("%s owns %d of 4000", name, n)
			}
		}
		if hasResults(all[2], node(2)) {
			t.Error("a server that does not answer owns something")
		}
		time.Sleep(6 * time.Second) // its number moves
		if !hasResults(all[2], node(2)) {
			t.Error("a server whose number moves again owns nothing")
		}
		if _, other := foreign.Owner(sha256.Sum256(nil)); other {
			t.Error("a server that alone has its source asks another one")
		}
		if found, err := all[0].Named(t.Context(), elsewhere.Name); err != nil || found != elsewhere {
			t.Error("a server of another source is not found by its name")
		}
		leave(t, append(all, other, newer, foreign)...)
	})
}

// hasResults reports whether a Directory finds that a server owns any of many results.
func hasResults(d *nodes.Directory, of nodes.Node) bool {
	for key := range 100 {
		if owner, other := d.Owner(sha256.Sum256(fmt.Append(nil, key))); other && owner == of {
			return true
		}
	}
	return false
}

// TestNamed: a server is found by its name for as long as it may have what no other has.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		named := func(d *nodes.Directory, want error, what string) {
			t.Helper()
			synctest.Wait()
			if n, err := d.Named(t.Context(), node(2).Name); !errors.Is(err, want) || want == nil && n != node(2) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		ended := func(want bool, what string) {
			t.Helper()
			if got, err := one.Ended(t.Context(), node(2)); got != want || err != nil {
				t.Errorf("%s has ended: %t, %v", what, got, err)
			}
		}
		named(one, nil, "a server that has not been read yet")
		time.Sleep(4500 * time.Millisecond)
		one.Silent(node(2).Name)
		named(one, nil, "a server that did not answer")
		ended(false, "a server whose number moves")
		if hasResults(one, node(2)) {
			t.Error("a server that did not answer owns something")
		}
		record := b.Of("node-" + node(2).Name)
		leave(t, two)
		time.Sleep(1500 * time.Millisecond)
		named(one, nodes.ErrGone, "a server that left")
		ended(true, "a server that left")
		b.Put("node-"+node(2).Name, record) // as if it had been killed
		time.Sleep(1500 * time.Millisecond)
		named(one, nil, "a server that may live")
		ended(false, "a server that may live")
		time.Sleep(6 * time.Second)
		named(one, nil, "a server whose number stands still")
		ended(true, "a server whose number stands still")
		if living, dead := one.Others(); len(living) != 0 || !slices.Equal(dead, []nodes.Node{node(2)}) {
			t.Errorf("others: %v live, %v died", living, dead)
		}
		moved := node(2)
		moved.Address = "10.0.0.2:9444"
		if got, err := one.Ended(t.Context(), moved); got || err != nil {
			t.Errorf("a server that has another address now has ended: %t, %v", got, err)
		}
		b.SetAway(true)
		if got, err := one.Ended(t.Context(), node(2)); got || err == nil {
			t.Errorf("while the registry is unavailable, a server has ended: %t, %v", got, err)
		}
		named(one, nil, "a server whose number stands still, while the registry is unavailable")
		if _, err := one.Named(t.Context(), node(3).Name); err == nil || errors.Is(err, nodes.ErrGone) {
			t.Errorf("an unknown server while the registry is unavailable: %v", err)
		}
		b.SetAway(false)
		mute := nodes.Open(nodes.Config{Board: b, Self: nodes.Node{Name: "00000000000000aa", Form: 1}})
		if _, err := one.Named(t.Context(), "00000000000000aa"); !errors.Is(err, nodes.ErrNotAsked) {
			t.Errorf("a server that answers nobody: %v", err)
		}
		leave(t, one, mute)
		if _, err := one.Named(t.Context(), node(3).Name); err == nil || errors.Is(err, nodes.ErrGone) {
			t.Errorf("an unknown server, of a directory that is closed: %v", err)
		}
	})
}

// TestUnknownNames: unknown names cost the registry at most one read per second, besides those of the loop.
func TestUnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one := nodes.Open(nodes.Config{Board: b, Self: node(1), Every: time.Hour})
		synctest.Wait()
		before, _ := b.Counts()
		began := time.Now()
		for range 10 {
			var asking sync.WaitGroup
			for n := range 100 {
				asking.Go(func() {
					if _, err := one.Named(t.Context(), node(n+2).Name); !errors.Is(err, nodes.ErrGone) {
						t.Errorf("a name that nobody has: %v", err)
					}
				})
			}
			asking.Wait()
		}
		after, _ := b.Counts()
		if most := 1 + int(time.Since(began)/time.Second); after-before > most {
			t.Errorf("1000 unknown names had the records read %d times in %s", after-before, time.Since(began))
		}
		leave(t, one)
	})
}

// TestRenewedDirectory: a Directory opened while the registry is unavailable, as by a reload, knows what the previous one knew.
func TestRenewedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		before, two, three := open(b, 1), open(b, 2), open(b, 3)
		time.Sleep(4500 * time.Millisecond)
		before.Silent(node(3).Name)
		b.SetAway(true)
		moved := node(1)
		moved.Address = "10.0.0.1:9444"
		after := nodes.Open(nodes.Config{Board: b, Self: moved})
		if err := before.Close(); err != nil {
			t.Error(err)
		}
		expect(t, after, "1", "2", "3")
		if _, known := after.Known(t.Context(), node(2).Fingerprint); !known {
			t.Error("the certificate of another server is not known")
		}
		if !hasResults(after, node(2)) || hasResults(after, node(3)) {
			t.Error("not those servers own something that did before")
		}
		time.Sleep(time.Minute)
		b.SetAway(false)
		time.Sleep(1500 * time.Millisecond)
		expect(t, after, "1", "2", "3")
		time.Sleep(6 * time.Second)
		expect(t, after, "1", "2", "3")
		expect(t, two, "1", "2", "3")
		if !hasResults(after, node(3)) {
			t.Error("a server whose number moves again owns nothing")
		}
		leave(t, after, two, three)
	})
}

// TestSilentAgain: a server that fails each time is asked less and less often, and the change is reported once.
func TestSilentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		time.Sleep(4500 * time.Millisecond)
		fails := func(times int) (out []int) {
			for n := range times {
				if changed := one.Silent(node(2).Name); changed != (n == 0) {
					t.Errorf("failure %d is a change: %t", n, changed)
				}
				if one.Silent(node(2).Name) {
					t.Error("one more that waited is a change")
				}
				seconds := 0
				for ; !hasResults(one, node(2)); seconds++ {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				out = append(out, seconds)
			}
			return out
		}
		want := []int{3, 6, 12, 24, 48, 48, 48}
		for n, got := range fails(len(want)) {
			if got < want[n]-1 || got > want[n]+1 { // both count in seconds
				t.Errorf("after failure %d it is left out for %ds, want %ds", n, got, want[n])
			}
		}
		if !one.Answered(node(2).Name) || one.Answered(node(2).Name) {
			t.Error("its first answer is no change, or the second is one")
		}
		if got := fails(1); got[0] < 2 || got[0] > 4 {
			t.Errorf("after it answered, it is left out for %ds", got[0])
		}
		one.Answered(node(2).Name)
		one.Silent(node(2).Name)
		if !one.Answered(node(2).Name) || !hasResults(one, node(2)) {
			t.Error("a server that answered meanwhile is left out")
		}
		leave(t, one, two)
	})
}

// TestTakingOver: a second Directory of a server takes over from the first, as one config does from another.
func TestTakingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, elsewhere := nodestest.NewBoard(), nodestest.NewBoard()
		other, before, apart := open(b, 2), open(b, 1), open(elsewhere, 1)
		time.Sleep(4500 * time.Millisecond)
		moved := node(1)
		moved.Address = "10.0.0.1:9444"
		found := func(want nodes.Node, what string) {
			t.Helper()
			for range 10 { // whichever of the two writes last
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if got, _ := other.Named(t.Context(), want.Name); got != want || other.Nodes() != 2 {
					t.Errorf("%s: found %s, of %d servers", what, got.Address, other.Nodes())
				}
			}
		}
		failed := nodes.Open(nodes.Config{Board: b, Self: moved}) // a config that is given up
		time.Sleep(4500 * time.Millisecond)
		found(moved, "the newest")
		leave(t, failed)
		time.Sleep(4500 * time.Millisecond)
		found(node(1), "the one before a config that was given up")
		after := nodes.Open(nodes.Config{Board: b, Self: moved})
		time.Sleep(4500 * time.Millisecond)
		found(moved, "the newest again")
		leave(t, before)
		found(moved, "the newest, after the one before it ended")
		if elsewhere.Size() != 1 {
			t.Errorf("%d records in another registry, want that of the server", elsewhere.Size())
		}
		leave(t, after, other, apart)
		if b.Size()+elsewhere.Size() != 0 {
			t.Errorf("%d records of servers that left, and %d elsewhere", b.Size(), elsewhere.Size())
		}
	})
}

// TestSilentAndDead: a server that did not answer stays out, whatever it had written before that was not read yet.
func TestSilentAndDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		time.Sleep(4500 * time.Millisecond)
		name := registry.NodePrefix + node(2).Name
		leave(t, two)
		b.Put(name, []byte(strings.Replace(record(5), "BEAT", "5", 1)))
		time.Sleep(time.Second)
		one.Silent(node(2).Name)
		b.Put(name, []byte(strings.Replace(record(5), "BEAT", "6", 1))) // its last word
		for range 20 {
			time.Sleep(time.Second)
			if hasResults(one, node(2)) {
				t.Fatal("a server that died owns something again")
			}
		}
		leave(t, one)
	})
}

func record(int) string {
	return fmt.Sprintf(`{"address":%q,"fingerprint":"%x","version":"v1","form":1,"beat":BEAT,"every_ms":1000}`, node(2).Address, node(2).Fingerprint)
}

// TestStrangers: unknown certificates cost the registry at most one read per second.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one := open(b, 1)
		time.Sleep(100 * time.Millisecond)
		before, _ := b.Counts()
		for n := range 1000 {
			if _, known := one.Known(t.Context(), sha256.Sum256(fmt.Append(nil, n))); known {
				t.Fatal("a stranger is known")
			}
		}
		if after, _ := b.Counts(); after-before != 1 {
			t.Errorf("1000 strangers had the records read %d times", after-before)
		}
		leave(t, one)
	})
}

// TestCost makes sure that the reads and writes of many servers stay bounded.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		var all []*nodes.Directory
		for n := range 100 {
			all = append(all, open(b, n+1))
		}
		time.Sleep(time.Minute)
		reads, writes := b.Counts()
		time.Sleep(100 * time.Second)
		readsAfter, writesAfter := b.Counts()
		if reads, writes = readsAfter-reads, writesAfter-writes; reads > 1100 || writes > 1100 || reads < 900 {
			t.Errorf("100 servers cause %d reads and %d writes in 100 seconds, want 10 in a second", reads, writes)
		}
		if got := all[0].Nodes(); got != 100 {
			t.Errorf("%d of 100 servers live", got)
		}
		leave(t, all...)
	})
}

// FuzzRecord: whatever is stored, a server only accepts records that servers write.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{strings.Replace(record(2), "BEAT", "1", 1), `{}`, `[]`, `{"beat":-1}`, "", strings.Repeat("x", 2000)} {
		f.Add("0000000000000002", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		b := nodestest.NewBoard()
		b.Put(registry.NodePrefix+name, data)
		one := open(b, 1)
		defer leave(t, one)
		one.Known(t.Context(), nodes.Fingerprint{})
		if got := one.Nodes(); got != 1 {
			t.Errorf("%d servers live before any number has moved", got)
		}
	})
}
