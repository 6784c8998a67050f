package faults_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestClickHouseHosts makes one of two ClickHouse hosts fail in all ways while queries run: callers get their rows, and captured events arrive
// once.
func TestClickHouseHosts(t *testing.T) {
	engine := embeddedtest.New(t)
	both, relays := harness.Relays(t, engine.DSN(), 2) // two names of one server
	server, c := start(t, "clickhouse "+both)
	token, err := server.CaptureToken(c.Project)
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	var stopped atomic.Bool
	var slowest atomic.Int64
	var answers atomic.Int64
	for caller := range 4 {
		asking.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				began := time.Now()
				answer, err := c.Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{
					"kind": "HogQLQuery", "query": fmt.Sprintf("select %d, least(count(), 100) from events", n*10+caller),
				}})
				if err != nil {
					t.Errorf("asking: %v", err)
					return
				}
				if want := fmt.Sprintf("[[%d 100]]", n*10+caller); answer.Status != http.StatusOK || fmt.Sprint(answer.Body["results"]) != want {
					t.Errorf("got %d %s, want the rows %s", answer.Status, answer.Raw, want)
					return
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				answers.Add(1)
			}
		})
	}
	sent := 0
	for _, fault := range []harness.Fault{harness.Refuses, harness.Resets, harness.Silent, harness.Mute} {
		relays[0].Set(fault)
		for range 3 {
			sent++
			body := fmt.Sprintf(`{"api_key":%q,"event":"during","distinct_id":"p%d"}`, token, sent)
			answer, err := http.Post(server.URL+"/i/v0/e/", "application/json", strings.NewReader(body))
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("capturing: %v", err)
			}
			_ = answer.Body.Close() // only the status matters
			<-time.After(500 * time.Millisecond)
		}
		relays[0].Set(harness.Works)
		harness.Eventually(t, time.Minute, func() error {
			if up := hostMetric(t, server, relays[0].Address()); up != 1 {
				return fmt.Errorf("the host is not taken back: %v", up)
			}
			return nil
		})
	}
	stopped.Store(true)
	asking.Wait()
	t.Logf("%d answers, the slowest took %s", answers.Load(), time.Duration(slowest.Load()).Round(time.Millisecond))
	if took := time.Duration(slowest.Load()); took > time.Minute { // one that waits for a silent host takes 90 s
		t.Errorf("the slowest answer took %s", took)
	}
	if moved := metric(t, server, "clickhouse_moved_queries_total"); moved == 0 {
		t.Error("no query was moved, so nothing was tested")
	}
	c.Shows(t, "select count(), count(distinct uuid) from events where event = 'during'", []any{float64(sent), float64(sent)})
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	if log := server.Log(); strings.Contains(log, dsn.User.String()) {
		t.Error("the log has the password")
	}
}

func hostMetric(t *testing.T, server *harness.Server, host string) float64 {
	t.Helper()
	return metric(t, server, regexp.QuoteMeta(fmt.Sprintf("clickhouse_host_reachable{host=%q}", host)))
}

// TestSettledPastOnHosts: buckets are kept while the first of two hosts answers. When another host takes over, the answer is right, and uses no buckets
// kept from the first.
func TestSettledPastOnHosts(t *testing.T) {
	both, relays := harness.Relays(t, embeddedtest.New(t).DSN(), 2)
	server, c := start(t, "clickhouse "+both)
	asked := 0
	ask := func() (status string) {
		t.Helper()
		asked++
		line := fmt.Sprintf(`{"event":"late","distinct_id":"p%d","timestamp":"2024-03-05T10:00:00Z"}`, asked)
		server.MustCommand(t, nil, strings.NewReader(line+"\n"), "import", "--project", fmt.Sprint(c.Project), "-")
		answer := c.Do(t, http.MethodPost, "query/", map[string]any{"refresh": "blocking", "query": map[string]any{
			"kind": "TrendsQuery", "interval": "day", "dateRange": map[string]any{"date_from": "2024-03-01", "date_to": "2024-03-10"},
			"series": []any{map[string]any{"kind": "EventsNode", "event": "late"}}, "trendsFilter": map[string]any{"decimalPlaces": asked},
		}})
		if answer.Status != http.StatusOK {
			t.Fatalf("a trend: %d %s", answer.Status, answer.Raw)
		}
		rows, _ := answer.Body["results"].([]any)
		if len(rows) != 1 {
			t.Fatalf("results %v", answer.Body["results"])
		}
		row, _ := rows[0].(map[string]any)
		if want := fmt.Sprintf("[0 0 0 0 %d 0 0 0 0 0]", asked); fmt.Sprint(row["data"]) != want {
			t.Errorf("question %d: got %v, want %s", asked, row["data"], want)
		}
		return answer.Header.Get("Cache-Status")
	}
	// known checks that on a host that was not used before everything is computed, and then only what is new.
	known := func() {
		t.Helper()
		const all, one = `caddy-analytics; fwd=miss; stored; detail="10 of 10 buckets computed"`, `caddy-analytics; fwd=partial; stored; detail="1 of 10 buckets computed"`
		got := ask()
		if got != all {
			t.Errorf("question %d: Cache-Status: %s, want %s", asked, got, all)
		}
		for range 5 { // on a busy machine, a host may seem to be away for a moment
			if got = ask(); got != all {
				break
			}
		}
		if got != one {
			t.Errorf("question %d: Cache-Status: %s, want %s", asked, got, one)
		}
	}
	known()
	relays[0].Set(harness.Refuses)
	harness.Eventually(t, time.Minute, func() error {
		if up := hostMetric(t, server, relays[0].Address()); up != 0 {
			return fmt.Errorf("the host is not left out: %v", up)
		}
		return nil
	})
	known()
	relays[0].Set(harness.Works)
	harness.Eventually(t, time.Minute, func() error {
		if up := hostMetric(t, server, relays[0].Address()); up != 1 {
			return fmt.Errorf("the host is not taken back: %v", up)
		}
		return nil
	})
	known()
}
