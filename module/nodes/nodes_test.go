package nodes_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
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

// TestDeadNodes has a record stay whose server died.
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
		late := open(b, 3) // an old record counts only once its number moves
		b.Put(registry.NodePrefix+node(2).Name, record)
		time.Sleep(4500 * time.Millisecond)
		expect(t, late, "1", "3")
		leave(t, one, late)
	})
}

// TestAwayRegistry has the registry be away for longer than a number may stand still.
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
		if found, ok := all[0].Named(elsewhere.Name); !ok || found != elsewhere {
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

// TestNamed has a server be found by its name for as long as it may have what only it has.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nodestest.NewBoard()
		one, two := open(b, 1), open(b, 2)
		named := func(d *nodes.Directory, want bool, what string) {
			t.Helper()
			synctest.Wait()
			if n, ok := d.Named(node(2).Name); ok != want || ok && n != node(2) {
				t.Errorf("%s: found %t", what, ok)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		named(one, true, "a server that is new here")
		time.Sleep(3 * time.Second)
		one.Silent(node(2).Name)
		named(one, true, "a server that did not answer")
		if hasResults(one, node(2)) {
			t.Error("a server that did not answer owns something")
		}
		record := b.Of("node-" + node(2).Name)
		leave(t, two)
		time.Sleep(1500 * time.Millisecond)
		named(one, false, "a server that left")
		b.Put("node-"+node(2).Name, record) // as if it had been killed
		time.Sleep(1500 * time.Millisecond)
		named(one, true, "a server that may live")
		time.Sleep(6 * time.Second)
		named(one, false, "a server that died")
		leave(t, one)
	})
}

// TestTakingOver has a second Directory of a server take over from the first, as a config does from the one before it.
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
				if got, _ := other.Named(want.Name); got != want || other.Nodes() != 2 {
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

// TestSilentAndDead has a server that did not answer stay out, whatever it had written before that was not read yet.
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

// TestStrangers makes sure that certificates which nobody knows cost the registry no more than one read in a second.
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

// FuzzRecord makes sure that whatever is kept, a server finds only records that servers write.
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
