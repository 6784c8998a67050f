package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// raw sends bytes as they are, which no HTTP client would, and returns the status of the answer.
func raw(t *testing.T, s *harness.Server, text string) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // what came is what counts
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer to %.80q: %v", text, err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// TestQueryStringOfOddBytes: a query string may hold any bytes, and changes nothing about whose rows come. Once, a byte of
// it could be taken for part of a project's number.
func TestQueryStringOfOddBytes(t *testing.T) {
	c := newProject(t)
	body := `{"query":{"kind":"HogQLQuery","query":"select 1"}}`
	for _, query := range []string{"\x80", "\x82\x80", "%", "a=%ff", strings.Repeat("\xff", 64)} {
		got := raw(t, c.Server, fmt.Sprintf("POST /api/projects/%d/query/?%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			c.Project, query, c.Key, len(body), body))
		if got != http.StatusOK {
			t.Errorf("?%q answers %d", query, got)
		}
	}
}

// TestHostileRequests sends what only an attacker would: each is refused, and the server answers the next one.
func TestHostileRequests(t *testing.T) {
	c := newProject(t)
	for i := range 3 {
		if answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
			"name": fmt.Sprintf("e%d", i), "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"},
		}); answer.Status != http.StatusCreated {
			t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
		}
	}
	const huge = "9223372036854775807"
	deep := strings.Repeat(`{"query":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	tests := []struct {
		name, method, path, body string
		status                   int
	}{
		{"a list page beyond all numbers", "GET", "endpoints/?limit=" + huge + "&offset=1", "", 200},
		{"a list page beyond its end", "GET", "endpoints/?limit=1&offset=" + huge, "", 200},
		{"a page of a run beyond all numbers", "GET", "endpoints/e0/run?limit=" + huge + "&offset=" + huge, "", 200},
		{"a limit beyond 64 bits", "GET", "endpoints/e0/run?limit=1" + huge, "", 400},
		{"deep JSON", "POST", "query/", deep, 400},
		{"deep JSON in a run", "POST", "endpoints/e0/run", `{"variables":` + deep + `}`, 400},
		{"deep lists", "POST", "query/", strings.Repeat("[", 1<<20), 400},
		{"a body of 21 MB", "POST", "query/", `"` + strings.Repeat("x", 21<<20) + `"`, 413},
		{"a large body that is no query", "POST", "query/", `{"query": "` + strings.Repeat("x", 19<<20) + `"}`, 400},
		{"bytes that are no UTF-8", "POST", "query/", "{\"query\":{\"kind\":\"HogQLQuery\",\"query\":\"select '\xff'\"}}", 400},
		{"a number that is none", "POST", "endpoints/e0/run", `{"limit": 1e400}`, 400},
		{"a thousand unknown variables", "POST", "endpoints/e0/run", `{"variables": {` + strings.Repeat(`"a": 1, `, 1000) + `"b": 2}}`, 400},
		{"a name with a slash", "GET", "endpoints/e0%2Frun%2Fmore", "", 404},
		{"a name that climbs", "GET", "endpoints/%2e%2e%2f%2e%2e", "", 404},
		{"a kind that is none", "POST", "query/nothing/", "{}", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body any
			if tt.body != "" {
				body = tt.body
			}
			answer, err := c.Send(tt.method, tt.path, body)
			if err != nil {
				if tt.status == 413 { // the server hangs up on who goes on sending
					return
				}
				t.Fatal(err)
			}
			if answer.Status != tt.status || answer.Body == nil {
				t.Errorf("answered %d: %.300s", answer.Status, answer.Raw)
			}
		})
	}
	if rows := c.Query(t, "select 1"); len(rows) != 1 {
		t.Errorf("afterwards: %v", rows)
	}
	if log := c.Server.Log(); strings.Contains(log, "panic") {
		t.Errorf("the server panicked:\n%s", log)
	}
}

// slow takes seconds on the engine, unless it is stopped; the number makes it another query.
func slow(number int) string {
	return fmt.Sprintf(`{"query":{"kind":"HogQLQuery","query":"select max(cityHash64(toString(number + %d))) from numbers(200000000)"}}`, number)
}

// start sends a query that its caller can give up.
func start(ctx context.Context, c *harness.Client, body string) <-chan harness.Answer {
	done := make(chan harness.Answer, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/api/projects/%d/query/", c.Server.URL, c.Project), strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.Key)
		answer := harness.Answer{}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			answer.Status, answer.Header = resp.StatusCode, resp.Header
			_ = resp.Body.Close() // the status is all that is wanted
		}
		done <- answer
	}()
	return done
}

// TestClientGoesAway: the query of a caller that left is stopped and gives its place back, unless somebody else waits for
// the same answer.
func TestClientGoesAway(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\tconcurrency 1\n\t\t\trate 100000/s\n\t\t}")
	id, key := s.Project(t, "leaving")
	c := s.Client(id, key)
	began := time.Now()
	if answer := <-start(t.Context(), c, slow(0)); answer.Status != http.StatusOK {
		t.Fatalf("the slow query answers %d", answer.Status)
	}
	whole := time.Since(began)

	t.Run("alone", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		gone := start(ctx, c, slow(1))
		if !busy(c) {
			t.Fatal("the slow query never ran")
		}
		leave()
		<-gone
		left := time.Now()
		if rows := c.Query(t, "select 2"); len(rows) != 1 {
			t.Errorf("the next query: %v", rows)
		}
		if waited := time.Since(left); waited > whole/2 {
			t.Errorf("the next query waited %s for a query of %s that nobody wants", waited, whole)
		}
	})
	t.Run("with a companion", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		gone := start(ctx, c, slow(2))
		if !busy(c) {
			t.Fatal("the slow query never ran")
		}
		companion := start(t.Context(), c, slow(2))
		time.AfterFunc(whole/4, leave) // the companion has joined by then; if not, it runs the query itself and the test fails
		<-gone
		answer := <-companion
		if answer.Status != http.StatusOK || !strings.Contains(answer.Header.Get("Cache-Status"), "collapsed") {
			t.Errorf("the companion: %d, Cache-Status: %s", answer.Status, answer.Header.Get("Cache-Status"))
		}
	})
}

// busy waits until the project's only place is taken: a query that has 50 ms does not get through then.
func busy(c *harness.Client) bool {
	for i := range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		answer := <-start(ctx, c, fmt.Sprintf(`{"query":{"kind":"HogQLQuery","query":"select %d"}}`, 1000+i))
		cancel()
		if answer.Status != http.StatusOK {
			return true
		}
	}
	return false
}

// TestDeletedVariable: an endpoint whose variable is gone says so, also when an answer from before is in the cache.
func TestDeletedVariable(t *testing.T) {
	c := newProject(t)
	made := c.Do(t, http.MethodPost, "insight_variables/", map[string]any{"name": "gone", "type": "Number", "default_value": 7})
	answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "v", "query": map[string]any{"kind": "HogQLQuery", "query": "select {variables.gone}"},
	})
	if made.Status != http.StatusCreated || answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d, %d %s", made.Status, answer.Status, answer.Raw)
	}
	run := func() harness.Answer {
		return c.Do(t, http.MethodPost, "endpoints/v/run", map[string]any{"variables": map[string]any{"gone": 5}})
	}
	if before := run(); before.Status != http.StatusOK {
		t.Fatalf("before: %d %s", before.Status, before.Raw)
	}
	if answer := c.Do(t, http.MethodDelete, "insight_variables/"+made.Body["id"].(string)+"/", nil); answer.Status != http.StatusNoContent {
		t.Fatalf("deleting: %d %s", answer.Status, answer.Raw)
	}
	if after := run(); after.Status != http.StatusBadRequest || !strings.Contains(string(after.Raw), "Variable gone does not exist") {
		t.Errorf("after: %d %s", after.Status, after.Raw)
	}
}
