package nodes_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// unlimited takes the rate limit of keys away, in effect.
const unlimited = "limits {\n\t\t\trate 100000/s\n\t\t}"

// fleet is some nodes with what they share.
type fleet struct {
	postgres *postgrestest.Server
	hosts    []*harness.Relay // each passes on to the one engine behind all of them
	nodes    []*harness.Server

	mu    sync.Mutex
	away  time.Time // since when the registry's database is away; zero while it is there
	again time.Time // when it came back
}

// startFleet starts nodes that find one another, and what they share.
func startFleet(t *testing.T, nodes, hosts int) *fleet {
	t.Helper()
	f := &fleet{postgres: postgrestest.New(t)}
	engine := embeddedtest.New(t)
	var dsn string
	dsn, f.hosts = harness.Relays(t, engine.DSN(), hosts)
	registry := f.postgres.Database(t)
	for range nodes {
		ports, err := harness.FreePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		peers := fmt.Sprintf("peers {\n\t\t\tlisten 127.0.0.1:%d\n\t\t}", ports[0])
		f.nodes = append(f.nodes, harness.Start(t, "clickhouse "+dsn, "registry "+registry, peers, unlimited))
	}
	return f
}

// unplug ends the registry's database without warning.
func (f *fleet) unplug() error {
	f.mu.Lock()
	f.away = time.Now()
	f.mu.Unlock()
	return f.postgres.Kill()
}

// plug starts the registry's database again.
func (f *fleet) plug() error {
	err := f.postgres.Run()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.again = time.Time{}, time.Now()
	return err
}

// registryAway reports whether the registry's database was away at some time after a moment.
func (f *fleet) registryAway(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.away.IsZero() || f.again.After(since)
}
