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

// raw sends bytes unchanged, which no HTTP client would, and returns the status of the response.
func raw(t *testing.T, s *harness.Server, text string) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // only the response matters
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

// TestQueryStringOfOddBytes: a query string may contain any bytes, and they never affect which project's rows are returned. A byte of it was once
// taken for part of a project's number.
func TestQueryStringOfOddBytes(t *testing.T) {
	c := newProject(t)
	body := `{"query":{"kind":"HogQLQuery","query":"select 1"}}`
	for _, query := range []string{"\x80", "\x82\x80", "%", "a=%ff", strings.Repeat("\xff", 64)} {
		got := raw(t, c.Server, fmt.Sprintf("POST /api/projects/%d/query/?%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			c.Project, query, strings.TrimPrefix(c.Server.URL, "http://"), c.Key, len(body), body))
		if got != http.StatusOK {
			t.Errorf("?%q answers %d", query, got)
		}
	}
}

// TestHostileRequests sends requests that only an attacker would: each is refused, and the server answers the next one.
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
		{"an invalid number", "POST", "endpoints/e0/run", `{"limit": 1e400}`, 400},
		{"a thousand unknown variables", "POST", "endpoints/e0/run", `{"variables": {` + strings.Repeat(`"a": 1, `, 1000) + `"b": 2}}`, 400},
		{"a name with a slash", "GET", "endpoints/e0%2Frun%2Fmore", "", 404},
		{"a name that climbs", "GET", "endpoints/%2e%2e%2f%2e%2e", "", 404},
		{"an unknown kind", "POST", "query/nothing/", "{}", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body any
			if tt.body != "" {
				body = tt.body
			}
			answer, err := c.Send(tt.method, tt.path, body)
			if err != nil {
				if tt.status == 413 { // the server hangs up on clients that keep sending
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

// start sends a query with a name by which its caller can cancel it.
func start(ctx context.Context, c *harness.Client, id, hogql string) <-chan harness.Answer {
	done := make(chan harness.Answer, 1)
	body := fmt.Sprintf(`{"query":{"kind":"HogQLQuery","query":%q},"client_query_id":%q}`, hogql, id)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/api/projects/%d/query/", c.Server.URL, c.Project), strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.Key)
		answer := harness.Answer{}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			answer.Status, answer.Header = resp.StatusCode, resp.Header
			_ = resp.Body.Close() // only the status is needed
		}
		done <- answer
	}()
	return done
}

// TestClientGoesAway: the query of a client that left is stopped and its place becomes free, unless another client waits for the same
// answer.
func TestClientGoesAway(t *testing.T) {
	c := runsServer(t)
	gone := func(answer harness.Answer) bool { return answer.Status == http.StatusNotFound }
	t.Run("alone", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		left := start(ctx, c, "alone", fmt.Sprintf(endless, 1))
		poll(t, c, "alone", pickedUp)
		leave()
		<-left
		if rows := c.Query(t, "select 2"); len(rows) != 1 { // it would wait for its turn if the engine were still working
			t.Errorf("the next query: %v", rows)
		}
	})
	t.Run("with a companion", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		left := start(ctx, c, "first", fmt.Sprintf(endless, 2))
		poll(t, c, "first", pickedUp)
		companion := start(t.Context(), c, "companion", fmt.Sprintf(endless, 2))
		before := poll(t, c, "companion", pickedUp)
		leave()
		<-left
		poll(t, c, "first", gone)
		after := poll(t, c, "companion", func(answer harness.Answer) bool {
			return gone(answer) || timeElapsed(answer) > timeElapsed(before)
		})
		// A query started again for the companion would have a later pickup_time.
		if gone(after) || status(after)["pickup_time"] != status(before)["pickup_time"] {
			t.Errorf("the companion's query does not go on: %s\nbefore: %s", after.Raw, before.Raw)
		}
		c.Do(t, http.MethodDelete, "query/companion/", nil)
		if answer := <-companion; answer.Status != http.StatusBadRequest {
			t.Errorf("the companion: %d", answer.Status)
		}
	})
}

// TestDeletedVariable: an endpoint whose variable was deleted says so, even if an earlier answer is cached.
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
