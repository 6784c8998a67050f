// Package hostile runs a hostile key next to a well-behaved one. Its times are only meaningful on an otherwise idle machine.
package hostile_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	// rounds is how many times the good key is measured alone and then next to the hostile one. The median counts, so that other activity of
	// the machine is not attributed to the hostile key.
	rounds = 5
	// hostileTime is how long the hostile key attacks in all. HOSTILE_TIME overrides it.
	hostileTime = 2 * time.Minute
	// aloneTime is how long the good key is measured alone in all.
	aloneTime = 30 * time.Second
	// calmTime is how long the good key works before it is measured alone: for one-time work, and for what the hostile key left behind.
	calmTime = 5 * time.Second
	// hostileClients is the number of concurrent requests of the hostile key.
	hostileClients = 8
	// maxSlowdown limits the good key's times next to the hostile key, as a multiple of its times alone.
	maxSlowdown = 3
	// minAlone is the shortest time used for a ratio, one tick of Linux's scheduler. If all cores are busy,
	// the client and the server each wait for a tick now and then, however fast they are alone, so the 99th percentile of
	// responses that take 1 ms alone was between 2.7 and 6 times that on two cores.
	minAlone = 4 * time.Millisecond
	// maxGrowth limits the memory of the server's process, in bytes above idle.
	maxGrowth = 512 << 20
	// engineShare is the part of the machine's memory that the engine may use: one half.
	engineShare = 2
)

// TestHostileKey runs a key that does everything to harm the service next to a key of another project that does ordinary
// work. The ordinary work must neither fail nor become much slower, memory must stay limited, and nothing may restart.
func TestHostileKey(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	server := harness.Start(t, "limits {", "max_execution_time 10s", "max_memory 1GiB", "}")
	good := newGoodKey(t, server)
	hostile := newHostileKey(t, server)
	child := server.Engine(t)

	attacks := timeFromEnv(t, "HOSTILE_TIME", hostileTime)
	good.work(t, calmTime)
	idle, err := server.Rest()
	if err != nil {
		t.Fatal(err)
	}
	var cached, uncached []slowdown
	for n := range rounds {
		good.work(t, calmTime)
		alone := good.work(t, aloneTime/rounds)
		stop := hostile.start(t)
		beside := good.work(t, attacks/rounds)
		stop()
		t.Logf("round %d, alone:  %s", n+1, alone)
		t.Logf("round %d, beside: %s", n+1, beside)
		cached = append(cached, slowdown{alone.cached.percentile(99), beside.cached.percentile(99)})
		uncached = append(uncached, slowdown{alone.uncached.percentile(50), beside.uncached.percentile(50)})
	}
	peak, err := server.Peak()
	if err != nil {
		t.Fatal(err)
	}

	t.Logf("memory above idle: server %d MiB, engine %d MiB (peak %d MiB)", (peak.Server-idle.Server)>>20, (peak.Engine-idle.Engine)>>20, peak.Engine>>20)
	t.Logf("hostile answers: %s", hostile.answers())
	if n := hostile.total(); n < 100 {
		t.Errorf("only %d hostile requests were answered, too few for a result", n)
	}
	compare(t, "the 99th percentile of cached answers", cached)
	compare(t, "the median of uncached answers", uncached)
	if grown := peak.Server - idle.Server; grown > maxGrowth {
		t.Errorf("the server grew by %d MiB", grown>>20)
	}
	if limit := machineMemory(t) / engineShare; peak.Engine > limit {
		t.Errorf("the engine grew to %d MiB; its limit is %d MiB", peak.Engine>>20, limit>>20)
	}
	if server.Engine(t) != child {
		t.Error("the engine was restarted")
	}
}

// slowdown is a duration for the good key alone, and next to the hostile one.
type slowdown struct{ alone, beside time.Duration }

// ratio returns the duration next to the hostile key as a multiple of the duration alone.
func (s slowdown) ratio() float64 { return float64(s.beside) / float64(max(s.alone, minAlone)) }

