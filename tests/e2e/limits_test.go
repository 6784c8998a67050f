package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestRateCountsWork: cached answers do not count, queries that run do.
func TestRateCountsWork(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 3/h\n\t\t}")
	id, key := s.Project(t, "rate")
	c := s.Client(id, key)
	for range 10 {
		if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusOK {
			t.Fatalf("a cached answer: %d %s", answer.Status, answer.Raw)
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

// TestHerd sends the same cold run many times at once: ClickHouse is asked once.
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
	for range 64 {
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
		t.Errorf("64 runs at once made %d executions", len(executions))
	}
}
