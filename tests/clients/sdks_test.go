package clients_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// capturing is a server with a project for each SDK.
type capturing struct{ *harness.Server }

// project makes a project, and sets the environment of an SDK that captures into it.
func (c capturing) project(t *testing.T, name string) *harness.Client {
	t.Helper()
	id, key := c.Project(t, name)
	var list struct {
		Tokens []struct{ Token string }
	}
	if err := c.Ask(fmt.Sprintf("/analytics/projects/%d/tokens", id), nil, &list); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", list.Tokens[0].Token)
	return c.Client(id, key)
}

// shows waits until a query answers as wanted.
func shows(t *testing.T, c *harness.Client, hogql string, want ...[]any) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, func() error {
		answer, err := c.Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": hogql}, "refresh": "force_blocking"})
		if err != nil {
			return err
		}
		rows := make([]any, len(want))
		for i, row := range want {
			rows[i] = row
		}
		if diff := cmp.Diff(any(rows), answer.Body["results"]); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s\n%s", hogql, diff, answer.Raw)
		}
		return nil
	})
}

// ordered checks what each SDK sends: a device that becomes a known user of a company, and a visitor without a profile.
func ordered(t *testing.T, c *harness.Client) {
	t.Helper()
	shows(t, c, "select event, distinct_id, count() from events where event in ('opened', 'ordered', 'glanced') group by 1, 2 order by 1",
		[]any{"glanced", "nobody", 1.0}, []any{"opened", "device", 1.0}, []any{"ordered", "ann", 1.0})
	shows(t, c, "select properties.amount, $group_0 from events where event = 'ordered'", []any{12.5, "acme"})
	shows(t, c, "select properties.nested from events where event = 'opened'", []any{`{"list":[1,2.5,"x",null]}`})
	// What an event knows of its person depends on which of the client's requests came first; who the person is does not.
	shows(t, c, "select count(distinct e.person_id), any(p.properties.email) from events e join persons p on p.id = e.person_id where e.event in ('opened', 'ordered')",
		[]any{1.0, "ann@example.com"})
	shows(t, c, "select count() from persons where properties.email = 'ann@example.com'", []any{1.0})
	shows(t, c, "select key, properties.plan from groups", []any{"acme", "pro"})
	shows(t, c, "select person_mode from events where event = 'glanced'", []any{"propertyless"})
}

// TestSDKs captures with PostHog's SDKs for servers, as they are published.
func TestSDKs(t *testing.T) {
	if testing.Short() {
		t.Skip("npm packages take their time")
	}
	packages, err := harness.Packages("sdks")
	if err != nil {
		t.Fatalf("fetching the SDKs: %v", err)
	}
	script, err := os.ReadFile(filepath.Join("sdks", "events.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	c := capturing{harness.Start(t)}
	here := site{url: c.URL}
	for name, mode := range map[string]string{"posthog-node": "", "posthog-node, newest route": "v1"} {
		t.Run(name, func(t *testing.T) {
			client := c.project(t, name)
			t.Setenv("POSTHOG_CAPTURE_MODE", mode)
			printed := here.run(t, packages, "node", "--input-type=module", "--eval", string(script))
			if got := strings.TrimSpace(printed); got != `{"flags":{},"enabled":null}` {
				t.Errorf("the client was told %s", got)
			}
			ordered(t, client)
		})
	}
	t.Run("posthog-go", func(t *testing.T) {
		client := c.project(t, t.Name())
		here.run(t, workshop(t, "capture-go"), "go", "run", ".")
		ordered(t, client)
	})
}
