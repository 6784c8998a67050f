package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// capturePage is a page that captures with the published posthog-js.
const capturePage = `<!doctype html>
<title>%[1]s</title>
<link rel="icon" href="data:,">
<script src="/sdk/array.js"></script>
<script>
  posthog.init("%[2]s", { api_host: "%[3]s", person_profiles: "identified_only", opt_out_useragent_filter: true });
</script>
<h1>%[1]s</h1>
<button id="order" class="large blue" data-plan="pro">Order now</button>
<a id="next" href="/second">Next page</a>`

// captureSite serves pages that capture into a project.
func captureSite(t *testing.T, token string) string {
	t.Helper()
	packages, err := harness.Packages(filepath.Join("..", "clients", "sdks"))
	if err != nil {
		t.Fatalf("fetching posthog-js: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/sdk/", http.StripPrefix("/sdk/", http.FileServer(http.Dir(filepath.Join(packages, "node_modules", "posthog-js", "dist")))))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, capturePage, "Page "+r.URL.Path, token, server.URL) // the browser notices
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL
}

// TestPostHogJS captures in a browser, and queries the captured events.
func TestPostHogJS(t *testing.T) {
	t.Parallel()
	page := openTab(t) // or skip
	id, key := server.Project(t, "posthog-js")
	token, err := server.CaptureToken(id)
	if err != nil {
		t.Fatal(err)
	}
	web := captureSite(t, token)
	c := server.Client(id, key)
	shows := func(hogql string, want ...[]any) {
		t.Helper()
		c.Shows(t, hogql, want...)
	}
	defer func() {
		if t.Failed() {
			t.Logf("the page asked %q", page.answers(server.URL))
		}
	}()

	page.open(t, web+"/first")
	shows("select event, properties.$pathname, properties.$lib, person_mode from events", []any{"$pageview", "/first", "web", "propertyless"})
	harness.Eventually(t, time.Minute, func() error { // autocapture is off until the config has arrived
		if got := page.evaluate(t, `String(!!posthog.autocapture && posthog.autocapture.isEnabled)`); got != "true" {
			return fmt.Errorf("autocapture is enabled: %s", got)
		}
		return nil
	})
	page.click(t, "#order")
	shows("select elements_chain_texts, properties.$event_type from events where event = '$autocapture'", []any{[]any{"Order now"}, "click"})
	shows("select count() from events where event = '$autocapture' and elements_chain like 'button.blue.large:%' and elements_chain like '%attr__data-plan=\"pro\"%'", []any{1.0})

	page.evaluate(t, `posthog.identify("ann", {email: "ann@example.com"}, {first_page: location.pathname}); posthog.group("company", "acme", {plan: "pro"}); posthog.capture("ordered", {amount: 12.5}); "done"`)
	shows("select properties.amount, $group_0, person.properties.email, person.properties.first_page from events where event = 'ordered'",
		[]any{12.5, "acme", "ann@example.com", "/first"})
	shows("select key, properties.plan from groups", []any{"acme", "pro"})

	page.click(t, "#next") // the rest is sent when the page is left
	shows("select properties.$pathname from events where event = '$pageleave'", []any{"/first"})
	shows("select count() from events where event = '$pageview' and properties.$pathname = '/second'", []any{1.0})
	shows("select count(distinct person_id) from events", []any{1.0})

	before := len(page.answers("/e/"))
	page.evaluate(t, `posthog.opt_out_capturing(); posthog.capture("never"); "done"`)
	page.open(t, web+"/third")
	shows("select count() from events where event = 'never' or properties.$pathname = '/third'", []any{0.0})
	if sent := len(page.answers("/e/")); sent > before+1 { // requests that were queued before the visitor opted out may still be sent
		t.Errorf("%d requests were sent after opting out", sent-before)
	}
	for _, r := range page.sent() {
		if strings.HasPrefix(r.url, server.URL) && r.status >= 400 && r.method != http.MethodOptions {
			t.Errorf("%s %s is answered with %d", r.method, r.url, r.status)
		}
	}
}
