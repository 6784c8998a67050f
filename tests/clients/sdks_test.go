package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// capturing is a server with a project for each SDK.
type capturing struct{ *harness.Server }

// project makes a project, and sets the environment of an SDK that captures into it.
func (c capturing) project(t *testing.T, name string) *harness.Client {
	t.Helper()
	id, key := c.Project(t, name)
	token, err := c.CaptureToken(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", token)
	t.Setenv("PERSONAL_KEY", c.Key(t, id, "feature_flag:read", "personal"))
	return c.Client(id, key)
}

// ordered checks what each SDK sends: a device that becomes a known user of a company, and a visitor without a profile.
func ordered(t *testing.T, c *harness.Client) {
	t.Helper()
	c.Shows(t, "select event, distinct_id, count() from events where event in ('opened', 'ordered', 'glanced') group by 1, 2 order by 1",
		[]any{"glanced", "nobody", 1.0}, []any{"opened", "device", 1.0}, []any{"ordered", "ann", 1.0})
	c.Shows(t, "select properties.amount, $group_0 from events where event = 'ordered'", []any{12.5, "acme"})
	c.Shows(t, "select properties.nested from events where event = 'opened'", []any{`{"list":[1,2.5,"x",null]}`})
	// What an event knows about its person depends on which of the client's requests came first; the person itself does not.
	c.Shows(t, "select count(distinct e.person_id), any(p.properties.email) from events e join persons p on p.id = e.person_id where e.event in ('opened', 'ordered')",
		[]any{1.0, "ann@example.com"})
	c.Shows(t, "select count() from persons where properties.email = 'ann@example.com'", []any{1.0})
	c.Shows(t, "select key, properties.plan from groups", []any{"acme", "pro"})
	c.Shows(t, "select person_mode from events where event = 'glanced'", []any{"propertyless"})
}

// TestSDKs captures with the published versions of PostHog's server SDKs.
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
			if got := strings.TrimSpace(printed); got != `{"defined":0,"flags":{},"enabled":null}` {
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