// compare fails the test if something became much slower in most rounds.
func compare(t *testing.T, what string, of []slowdown) {
	t.Helper()
	slices.SortFunc(of, func(a, b slowdown) int { return cmp.Compare(a.ratio(), b.ratio()) })
	middle := of[len(of)/2]
	t.Logf("%s: from %s to %s in the median of %d rounds", what, middle.alone, middle.beside, len(of))
	if middle.ratio() > maxSlowdown {
		t.Errorf("%s went from %s to %s", what, middle.alone, middle.beside)
	}
}

func timeFromEnv(t *testing.T, name string, def time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// machineMemory returns the memory of this machine in bytes.
func machineMemory(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	if _, err := fmt.Sscanf(string(raw), "MemTotal: %d kB", &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// times are the durations of requests.
type times []time.Duration

// percentile returns the p-th percentile.
func (ts times) percentile(p int) time.Duration {
	if len(ts) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ts))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// measured has the times of the good key's requests.
type measured struct{ cached, uncached times }

func (m measured) String() string {
	return fmt.Sprintf("%d cached answers, median %s, 99th percentile %s; %d uncached answers, median %s, 99th percentile %s",
		len(m.cached), m.cached.percentile(50), m.cached.percentile(99),
		len(m.uncached), m.uncached.percentile(50), m.uncached.percentile(99))
}

// newEvents creates a project with some events, and returns its number.
func newEvents(t *testing.T, server *harness.Server, name string) int64 {
	t.Helper()
	id, _ := server.Project(t, name)
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, `{"event":"e%d","distinct_id":"%s%d","timestamp":"2024-01-%02dT00:00:00Z","properties":{"n":%d,"s":"%s"}}`+"\n",
			i%5, name, i%500, i%28+1, i, strings.Repeat("x", i%50))
	}
	server.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	return id
}

// goodKey does ordinary work: cached runs of an endpoint, and uncached queries.
type goodKey struct {
	client  *harness.Client
	queries atomic.Int64
}

func newGoodKey(t *testing.T, server *harness.Server) *goodKey {
	t.Helper()
	id := newEvents(t, server, "good")
	good := &goodKey{client: server.Client(id, server.Key(t, id, harness.AllScopes, "personal"))}
	answer := good.client.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "daily", "data_freshness_seconds": 86400,
		"query": map[string]any{"kind": "HogQLQuery", "query": "select toDate(timestamp) as day, count() as n from events group by day order by day"},
	})
	if answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	return good
}

// work sends requests for d. A response other than 200 fails the test.
func (g *goodKey) work(t *testing.T, d time.Duration) (m measured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		m.cached = g.repeat(ctx, t, 20*time.Millisecond, "endpoints/daily/run", func() any { return map[string]any{} })
	})
	both.Go(func() {
		m.uncached = g.repeat(ctx, t, 500*time.Millisecond, "query/", func() any {
			text := fmt.Sprintf("select event, count(), uniq(person_id) from events where properties.n != '%d' group by event order by event", g.queries.Add(1))
			return map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": text}}
		})
	})
	both.Wait()
	return m
}

// repeat sends a request at every tick, and returns the times of the responses.
func (g *goodKey) repeat(ctx context.Context, t *testing.T, every time.Duration, path string, body func() any) (ts times) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return ts
		case <-tick.C:
		}
		began := time.Now()
		answer, err := g.client.Send(http.MethodPost, path, body())
		ts = append(ts, time.Since(began))
		if err != nil || answer.Status != http.StatusOK {
			if failed++; failed <= 3 {
				t.Errorf("the good key's request of %s after %s: %v: %d %s", path, time.Since(began), err, answer.Status, answer.Raw)
			}
		}
	}
}

// hostileKey attacks other projects with a key of its own project.
type hostileKey struct {
	client  *harness.Client
	address string // of the site
	attacks []func(context.Context)
	turn    atomic.Int64

	mu       sync.Mutex
	statuses map[string]int
}

