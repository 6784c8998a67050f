package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// shared starts a fleet with a project.
func shared(t *testing.T, nodes, hosts int) *load {
	t.Helper()
	f := startFleet(t, nodes, hosts)
	id, _ := f.nodes[0].Project(t, "shared")
	key := f.nodes[0].Key(t, id, harness.AllScopes, "personal")
	token, err := f.nodes[0].CaptureToken(id)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{
		fleet: f, project: id, key: key, token: token,
		insights: map[string]*written{}, acknowledged: map[string]bool{}, unacknowledged: map[string]bool{},
	}
	for _, node := range f.nodes {
		harness.Eventually(t, time.Minute, func() error { return l.answers(node) })
	}
	return l
}

// answers returns why a node does not answer a query of the project.
func (l *load) answers(node *harness.Server) error {
	answer, err := node.Client(l.project, l.key).Send(http.MethodPost, "query/", map[string]any{
		"query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}, "refresh": "force_blocking",
	})
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("it answered %d: %.300s", answer.Status, answer.Raw)
	}
	return err
}

// ready returns why a node is not ready.
func ready(node *harness.Server) error {
	answer, err := http.Get("http://" + node.Admin + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %s", answer.Status)
	}
	return nil
}

// part is a part of a fleet that can fail.
type part struct {
	name string
	fail func() (mend func() error, err error)
}

// parts are all parts of the fleet, each as many times as it should fail.
func (f *fleet) parts(t *testing.T) []part {
	t.Helper()
	pause := func() { time.Sleep(time.Duration(500+rand.IntN(2500)) * time.Millisecond) }
	var all []part
	for n, node := range f.nodes {
		all = append(all, part{fmt.Sprint("node ", n), func() (func() error, error) {
			err := node.Kill()
			return func() error { pause(); return node.Run() }, err
		}})
	}
	for n, h := range f.hosts {
		for name, fault := range map[string]harness.Fault{"refuses": harness.Refuses, "resets": harness.Resets, "is silent": harness.Silent, "is mute": harness.Mute} {
			all = append(all, part{fmt.Sprintf("host %d %s", n, name), func() (func() error, error) {
				h.Set(fault)
				return func() error { pause(); h.Set(harness.Works); return nil }, nil
			}})
		}
	}
	for n := range f.nodes {
		for name, fault := range map[string]harness.Fault{"is cut off": harness.Resets, "gets nothing": harness.Silent} {
			all = append(all, part{fmt.Sprintf("node %d %s from PostgreSQL", n, name), func() (func() error, error) {
				f.cut(n, fault)
				return func() error { pause(); f.join(n); return nil }, nil
			}}, part{fmt.Sprintf("node %d %s from the others", n, name), func() (func() error, error) {
				f.peers[n].Set(fault)
				return func() error { pause(); f.peers[n].Set(harness.Works); return nil }, nil
			}})
		}
	}
	return append(all,
		part{"PostgreSQL", func() (func() error, error) {
			err := f.unplug()
			return func() error { pause(); return f.plug() }, err
		}},
		part{"the engine", func() (func() error, error) {
			harness.KillChildren(t, os.Getpid(), "engine")
			return func() error { pause(); return nil }, nil
		}})
}

// TestFleet: clients read, write, revoke keys and capture events on all nodes while one part after another is killed. No answer is wrong, nothing
// acknowledged is lost, and no key works a second after its revocation.
func TestFleet(t *testing.T) {
	l := shared(t, 3, 2)
	stop := make(chan struct{})
	clients := l.run(stop)
	failures := map[string]int{}
	parts := l.fleet.parts(t)
	var order []int // the order of the next parts: each is killed before one is killed again
	for until := time.Now().Add(*last); time.Now().Before(until); order = order[1:] {
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		if len(order) == 0 {
			order = rand.Perm(len(parts))
		}
		p := parts[order[0]]
		l.fleet.fail(t, p)
		failures[p.name]++
	}
	time.Sleep(2 * time.Second)
	close(stop)
	clients.Wait()
	for _, node := range l.fleet.nodes {
		harness.Eventually(t, time.Minute, func() error { return l.answers(node) })
		node.AwaitDelivery(t)
	}
	l.check(t)
	t.Logf("In %s these failed: %v", *last, failures)
	t.Logf("%d answers were right, %d were refused, %d connections ended; %d writes were acknowledged; %d keys were refused a second after they were revoked, "+
		"%d may have been revoked unheard; %d events were acknowledged, %d may have been taken",
		l.reads.Load(), l.refused.Load(), l.broken.Load(), l.writes.Load(), l.revoked.Load(), l.unsure.Load(), l.captured.Load(), l.doubtful.Load())
	if l.reads.Load() == 0 || l.writes.Load() == 0 || l.revoked.Load() == 0 || l.captured.Load() == 0 {
		t.Error("some client got nothing done")
	}
}

