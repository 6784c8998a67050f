package clickhouse_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// lateAnswer is how late an answer may be after its host died, on a machine that also runs other tests.
const lateAnswer = 20 * time.Second

// relayed returns a DSN whose hosts are relays to addresses.
func relayed(t *testing.T, scheme, login, options string, addresses ...string) (dsn string, relays []*harness.Relay) {
	t.Helper()
	hosts := make([]string, len(addresses))
	for n, address := range addresses {
		relay, err := harness.NewRelay(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := relay.Close(); err != nil {
				t.Error(err)
			}
		})
		relays, hosts[n] = append(relays, relay), relay.Address()
	}
	return scheme + "://" + login + "@" + strings.Join(hosts, ",") + "/default" + options, relays
}

// engines starts a second engine beside the shared one, and returns the login of both and their addresses.
func engines(t *testing.T) (second *embedded.Engine, logins, addresses []string) {
	t.Helper()
	second = embeddedtest.New(t)
	for _, e := range []*embedded.Engine{engine, second} {
		u, err := url.Parse(e.DSN())
		if err != nil {
			t.Fatal(err)
		}
		logins, addresses = append(logins, u.User.String()), append(addresses, u.Host)
	}
	return second, logins, addresses
}

// awaitRunning waits until a statement with some text runs, so that it has surely been sent. It may be called in any goroutine.
func awaitRunning(t *testing.T, c *clickhouse.Client, text string) {
	t.Helper()
	sql := "SELECT 'it runs' FROM system.processes WHERE query LIKE '%" + text + "%' AND query NOT LIKE '%system.processes%'"
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var got rows
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: 1}, &got); err == nil && len(got.Texts) > 0 {
			return
		}
	}
	t.Errorf("nothing with %q runs", text)
}

// untilServerSays repeats a query that the client gave up before the server could say why it ended: on a busy machine, both happen at about the same time.
func untilServerSays(query func() error) (err error) {
	for range 5 {
		err = query()
		if got, ok := errors.AsType[*clickhouse.Error](err); !ok || got.Kind != clickhouse.Timeout || got.Code != 0 {
			break
		}
	}
	return err
}

// readers read from a client continuously, until stop.
type readers struct {
	group   sync.WaitGroup
	stopped atomic.Bool
	answers atomic.Int64
	slowest atomic.Int64
	mu      sync.Mutex
	wrong   []string
}

func (r *readers) run(t *testing.T, c *clickhouse.Client, n int) {
	t.Helper()
	for i := range n {
		r.group.Go(func() {
			for round := 0; !r.stopped.Load(); round++ {
				began := time.Now()
				want, sql := fmt.Sprintf(`[%d]`, round), fmt.Sprintf("SELECT %d", round)
				switch (i + round) % 3 {
				case 1: // takes a moment before its first row
					want, sql = fmt.Sprintf(`[%d]`, 2_000_000+round), fmt.Sprintf("SELECT count() + %d FROM numbers(2000000) WHERE NOT ignore(sipHash64(number))", round)
				case 2: // has more rows than are held back
					want, sql = "[29999]", "SELECT number FROM numbers(30000)"
				}
				var out restartable
				sink := clickhouse.Sink(&out)
				if (i+round)%3 != 2 {
					sink = &out.rows
				}
				_, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: 1}, sink)
				took := time.Since(began)
				if r.stopped.Load() && err != nil {
					return
				}
				if err != nil || out.Texts[len(out.Texts)-1] != want {
					r.note(fmt.Sprintf("%s: %d rows, %v (%v)", sql, len(out.Texts), err, errors.Unwrap(err)))
				}
				for slow := r.slowest.Load(); int64(took) > slow && !r.slowest.CompareAndSwap(slow, int64(took)); slow = r.slowest.Load() {
				}
				r.answers.Add(1)
			}
		})
	}
}

func (r *readers) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, text)
}

// restartable keeps rows, and can start over.
type restartable struct{ rows }

func (r *restartable) Restart() bool {
	r.Header, r.Texts = nil, nil
	return true
}