func newHostileKey(t *testing.T, server *harness.Server) *hostileKey {
	t.Helper()
	id := newEvents(t, server, "hostile")
	key := server.Key(t, id, "query:read,endpoint:read,endpoint:write,insight:read,insight:write", "personal")
	h := &hostileKey{client: server.Client(id, key), address: strings.TrimPrefix(server.URL, "http://"), statuses: map[string]int{}}
	for _, query := range hostileQueries(t) {
		body := map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": query}}
		h.attacks = append(h.attacks, func(ctx context.Context) { h.send(ctx, "query/", body) })
	}
	for i, query := range []string{
		"select (select count() from numbers(1000000000000)) as n",
		"select * from (select *, (select uniqExact(number) from numbers(10000000000)) as n from events)",
	} {
		h.attacks = append(h.attacks, func(ctx context.Context) {
			h.send(ctx, "endpoints/", map[string]any{
				"name": fmt.Sprintf("hostile_%d_%d", i, h.turn.Load()), "query": map[string]any{"kind": "HogQLQuery", "query": query},
			})
		})
	}
	h.attacks = append(h.attacks, h.halfABody)
	return h
}

// hostileQueries returns the queries in compiler/testdata/hostile, and others that are hard on the engine.
func hostileQueries(t *testing.T) []string {
	t.Helper()
	queries := []string{
		"select count() from numbers(1000000000000)",
		"select count() from events a cross join events b cross join events c",
		"select uniqExact(number) from numbers(100000000000)",
		"select repeat('x', 1000000000)",
		"select arrayMap(x -> repeat('x', 1000000), range(1000))",
		"select groupArray(repeat('x', 1000000)) from numbers(10000)",
		"select repeat(toString(number), 100000) from numbers(50000) limit 50000",
		"select length(arrayFold((a, x) -> arrayPushBack(a, x), range(1000000), emptyArrayUInt64()))",
		"select arrayFold((a, x) -> (a * 31 + x) % 1000003, range(100000000), 0)",
		"select count() from numbers(100000000) where match(toString(number), '(0|1|2|3)*(4|5|6)*(7|8|9)*x')",
		"select number, count() from numbers(10000000000) group by number order by number limit 10",
		"select toTimeZone(now(), 'file:/dev/zero')",
		"select toTimeZone(now(), concat('Fixed/UTC+', toString(number % 10), ':00:00')) from numbers(10)",
		"select multiMatchAny('x', ['a{1,30000}'])",
		"select JSONExtract('{}', 'a', 'DateTime(\\'file:/dev/zero\\')')",
		"select max(cityHash64(concat(repeat('x', 1000000), toString(number)))) from numbers(100000000)",
		"select arraySort(x -> cityHash64(x), range(50000000))",
		"select countSubstrings(repeat('a', 100000), concat(repeat('a', 50000), 'b'))", // goes on for seconds after it is stopped
		"select number as a, a + 1 as b from numbers(10000000000) order by b desc limit 10",
	}
	files, err := filepath.Glob("../../../compiler/testdata/hostile/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no hostile queries: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, string(raw))
	}
	return queries
}

// start starts the attacks; stop ends them and waits for the last one.
func (h *hostileKey) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range hostileClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				n := h.turn.Add(1)
				h.attacks[int(n)%len(h.attacks)](ctx)
			}
		})
	}
	return func() {
		cancel()
		clients.Wait()
	}
}

// send sends one request. Every fourth client hangs up before the response can arrive.
func (h *hostileKey) send(ctx context.Context, path string, body any) {
	if h.turn.Load()%4 == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	url := fmt.Sprintf("http://%s/api/projects/%d/%s", h.address, h.client.Project, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(raw)))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.client.Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.count("no answer")
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // errors do not matter
	h.count(fmt.Sprint(resp.StatusCode))
	if resp.StatusCode == http.StatusTooManyRequests { // wait a little, or all requests would be refused
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// halfABody opens a connection, sends the beginning of a request, and waits.
func (h *hostileKey) halfABody(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.address)
	if err != nil {
		h.count("no connection")
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "POST /api/projects/%d/query/ HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{",
		h.client.Project, h.address, h.client.Key)
	<-ctx.Done()
}

func (h *hostileKey) count(status string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses[status]++
}

// total returns the number of requests with a response.
func (h *hostileKey) total() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for status, count := range h.statuses {
		if !strings.HasPrefix(status, "no ") {
			n += count
		}
	}
	return n
}

// answers returns the count of each status.
func (h *hostileKey) answers() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for status, n := range h.statuses {
		list = append(list, fmt.Sprintf("%s × %d", status, n))
	}
	slices.SortFunc(list, cmp.Compare[string])
	return strings.Join(list, ", ")
}
