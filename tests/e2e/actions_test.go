package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestActionsPage runs the examples in docs/actions.md in order. They are about the first action of a server.
func TestActionsPage(t *testing.T) {
	own := harness.Start(t)
	project, _ := own.Project(t, "page")
	c := own.Client(project, own.Key(t, project, "action:write,query:read", "personal"))
	importLines(t, c, `{"event":"joined","distinct_id":"ann","timestamp":"2024-01-03T10:00:00Z","properties":{"plan":"gold"}}
{"event":"joined","distinct_id":"bob","timestamp":"2024-01-04T10:00:00Z","properties":{"plan":"free"}}
{"event":"$pageview","distinct_id":"bob","timestamp":"2024-01-05T10:00:00Z","properties":{"$current_url":"https://example.com/welcome/club?x=1"}}
`)
	ran := 0
	for _, text := range harness.Blocks(document(t, "docs/actions.md")) {
		method, path, body := http.MethodPost, "query/", any(nil)
		head, rest, _ := strings.Cut(text, "\n")
		switch {
		case strings.HasPrefix(text, "["): // an answer
			continue
		case strings.HasPrefix(text, "{"):
			body = map[string]any{"query": json.RawMessage(text)}
		case strings.HasPrefix(text, "select "):
			body = map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": text}}
		default:
			method, path, _ = strings.Cut(head, " ")
			if rest != "" {
				body = rest
			}
		}
		ran++
		if answer := c.Do(t, method, path, body); answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
			t.Errorf("%s\nanswers %d %s", text, answer.Status, answer.Raw)
		}
	}
	if ran < 10 {
		t.Errorf("only %d examples", ran)
	}
	if got := c.Query(t, "select distinct_id from events where matchesAction('Joined the club') order by distinct_id"); len(got) != 2 {
		t.Errorf("the action of the page matches %v, want an event of ann and one of bob", got)
	}
}