// during reads continuously while do does something to a host, and checks that no reader noticed.
func during(t *testing.T, c *clickhouse.Client, do func()) {
	t.Helper()
	var r readers
	r.run(t, c, 6)
	<-time.After(500 * time.Millisecond)
	do()
	<-time.After(1500 * time.Millisecond)
	r.stopped.Store(true)
	r.group.Wait()
	if len(r.wrong) > 0 {
		t.Errorf("%d reads failed, such as %s", len(r.wrong), r.wrong[0])
	}
	if slowest := time.Duration(r.slowest.Load()); slowest > lateAnswer {
		t.Errorf("the slowest of %d reads took %s", r.answers.Load(), slowest)
	}
	t.Logf("%d reads, the slowest took %s; %d were moved", r.answers.Load(), time.Duration(r.slowest.Load()).Round(time.Millisecond), c.Moved())
}

// awaitHosts waits until the hosts of a client are as wanted.
func awaitHosts(t *testing.T, c *clickhouse.Client, want ...bool) {
	t.Helper()
	harness.Eventually(t, patience, func() error {
		for n, h := range c.Hosts() {
			if h.Reachable != want[n] {
				return fmt.Errorf("hosts %+v, want %v", c.Hosts(), want)
			}
		}
		return nil
	})
}

// wake asks each host once, so that all are known.
func wake(t *testing.T, c *clickhouse.Client) {
	t.Helper()
	if err := c.AskAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Moved(); got != 0 {
		t.Fatalf("%d queries were moved", got)
	}
}

// TestHostDies kills, stops and cuts off a host under a load of reads: no reader gets an error or waits long. When the host is back, it is used
// again.
func TestHostDies(t *testing.T) {
	second, logins, addresses := engines(t)
	dsn, relays := relayed(t, "http", logins[1], "", addresses[1], addresses[0])
	relays[1].Rewrite(logins[1], logins[0]) // engines have passwords of their own
	c := openWith(t, clickhouse.Config{DSN: dsn, Concurrency: 10})
	wake(t, c)
	signal := func(s syscall.Signal) {
		embeddedtest.Signal(t, second, s)
	}
	t.Run("killed", func(t *testing.T) {
		during(t, c, func() { signal(syscall.SIGKILL) })
		awaitHosts(t, c, true, true)
	})
	t.Run("stopped", func(t *testing.T) {
		during(t, c, func() { signal(syscall.SIGSTOP) })
		awaitHosts(t, c, false, true)
		signal(syscall.SIGCONT)
		awaitHosts(t, c, true, true)
	})
	cutOff(t, c, relays[0], func() {})
}

// cutOff cuts off the first of two hosts in every way, under a load of reads, and calls back when the host is reachable again.
func cutOff(t *testing.T, c *clickhouse.Client, first *harness.Relay, back func()) {
	t.Helper()
	for _, tt := range []struct {
		name string
		how  harness.Fault
	}{{"refuses", harness.Refuses}, {"resets", harness.Resets}, {"is silent", harness.Silent}} {
		t.Run(tt.name, func(t *testing.T) {
			during(t, c, func() { first.Set(tt.how) })
			awaitHosts(t, c, false, true)
			first.Set(harness.Works)
			back()
			awaitHosts(t, c, true, true)
		})
	}
	if c.Moved() == 0 {
		t.Error("no query was moved, so nothing was tested")
	}
}

// TestNativeHostDies is TestHostDies over the native protocol.
func TestNativeHostDies(t *testing.T) {
	first, _ := oldServer(t)
	second, _ := oldServer(t)
	dsn, relays := relayed(t, "clickhouse", "default:secret", "", first, second)
	c := openWith(t, clickhouse.Config{DSN: dsn, Concurrency: 10})
	c.TakeAsItIs()
	wake(t, c)
	cutOff(t, c, relays[0], func() { c.TakeBack(0) }) // it is too old to come back by itself
}

