package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestRateCountsWork: cached answers do not count, executed queries do.
func TestRateCountsWork(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 3/h\n\t\t}")
	id, key := s.Project(t, "rate")
	c := s.Client(id, key)
	for i := range 10 {
		want := " "
		if i == 0 {
			want = `"key";q=3;w=3600 "key";r=2;t`
		}
		if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusOK || quotas(answer) != want {
			t.Fatalf("answer %d: %d %s %s", i+1, answer.Status, quotas(answer), answer.Raw)
		}
	}
	statuses := []int{}
	var last harness.Answer
	for i := range 3 {
		last = c.HogQL(t, fmt.Sprintf("select %d", 10+i))
		statuses = append(statuses, last.Status)
	}
	if got := fmt.Sprint(statuses); got != "[200 200 429]" {
		t.Errorf("three more queries answer %s", got)
	}
	detail, _ := last.Body["detail"].(string)
	if last.Header.Get("Retry-After") == "" || last.Body["code"] != "throttled" || !strings.HasPrefix(detail, "Request was throttled. Expected available in ") {
		t.Errorf("429 with Retry-After %q: %s", last.Header.Get("Retry-After"), last.Raw)
	}
	if answer := s.Client(id, s.Key(t, id, harness.AllScopes, "personal")).HogQL(t, "select 20"); answer.Status != http.StatusOK {
		t.Errorf("another key of the project: %d %s", answer.Status, answer.Raw)
	}
}

// untilMore matches the times in the RateLimit header.
var untilMore = regexp.MustCompile(`;t=[1-9][0-9]*`)

// quotas returns the headers with a caller's quotas, without the times.
func quotas(answer harness.Answer) string {
	return answer.Header.Get("RateLimit-Policy") + " " + untilMore.ReplaceAllString(answer.Header.Get("RateLimit"), ";t")
}

// TestEndpointRate: all runs of an endpoint share a rate, whoever sends them and in whatever form. It survives a reload, changes with the record, and does
// not count against the keys of runs that it refuses.
func TestEndpointRate(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\tendpoint_rate 2/h\n\t\t\trate 10/h\n\t\t}")
	id, first := s.Project(t, "rates")
	c, other := s.Client(id, first), s.Client(id, s.Key(t, id, "endpoint:read", "secret"))
	publish(t, c, "busy", "select count() from numbers(3)")
	publish(t, c, "calm", "select 1")
	run := func(c *harness.Client, path string) (got, retryAfter string) {
		t.Helper()
		answer := c.Do(t, http.MethodPost, "endpoints/"+path, map[string]string{"refresh": "force"})
		return fmt.Sprint(answer.Status, " ", quotas(answer)), answer.Header.Get("Retry-After")
	}
	const policy = `"endpoint";q=2;w=3600;pk=:YnVzeQ==:, "key";q=10;w=3600`
	expect := func(what string, c *harness.Client, path, want string) {
		t.Helper()
		got, retryAfter := run(c, path)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if seconds, _ := strconv.Atoi(retryAfter); strings.HasPrefix(want, "429") != (seconds > 1000 && seconds <= 1800) {
			t.Errorf("%s: retry after %q", what, retryAfter)
		}
	}
	// Publishing has counted towards the key's rate, twice.
	expect("one key", c, "busy/run", "200 "+policy+` "endpoint";r=1;t;pk=:YnVzeQ==:, "key";r=7;t`)
	expect("another, a file", other, "busy/run.csv", "200 "+policy+` "endpoint";r=0;t;pk=:YnVzeQ==:, "key";r=9;t`)
	refused := func(when string) {
		t.Helper()
		for _, path := range []string{"busy/run", "busy/run.csv"} {
			expect(when+", "+path, other, path, "429 "+policy+` "endpoint";r=0;t;pk=:YnVzeQ==:, "key";r=9;t`)
		}
	}
	refused("beyond the rate")
	if got, _ := run(c, "calm/run"); !strings.HasPrefix(got, "200 ") {
		t.Errorf("another endpoint: %s", got)
	}
	if answer := other.Do(t, http.MethodPost, "endpoints/busy/run", nil); answer.Status != http.StatusOK || answer.Body["is_cached"] != true || quotas(answer) != " " {
		t.Errorf("a cached run: %d %s %s", answer.Status, quotas(answer), answer.Raw)
	}

	text, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Caddyfile(), append(text, "\n# changed\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	refused("after a reload")
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/busy/", map[string]any{"tags": []string{"a"}})
	refused("after another change of the record")

	for _, change := range []struct {
		method string
		rate   any
		policy string
	}{{http.MethodPatch, "5/m", "q=5;w=60"}, {http.MethodPut, "7/s", "q=7;w=1"}, {http.MethodPatch, nil, "q=2;w=3600"}} {
		record := must(t, c, http.StatusOK, change.method, "endpoints/busy/", map[string]any{"rate_limit": change.rate})
		if got, _ := run(c, "busy/run"); record["rate_limit"] != change.rate || !strings.HasPrefix(got, `200 "endpoint";`+change.policy+";") {
			t.Errorf("with the rate %v: %v %s", change.rate, record["rate_limit"], got)
		}
	}
}