// check checks that all acknowledged data is there, on all nodes.
func (l *load) check(t *testing.T) {
	t.Helper()
	for _, w := range l.wrong[:min(len(l.wrong), 20)] {
		t.Error(w)
	}
	if len(l.wrong) > 20 {
		t.Errorf("and %d more", len(l.wrong)-20)
	}
	if len(l.wrong) > 0 {
		for n, node := range l.fleet.nodes {
			t.Logf("node %d says:\n%s", n, node.LogEnd())
		}
	}
	for n, node := range l.fleet.nodes {
		c := node.Client(l.project, l.key)
		for id, w := range l.insights {
			answer := c.Do(t, http.MethodGet, "insights/"+id+"/", nil)
			var got int
			if _, err := fmt.Sscan(fmt.Sprint(answer.Body["name"]), &got); err != nil || answer.Status != http.StatusOK || got < w.acknowledged || got > w.sent {
				t.Errorf("on node %d insight %s is at %v, want %d to %d: %d %.300s", n, id, answer.Body["name"], w.acknowledged, w.sent, answer.Status, answer.Raw)
			}
		}
	}
	there := map[string]int{}
	c := l.fleet.nodes[0].Client(l.project, l.key)
	for offset := 0; ; {
		rows := c.Query(t, fmt.Sprintf("select uuid from events order by uuid limit 50000 offset %d", offset))
		for _, row := range rows {
			if cells, ok := row.([]any); ok {
				there[fmt.Sprint(cells[0])]++
			}
		}
		if offset += len(rows); len(rows) < 50000 {
			break
		}
	}
	var lost, more []string
	for id := range l.acknowledged {
		if there[id] == 0 {
			lost = append(lost, id)
		}
	}
	for id, times := range there {
		if times != 1 || !l.acknowledged[id] && !l.unacknowledged[id] {
			more = append(more, id)
		}
	}
	if len(lost)+len(more) > 0 {
		t.Errorf("%d acknowledged events are lost: %.500v\n%d are there more than once, or were not sent: %.500v", len(lost), lost, len(more), more)
	}
}

// TestWritesAreSeen writes on one node and reads on all others.
func TestWritesAreSeen(t *testing.T) {
	for _, others := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			l := shared(t, 1+others, 1)
			const times = 20
			var writes, revocations []time.Duration
			for range times {
				writes = append(writes, l.writeSeen(t))
				revocations = append(revocations, l.revocationSeen(t))
			}
			for what, took := range map[string][]time.Duration{"a write": writes, "a revocation": revocations} {
				slices.Sort(took)
				t.Logf("%s is seen by %d others after %s, at most %s", what, others, took[times/2], took[times-1])
				if took[times-1] > seenWithin {
					t.Errorf("%s was seen after %s only, want %s", what, took[times-1], seenWithin)
				}
			}
		})
	}
}

// writeSeen returns how long it takes until all other nodes have an insight.
func (l *load) writeSeen(t *testing.T) time.Duration {
	t.Helper()
	nodes := l.fleet.nodes
	answer := nodes[0].Client(l.project, l.key).Do(t, http.MethodPost, "insights/", map[string]any{"name": "seen", "saved": true})
	began := time.Now()
	if answer.Status != http.StatusCreated {
		t.Fatalf("writing: %d %s", answer.Status, answer.Raw)
	}
	path := fmt.Sprintf("insights/%v/", answer.Body["id"])
	return l.everywhere(t, began, func(node *harness.Server) bool {
		return node.Client(l.project, l.key).Do(t, http.MethodGet, path, nil).Status == http.StatusOK
	})
}

