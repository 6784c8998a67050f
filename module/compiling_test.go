package module

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// TestTooManyCompiles: a compile that waits in too long a queue, or for too long, ends with a 429.
func TestTooManyCompiles(t *testing.T) {
	before := compilePlaces
	t.Cleanup(func() { compilePlaces = before })
	synctest.Test(t, func(t *testing.T) {
		compilePlaces = admission.New(compileLimits(1))
		held, err := takeCompilePlace(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, maxWaitingCompiles)
		for range maxWaitingCompiles {
			go func() {
				_, err := takeCompilePlace(t.Context(), 1)
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := takeCompilePlace(t.Context(), 1); err == nil || toAPIError(err, "").Status != http.StatusTooManyRequests {
			t.Errorf("in a full queue: %v", err)
		}
		for range maxWaitingCompiles {
			if err := <-results; err == nil || toAPIError(err, "").Status != http.StatusTooManyRequests {
				t.Errorf("after %s: %v", compilePatience, err)
			}
		}
		held.Leave()
		again, err := takeCompilePlace(t.Context(), 2)
		if err != nil {
			t.Fatalf("once the place is free: %v", err)
		}
		again.Leave()
	})
}

// TestCompileTimeCounts: each 25 ms that a request's compiles begin after the first cost a query of the key's rate.
func TestCompileTimeCounts(t *testing.T) {
	w := newWorld(t)
	w.rt.limits = newLimiter(Rate{Queries: 5, Per: time.Hour})
	left := func() int {
		a := w.rt.limits.ofKey(w.key.ID)
		return a.left(began)
	}
	c := compilesOf(w.rt, w.key, nil, w.project.ID)
	for i, tt := range []struct {
		took time.Duration
		left int
	}{
		{24 * time.Millisecond, 5},
		{time.Millisecond, 5},
		{time.Microsecond, 4},
		{24 * time.Millisecond, 4},
		{50 * time.Millisecond, 2},
	} {
		if c.count(tt.took, began); left() != tt.left {
			t.Errorf("compile %d: %d queries are left, want %d", i+1, left(), tt.left)
		}
	}
	compilesOf(w.rt, w.key, nil, w.project.ID).count(90*time.Millisecond, began)
	if left() != 0 {
		t.Errorf("%d queries are left", left())
	}
	compilesOf(w.rt, nil, nil, w.project.ID).count(time.Second, began) // an operator's
}

// TestCompileDeadline: the time that a compile may take is that which it works, not that in which others do.
func TestCompileDeadline(t *testing.T) {
	w := newWorld(t)
	c := compilesOf(w.rt, w.key, nil, w.project.ID)
	work := func(end time.Time) func(expired func() error) error {
		return func(expired func() error) error {
			for time.Now().Before(end) {
				if err := expired(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err := c.do(t.Context(), work(time.Now().Add(time.Minute)))
	if !errors.Is(err, compiler.ErrTooSlow) || toAPIError(err, "").Status != http.StatusBadRequest {
		t.Errorf("working without end: %v", err)
	}
	if c.counted != 4 && c.counted != 3 {
		t.Errorf("it cost %d queries", c.counted)
	}
	if err := c.do(t.Context(), work(time.Now().Add(time.Minute))); !errors.Is(err, compiler.ErrTooSlow) {
		t.Errorf("the second compile of the request: %v", err)
	}
	again := compilesOf(w.rt, w.key, nil, w.project.ID)
	if err := again.do(t.Context(), func(expired func() error) error {
		time.Sleep(2 * maxCompiling)
		return expired()
	}); err != nil && processorClock {
		t.Errorf("waiting for others: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again.do(ctx, work(time.Now().Add(time.Minute))); !errors.Is(err, context.Canceled) {
		t.Errorf("for a client that is gone: %v", err)
	}
}

// TestHostileQueries: queries that would grow without bound are refused with a sentence, and a key that sends them without end is
// throttled, whichever route it takes.
func TestHostileQueries(t *testing.T) {
	w := newWorld(t)
	w.loseClickHouse(t)
	stars := "select 1 as id"
	for range 20 {
		stars = "select *, * from (" + stars + ")"
	}
	const tooLarge = "The query is too large: it grows beyond"
	for _, tt := range []struct {
		name, path string
		body       any
		status     int
	}{
		{"query", "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": stars}}, http.StatusBadRequest},
		{"metadata", "query/", map[string]any{"query": map[string]any{"kind": "HogQLMetadata", "language": "hogQL", "query": stars}}, http.StatusOK},
		{"publish", "endpoints/", map[string]any{"name": "stars", "query": map[string]any{"kind": "HogQLQuery", "query": stars}}, http.StatusBadRequest},
		{"actors", "query/", map[string]any{"query": map[string]any{
			"kind": "ActorsQuery", "source": map[string]any{"kind": "HogQLQuery", "query": stars},
		}}, http.StatusBadRequest},
	} {
		answer := w.send(t, http.MethodPost, "/api/projects/@current/"+tt.path, string(jsontext.Append(nil, tt.body)))
		if answer.Code != tt.status || !strings.Contains(answer.Body.String(), tooLarge) {
			t.Errorf("%s: %d %.300s", tt.name, answer.Code, answer.Body)
		}
	}

	w.rt.limits = newLimiter(Rate{Queries: 3, Per: time.Hour})
	spent := compilesOf(w.rt, w.key, nil, w.project.ID)
	spent.count(maxCompiling, time.Now())
	for _, kind := range []string{"HogQLQuery", "HogQLMetadata"} {
		body := jsontext.Append(nil, map[string]any{"query": map[string]any{"kind": kind, "language": "hogQL", "query": "select 1"}})
		if kind == "HogQLQuery" {
			body = jsontext.Append(nil, map[string]any{"query": map[string]any{"kind": kind, "query": "select 1"}})
		}
		answer := w.send(t, http.MethodPost, "/api/projects/@current/query/", string(body))
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s of a key that has compiled for too long: %d %.300s", kind, answer.Code, answer.Body)
		}
	}
}