// TestCountedTogether: among many concurrent runs, each uses one unit of the rate, and a run that shares a query uses none.
func TestCountedTogether(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\tendpoint_rate 40/h\n\t\t}")
	id, key := s.Project(t, "together")
	c := s.Client(id, key)
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "n", "type": "Number", "default_value": 0})
	publish(t, c, "many", "select {variables.n}, count() from numbers(1000000)")
	var mu sync.Mutex
	counted, least := 0, 40
	var wait sync.WaitGroup
	for i := range 48 {
		wait.Go(func() { // each query is sent twice at about the same time
			answer, err := c.Send(http.MethodPost, "endpoints/many/run", map[string]any{"variables": map[string]int{"n": i / 2}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || answer.Status != http.StatusOK {
				t.Errorf("a run: %v: %d %s", err, answer.Status, answer.Raw)
				return
			}
			if found := regexp.MustCompile(`"endpoint";r=(\d+);`).FindStringSubmatch(answer.Header.Get("RateLimit")); found != nil {
				left, _ := strconv.Atoi(found[1])
				counted, least = counted+1, min(least, left)
			}
		})
	}
	wait.Wait()
	if counted != 24 || least != 40-24 {
		t.Errorf("%d runs were counted, %d are left", counted, least)
	}
}

// TestQueueOfAProject fills a project's queue with background runs and one waiting caller. Further queries are refused at once, in each form; a caller that
// leaves makes room; other projects are not affected; and everything that waited gets its turn.
func TestQueueOfAProject(t *testing.T) {
	c := runsServer(t)
	waiting := func(want int) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := samples(t, c.Server)[fmt.Sprintf(`caddy_analytics_queries_waiting{project="%d"}`, c.Project)]; got != strconv.Itoa(want) {
				return fmt.Errorf("%s queries wait, want %d", got, want)
			}
			return nil
		})
	}
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "n", "type": "Number", "default_value": 0})
	publish(t, c, "numbers", "select {variables.n} as n")
	begin(t, c, "long", fmt.Sprintf(endless, 0))
	poll(t, c, "long", pickedUp)
	for i := range 7 {
		begin(t, c, fmt.Sprint("queued", i), fmt.Sprintf("select %d", i))
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/api/projects/%d/endpoints/numbers/run", c.Server.URL, c.Project),
			strings.NewReader(`{"variables": {"n": 1}}`))
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+c.Key)
			r.Header.Set("Content-Type", "application/json")
			var answer *http.Response
			if answer, err = http.DefaultClient.Do(r); err == nil {
				err = fmt.Errorf("answered %s", answer.Status)
				_ = answer.Body.Close()
			}
		}
		left <- err
	}()
	waiting(8)

	const full = "Exceeded maximum concurrency limit: 1 for key: project_%d and task: query. Too many concurrent requests. Please try again later."
	refused := func() {
		t.Helper()
		for path, body := range map[string]string{
			"endpoints/numbers/run": `{"variables": {"n": 2}}`, "endpoints/numbers/run.csv": `{"variables": {"n": 2}}`,
			"query/": `{"query": {"kind": "HogQLQuery", "query": "select 99"}, "refresh": "async"}`,
		} {
			began := time.Now()
			answer := c.Do(t, http.MethodPost, path, body)
			if answer.Status != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "1" || answer.Body["detail"] != fmt.Sprintf(full, c.Project) {
				t.Errorf("%s with a full queue: %d, retry after %s: %s", path, answer.Status, answer.Header.Get("Retry-After"), answer.Raw)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s took %s to be refused", path, took)
			}
		}
	}
	refused()
	leave() // soon: the server lets a caller wait for half a minute
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that waited: %v", err)
	}
	waiting(7)
	begin(t, c, "queued7", "select 7")
	waiting(8)
	for range 2 { // the second runs while two are full
		id, key := c.Server.Project(t, "beside")
		beside := c.Server.Client(id, key)
		if rows := beside.Query(t, "select 1"); len(rows) != 1 {
			t.Errorf("another project: %v", rows)
		}
		begin(t, beside, "long", fmt.Sprintf(endless, 0))
		poll(t, beside, "long", pickedUp)
	}
	refused()
	c.Do(t, http.MethodDelete, "query/long/", nil)
	for i := range 8 {
		if answer := poll(t, c, fmt.Sprint("queued", i), complete); answer.Status != http.StatusOK {
			t.Errorf("queued%d: %d %s", i, answer.Status, answer.Raw)
		}
	}
	waiting(0)
}