// revocationSeen returns how long it takes until no other node accepts a revoked key.
func (l *load) revocationSeen(t *testing.T) time.Duration {
	t.Helper()
	first := l.fleet.nodes[0].Client(l.project, l.key)
	answer := first.Do(t, http.MethodPost, "personal_api_keys/", map[string]any{"label": "short", "scopes": []string{"insight:read"}})
	if answer.Status != http.StatusCreated {
		t.Fatalf("making a key: %d %s", answer.Status, answer.Raw)
	}
	key := fmt.Sprint(answer.Body["value"])
	taken := func(node *harness.Server) bool {
		return node.Client(l.project, key).Do(t, http.MethodGet, "insights/?limit=1", nil).Status == http.StatusOK
	}
	l.everywhere(t, time.Now(), taken)
	if answer := first.Do(t, http.MethodDelete, fmt.Sprintf("personal_api_keys/%v/", answer.Body["id"]), nil); answer.Status != http.StatusNoContent {
		t.Fatalf("revoking: %d %s", answer.Status, answer.Raw)
	}
	return l.everywhere(t, time.Now(), func(node *harness.Server) bool { return !taken(node) })
}

// everywhere waits until a condition holds on all nodes except the first, and returns how long after began that was.
func (l *load) everywhere(t *testing.T, began time.Time, so func(*harness.Server) bool) time.Duration {
	t.Helper()
	for _, node := range l.fleet.nodes[1:] {
		for !so(node) {
			if time.Since(began) > time.Minute {
				t.Fatalf("it is not so after a minute: %s", node.LogEnd())
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// TestRegistryAway: while the registry's database is down, nodes stay ready, reads work and writes are refused, and it recovers by itself. All read
// routes are tested in TestReadsWithoutTheRegistry, in module.
func TestRegistryAway(t *testing.T) {
	l := shared(t, 2, 1)
	c := l.fleet.nodes[1].Client(l.project, l.key)
	before := c.Do(t, http.MethodPost, "insights/", map[string]any{"name": "before", "saved": true})
	if before.Status != http.StatusCreated {
		t.Fatalf("writing: %d %s", before.Status, before.Raw)
	}
	if err := l.fleet.unplug(); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if err := l.answers(l.fleet.nodes[n%2]); err != nil {
			t.Errorf("a query meanwhile: %v", err)
		}
		for _, path := range []string{fmt.Sprintf("insights/%v/", before.Body["id"]), "insights/?search=before"} {
			if read := c.Do(t, http.MethodGet, path, nil); read.Status != http.StatusOK {
				t.Errorf("a read meanwhile, %s: %d %s", path, read.Status, read.Raw)
			}
		}
		if err := ready(l.fleet.nodes[n%2]); err != nil {
			t.Errorf("a node meanwhile: %v", err)
		}
		refused := c.Do(t, http.MethodPost, "insights/", map[string]any{"name": "meanwhile", "saved": true})
		if refused.Status != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" || refused.Body["type"] != "server_error" {
			t.Errorf("a write meanwhile: %d %v %s", refused.Status, refused.Header, refused.Raw)
		}
	}
	if err := l.fleet.plug(); err != nil {
		t.Fatal(err)
	}
	for _, node := range l.fleet.nodes {
		harness.Eventually(t, time.Minute, func() error {
			answer, err := node.Client(l.project, l.key).Send(http.MethodPost, "insights/", map[string]any{"name": "after", "saved": true})
			if err == nil && answer.Status != http.StatusCreated {
				err = fmt.Errorf("%d %s", answer.Status, answer.Raw)
			}
			return err
		})
	}
	listed := c.Do(t, http.MethodGet, "insights/?search=meanwhile", nil)
	if results, _ := listed.Body["results"].([]any); listed.Status != http.StatusOK || len(results) != 0 {
		t.Errorf("writes that were refused are there: %d %s", listed.Status, listed.Raw)
	}
}
