package nodes_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// advertised is the address at which the other nodes can reach a node.
var advertised = regexp.MustCompile(`advertise 127\.0\.0\.1:(\d+)`)

// advertise reloads a node with another address for the other nodes, which leads to the same place.
func advertise(t *testing.T, node *harness.Server) {
	t.Helper()
	config, err := os.ReadFile(node.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	changed := advertised.ReplaceAll(config, []byte("advertise localhost:$1"))
	if bytes.Equal(changed, config) {
		t.Fatalf("no address in %s", config)
	}
	if err := os.WriteFile(node.Caddyfile(), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := node.Reload(); err != nil {
		t.Fatal(err)
	}
}

// TestCursorOnAnotherNode follows a cursor on a node that did not issue it, through all pages: while the registry is down, after reloads of either node,
// and after the issuing node was killed.
func TestCursorOnAnotherNode(t *testing.T) {
	l := shared(t, 2, 1)
	first, second := l.fleet.nodes[0], l.fleet.nodes[1]
	one, two := first.Client(l.project, l.key), second.Client(l.project, l.key)
	made := one.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "pages", "query": map[string]any{"kind": "HogQLQuery", "query": "select number from numbers(7)"}})
	if made.Status != http.StatusCreated {
		t.Fatalf("making an endpoint: %d %s", made.Status, made.Raw)
	}
	var begun harness.Answer
	harness.Eventually(t, time.Minute, func() error { // both know of the endpoint and of each other
		begun = one.Do(t, http.MethodPost, "endpoints/pages/run", map[string]any{"limit": 2})
		got, err := two.Send(http.MethodPost, "endpoints/pages/run", map[string]any{"cursor": begun.Body["next_cursor"]})
		if err == nil && got.Status != http.StatusOK {
			err = fmt.Errorf("%d %s", got.Status, got.Raw)
		}
		return err
	})
	follow := func(c *harness.Client) (rows []any) {
		t.Helper()
		rows, _ = begun.Body["results"].([]any)
		for next := begun.Body["next_cursor"]; next != nil; {
			var got harness.Answer
			harness.Eventually(t, time.Minute, func() error { // on a busy machine, the other node may be too slow to answer
				if got = c.Do(t, http.MethodPost, "endpoints/pages/run", map[string]any{"cursor": next}); got.Status == http.StatusServiceUnavailable {
					return fmt.Errorf("%d %s", got.Status, got.Raw)
				}
				return nil
			})
			page, _ := got.Body["results"].([]any)
			if got.Status != http.StatusOK || len(page) == 0 {
				t.Fatalf("following a cursor: %d %s", got.Status, got.Raw)
			}
			rows, next = append(slices.Clip(rows), page...), got.Body["next_cursor"]
		}
		return rows
	}
	want := fmt.Sprint([]any{[]any{0.}, []any{1.}, []any{2.}, []any{3.}, []any{4.}, []any{5.}, []any{6.}})
	for name, c := range map[string]*harness.Client{"the node that gave it out": one, "the other one": two} {
		if got := fmt.Sprint(follow(c)); got != want {
			t.Errorf("on %s: %s, want %s", name, got, want)
		}
	}
	if err := l.fleet.unplug(); err != nil {
		t.Fatal(err)
	}
	for n, node := range []*harness.Server{second, first} {
		advertise(t, node)
		if got := fmt.Sprint(follow(two)); got != want {
			t.Errorf("while the registry is unavailable, after %d reloads: %s, want %s", n+1, got, want)
		}
	}
	if err := l.fleet.plug(); err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	l.fleet.peers[0].Set(harness.Refuses) // nothing listens at the address of a node that has ended
	harness.Eventually(t, time.Minute, func() error {
		got := two.Do(t, http.MethodPost, "endpoints/pages/run", map[string]any{"cursor": begun.Body["next_cursor"]})
		switch {
		case got.Status == http.StatusGone && got.Body["code"] == "cursor_expired":
			return nil
		case got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "":
			t.Errorf("the cursor of a node that was killed: %d %s", got.Status, got.Raw)
		}
		return fmt.Errorf("%d %s", got.Status, got.Raw)
	})
	l.fleet.peers[0].Set(harness.Works)
	if err := first.Run(); err != nil { // it is stopped when the test ends
		t.Fatal(err)
	}
}
