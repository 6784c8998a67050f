package execution

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// board is a registry as the place where nodes keep their records.
type board struct {
	*registry.Registry
	registry.Sharer
}

// cluster is nodes that share a database, in which they find one another.
type cluster struct {
	server *postgrestest.Server
	dsn    string
	boards []board
	known  []*nodes.Directory
}

func newCluster(t *testing.T, size int) *cluster {
	t.Helper()
	c := &cluster{server: postgrestest.New(t)}
	c.dsn = c.server.Database(t)
	for n := range size {
		store, err := postgres.Open(t.Context(), c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(t.Context(), store, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		sharer, ok := r.Sharer()
		if !ok {
			t.Fatal("the registry is not shared")
		}
		b := board{r, sharer}
		d := nodes.Open(nodes.Config{Board: b, Self: nodes.Node{Name: fmt.Sprintf("%016x", n+1), Version: "v1", Form: PeerForm}, Every: 50 * time.Millisecond})
		t.Cleanup(func() { _ = d.Close() })
		c.boards, c.known = append(c.boards, b), append(c.known, d)
	}
	for _, d := range c.known {
		eventually.Is(t, "the nodes know of each other", func() bool { return d.Nodes() == size })
	}
	return c
}

// start starts all nodes with nothing in hand. They wait for a slow database, which on a busy machine is not away. quotas returns what their queries
// count on.
func (c *cluster) start(t *testing.T, rate registry.Rate, quotas func(*Executor) Quotas) *fleet {
	t.Helper()
	f := &fleet{shop: &shop{nodes: len(c.boards)}}
	for n, b := range c.boards {
		f.add(t, b, rate, c.known[n].Nodes, time.Now)
		f.executors[n].Limits.Sharing.wait, f.executors[n].Limits.Sharing.timeout = time.Minute, time.Minute
		f.quotas[n] = quotas(f.executors[n])
	}
	return f
}

// spend sends queries to all nodes at the same time until each node refuses them.
func (f *fleet) spend(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for n := range f.executors {
		all.Go(func() {
			for f.admits(t, n) {
			}
		})
	}
	all.Wait()
}

// admittedAll compares how many queries were admitted with how many there are, of which up to a tenth may be missing, or more.
func (f *fleet) admittedAll(t *testing.T, when string, want int) {
	t.Helper()
	if got := int(f.admitted.Load()); 10*got < 9*want || 10*got > 11*want {
		t.Errorf("%s: %d queries were admitted, the rate allows %d", when, got, want)
	} else {
		t.Logf("%s: %d of %d", when, got, want)
	}
}

// TestRatesOverPostgres: eight nodes on one database together admit what the rate of a key, an endpoint and a token allows: after spent queries have
// come back by the database's clock, while the database is away, and afterwards. The period is so long that no query comes back while the test runs.
func TestRatesOverPostgres(t *testing.T) {
	const size = 8
	rate := per(1600, 1000*time.Hour)
	kinds := map[string]func(name string) func(*Executor) Quotas{
		"a key": func(name string) func(*Executor) Quotas {
			return func(e *Executor) Quotas {
				return (&Caller{Key: &registry.Key{ID: name}}).quotas(e.Limits)
			}
		},
		"an endpoint": func(name string) func(*Executor) Quotas {
			return func(e *Executor) Quotas {
				x := &Computation{exec: e, query: &Query{Endpoint: &registry.Endpoint{ID: name, Name: name, RateLimit: rate}}}
				return x.quotas()
			}
		},
		"a token": func(name string) func(*Executor) Quotas {
			return func(e *Executor) Quotas {
				return (&Caller{Share: e.Limits.Sharing.NewShare(name, rate)}).quotas(e.Limits)
			}
		},
	}
	c := newCluster(t, size)
	conn, err := pgx.Connect(t.Context(), c.dsn)
	if err != nil {
		t.Fatal(err)
	}
	for kind, of := range kinds {
		f := c.start(t, rate, of("first"))
		if got := len(f.quotas[0]); got != 1 {
			t.Fatalf("%s counts on %d allowances", kind, got)
		}
		f.spend(t)
		f.admittedAll(t, kind, rate.Queries)
		if _, err := conn.Exec(t.Context(), `UPDATE analytics_allowances SET whole = whole - $1`, int64(rate.Per/4)); err != nil {
			t.Fatal(err)
		}
		f = c.start(t, rate, of("first"))
		f.spend(t)
		f.admittedAll(t, kind+", a quarter of the period later", rate.Queries/4)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}

	if err := c.server.Stop(); err != nil {
		t.Fatal(err)
	}
	away := map[string]*fleet{}
	for kind, of := range kinds {
		f := c.start(t, rate, of("second"))
		f.spend(t)
		f.admittedAll(t, kind+", while the database is away", rate.Queries)
		away[kind] = f
	}
	if err := c.server.Run(); err != nil {
		t.Fatal(err)
	}
	for kind, f := range away {
		for n, e := range f.executors {
			eventually.Is(t, fmt.Sprintf("node %d finds that the database is back", n), func() bool {
				f.one(t, n)
				return !e.Limits.Sharing.away.Load()
			})
		}
		f.spend(t)
		f.admittedAll(t, kind+", after that", rate.Queries)
	}
}