// TestResultBounds: a result too large for the cache is refused with the bound, and one with too many rows is cut.
func TestResultBounds(t *testing.T) {
	c := newProject(t)
	const detail = "The result is too large: it may take 64 MiB and have 1000000 rows, and one row may take 32 MiB. Ask for fewer rows or columns."
	publish(t, c, "large", "select number, repeat('x', 1000000) from numbers(100) limit 100")
	large := c.Do(t, http.MethodPost, "endpoints/large/run", nil)
	if large.Status != http.StatusBadRequest || large.Body["code"] != "query_too_large" || large.Body["detail"] != detail {
		t.Errorf("100 MB: %d %.300s", large.Status, large.Raw)
	}
	publish(t, c, "many", "select number from numbers(60000) limit 60000")
	many := c.Do(t, http.MethodPost, "endpoints/many/run", map[string]int{"limit": 60000})
	if rows, _ := many.Body["results"].([]any); len(rows) != 50000 || many.Body["hasMore"] != true {
		t.Errorf("%d of 60000 rows, hasMore %v", len(rows), many.Body["hasMore"])
	}
}

// TestHerd sends the same uncached run many times concurrently: ClickHouse is queried once.
func TestHerd(t *testing.T) {
	c := newProject(t)
	importLines(t, c, threeLines)
	answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "herd", "query": map[string]any{"kind": "HogQLQuery", "query": "select count(), max(sleepless) from (select cityHash64(number) as sleepless from numbers(5000000))"},
	})
	if answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	var mu sync.Mutex
	executions := map[any]int{}
	var wait sync.WaitGroup
	for range 256 {
		wait.Go(func() {
			answer, err := c.Send(http.MethodPost, "endpoints/herd/run", map[string]any{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || answer.Status != http.StatusOK {
				t.Errorf("a run: %v: %d %s", err, answer.Status, answer.Raw)
				return
			}
			executions[answer.Body["execution_id"]]++
		})
	}
	wait.Wait()
	if len(executions) != 1 {
		t.Errorf("256 runs at once made %d executions", len(executions))
	}
	queries := fmt.Sprintf(`caddy_analytics_query_duration_seconds_count{endpoint="herd",project="%d"}`, c.Project)
	if got := samples(t, c.Server)[queries]; got != "1" {
		t.Errorf("256 runs at once asked ClickHouse %s times", got)
	}
}