// TestLongQueryStays: a query that takes longer than a host may be silent is not moved while the host answers pings.
func TestLongQueryStays(t *testing.T) {
	_, logins, addresses := engines(t)
	dsn, _ := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	c := openWith(t, clickhouse.Config{DSN: dsn})
	wake(t, c)
	for range 5 { // on a busy machine, a ping may be late
		before := c.Moved()
		if got := ask(t, c, 1, "SELECT sleep(2)"); len(got) != 1 {
			t.Errorf("rows %v", got)
		}
		awaitHosts(t, c, true, true)
		if c.Moved() == before {
			return
		}
	}
	t.Error("a long query is moved each time")
}

// TestNotRepeated: rows that were passed on are not sent again, and statements that write are not done twice.
func TestNotRepeated(t *testing.T) {
	_, logins, addresses := engines(t)
	dsn, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	c := openWith(t, clickhouse.Config{DSN: dsn, MaxResultRows: 1 << 40, MaxResultBytes: 1 << 50})
	wake(t, c)
	t.Run("rows", func(t *testing.T) {
		seen := 0
		_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT number FROM numbers(100000000)", Project: 1}, endless{func() error {
			if seen++; seen == 1_000_000 {
				relays[0].Set(harness.Resets)
			}
			return nil
		}})
		if kind := kindOf(err); kind != clickhouse.Unavailable {
			t.Errorf("after %d rows: %v", seen, err)
		}
		if c.Moved() != 0 {
			t.Error("the query was moved")
		}
		relays[0].Set(harness.Works)
		awaitHosts(t, c, true, true)
	})
	t.Run("a statement that was not sent", func(t *testing.T) {
		relays[0].Set(harness.Refuses)
		c := openWith(t, clickhouse.Config{DSN: dsn}) // a new client: on an open connection, the statement might have been sent
		if err := c.Exec(t.Context(), "CREATE TABLE moved (n UInt8) ENGINE = Memory"); err != nil {
			t.Error(err)
		}
		if c.Moved() != 1 {
			t.Errorf("%d statements were moved", c.Moved())
		}
		relays[0].Set(harness.Works)
	})
	awaitHosts(t, c, true, true)
	t.Run("a statement that may have been sent", func(t *testing.T) {
		began := c.Moved()
		direct := openWith(t, clickhouse.Config{DSN: engine.DSN()})
		go func() {
			awaitRunning(t, direct, "INSERT INTO moved")
			relays[0].Set(harness.Silent)
		}()
		err := c.Exec(t.Context(), "INSERT INTO moved SELECT sleep(3)")
		if kind := kindOf(clickhouse.Classify(err)); kind != clickhouse.Unavailable {
			t.Errorf("got %v", err)
		}
		if c.Moved() != began {
			t.Error("the statement was moved")
		}
		relays[0].Set(harness.Works)
		awaitHosts(t, c, true, true)
	})
}

