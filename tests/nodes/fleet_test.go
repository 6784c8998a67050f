package nodes_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// unlimited effectively removes the limits on keys and on a project's records.
const unlimited = "limits {\n\t\t\trate 100000/s\n\t\t\trecords 10000000\n\t\t\trecords_size 4GiB\n\t\t}"

// fleet is a group of nodes with the services that they share.
type fleet struct {
	postgres *postgrestest.Server
	hosts    []*harness.Relay // each leads to the one engine behind all of them
	nodes    []*harness.Server
	peers    []*harness.Relay // the other nodes' connections to each node
	lines    []*harness.Relay // each node's connection to PostgreSQL

	mu    sync.Mutex
	away  int       // how many failures currently separate a node from the registry's database
	again time.Time // when away last changed
	last  []failure
}

// failure is a failed part, and when it failed.
type failure struct {
	part        string
	from, until time.Time // until is zero while it lasts
}

// fail makes a part fail, and repairs it.
func (f *fleet) fail(t *testing.T, p part) {
	t.Helper()
	f.mu.Lock()
	f.last = append(f.last[max(0, len(f.last)-2):], failure{part: p.name, from: time.Now()})
	f.mu.Unlock()
	mend, err := p.fail()
	if err != nil {
		t.Errorf("killing %s: %v", p.name, err)
	}
	if err := mend(); err != nil {
		t.Errorf("bringing %s back: %v", p.name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[len(f.last)-1].until = time.Now()
}

// lately returns what failed in the last seconds.
func (f *fleet) lately() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, l := range f.last {
		fmt.Fprintf(&b, "; %s failed %.1f s ago", l.part, time.Since(l.from).Seconds())
		if !l.until.IsZero() {
			fmt.Fprintf(&b, " until %.1f s ago", time.Since(l.until).Seconds())
		}
	}
	return b.String()
}

// startFleet starts nodes that find each other, and the services that they share.
func startFleet(t *testing.T, nodes, hosts int) *fleet {
	t.Helper()
	f := &fleet{postgres: postgrestest.New(t)}
	engine := embeddedtest.New(t)
	var dsn string
	dsn, f.hosts = harness.Relays(t, engine.DSN(), hosts)
	registry := f.postgres.Database(t)
	for range nodes {
		ports, err := freeport.Find(1)
		if err != nil {
			t.Fatal(err)
		}
		listen := fmt.Sprintf("127.0.0.1:%d", ports[0])
		_, peer := harness.Relays(t, "https://"+listen, 1)
		line, lines := harness.Relays(t, registry, 1)
		peers := fmt.Sprintf("peers {\n\t\t\tlisten %s\n\t\t\tadvertise %s\n\t\t}", listen, peer[0].Address())
		f.peers, f.lines = append(f.peers, peer...), append(f.lines, lines...)
		f.nodes = append(f.nodes, harness.Start(t, "clickhouse "+dsn, "registry "+line, peers, unlimited))
	}
	return f
}

// unplug ends the registry's database without warning.
func (f *fleet) unplug() error {
	f.noteAway(1)
	return f.postgres.Kill()
}

// plug starts the registry's database again.
func (f *fleet) plug() error {
	defer f.noteAway(-1)
	return f.postgres.Run()
}

// cut blocks the connection between a node and the registry's database.
func (f *fleet) cut(node int, fault harness.Fault) {
	f.noteAway(1)
	f.lines[node].Set(fault)
}

// join ends a cut.
func (f *fleet) join(node int) {
	f.lines[node].Set(harness.Works)
	f.noteAway(-1)
}

// noteAway counts a failure that separates a node from the registry's database or, with -1, its end.
func (f *fleet) noteAway(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.again = f.away+more, time.Now()
}

// registryAway reports whether a node was separated from the registry's database at any time since a moment.
func (f *fleet) registryAway(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away > 0 || f.again.After(since)
}