// TestSpread: reads go to the first host that answers, unless the DSN says otherwise and the query allows it.
func TestSpread(t *testing.T) {
	_, logins, addresses := engines(t)
	for _, tt := range []struct {
		options string
		spread  bool
		want    []bool // which hosts get queries
	}{
		{"", true, []bool{true, false}},
		{"?connection_open_strategy=round_robin", false, []bool{true, false}},
		{"?connection_open_strategy=round_robin", true, []bool{true, true}},
		{"?connection_open_strategy=random", true, []bool{true, true}},
	} {
		t.Run(fmt.Sprint(tt.options, tt.spread), func(t *testing.T) {
			dsn, relays := relayed(t, "http", logins[0], tt.options, addresses[0], addresses[0])
			c := openWith(t, clickhouse.Config{DSN: dsn})
			for range 32 {
				if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1, Spread: tt.spread}, &rows{}); err != nil {
					t.Fatal(err)
				}
			}
			got := []bool{relays[0].Dialed() > 0, relays[1].Dialed() > 0}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("hosts that were asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFirst: the host that a query names is asked first while it answers, and the caller learns when another one answered.
func TestFirst(t *testing.T) {
	_, logins, addresses := engines(t)
	dsn, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	c := openWith(t, clickhouse.Config{DSN: dsn})
	wake(t, c)
	first := c.Front()
	if first.String() != relays[0].Address() {
		t.Fatalf("the front is %s", first)
	}
	elsewhere := func(first clickhouse.Host) bool {
		t.Helper()
		stats, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1, Spread: true, First: first}, &rows{})
		if err != nil {
			t.Fatal(err)
		}
		return stats.Elsewhere
	}
	if elsewhere(first) || elsewhere(clickhouse.Host{}) {
		t.Error("a host that answers is passed over")
	}
	relays[0].Set(harness.Refuses)
	if !elsewhere(first) {
		t.Error("a host that is away has answered")
	}
	second := c.Front()
	if second.String() != relays[1].Address() || elsewhere(second) || elsewhere(clickhouse.Host{}) {
		t.Errorf("the front is %s, or another host has answered", second)
	}
	relays[0].Set(harness.Works)
	awaitHosts(t, c, true, true)
	if c.Front() != first || elsewhere(second) {
		t.Errorf("the front is %s, or a host that answers is passed over", c.Front())
	}
	if dsn, _ := relayed(t, "http", logins[0], "?connection_open_strategy=round_robin", addresses[0], addresses[0]); openWith(t, clickhouse.Config{DSN: dsn}).Front() != (clickhouse.Host{}) {
		t.Error("queries that are spread have a front")
	}
}

// TestLookAround: the state of a host without queries is known.
func TestLookAround(t *testing.T) {
	_, logins, addresses := engines(t)
	dsn, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	c := openWith(t, clickhouse.Config{DSN: dsn})
	ask(t, c, 1, "SELECT 1")
	awaitHosts(t, c, true, false)
	c.LookAround(t.Context())
	awaitHosts(t, c, true, true)
	for _, fault := range []harness.Fault{harness.Refuses, harness.Silent} {
		relays[1].Set(fault)
		c.LookAround(t.Context())
		awaitHosts(t, c, true, false)
		relays[1].Set(harness.Works)
		awaitHosts(t, c, true, true)
	}
}

// TestHostsAllAway: if all hosts are away, the error says so, and names each host once, without the password.
func TestHostsAllAway(t *testing.T) {
	c, logs := watched(t, clickhouse.Config{DSN: "http://default:" + secret + "@" + closedPort(t) + "," + closedPort(t)})
	for range 3 {
		_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
		if kindOf(err) != clickhouse.Unavailable {
			t.Errorf("got %v", err)
		}
	}
	harness.Eventually(t, patience, func() error {
		if lines := atLeastInfo(logs); len(lines) < 2 {
			return fmt.Errorf("the log says %q", lines)
		}
		return nil
	})
	if up, reason := c.Reachable(); up || !strings.Contains(reason, "refused") {
		t.Errorf("reachable %t, because %q", up, reason)
	}
	for _, line := range atLeastInfo(logs) {
		if strings.Contains(line, secret) {
			t.Errorf("the log contains the password: %s", line)
		}
	}
	for _, h := range c.Hosts() {
		if h.Reachable || strings.Contains(h.Address, secret) || strings.Contains(h.Address, "default") {
			t.Errorf("host %+v", h)
		}
	}
}

// TestExportMoves: a file of which nothing has been written yet comes from another host.
func TestExportMoves(t *testing.T) {
	_, logins, addresses := engines(t)
	dsn, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	c := openWith(t, clickhouse.Config{DSN: dsn})
	wake(t, c)
	direct := openWith(t, clickhouse.Config{DSN: engine.DSN()})
	go func() {
		awaitRunning(t, direct, "exported")
		relays[0].Set(harness.Silent)
	}()
	if _, err := c.Export(t.Context(), clickhouse.Query{SQL: "SELECT sleep(3) AS exported", Project: 1}, clickhouse.Parquet, io.Discard); err != nil {
		t.Error(err)
	}
	if c.Moved() != 1 {
		t.Errorf("%d queries were moved", c.Moved())
	}
}
