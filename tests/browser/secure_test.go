package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// testSecure opens the example as deployed in docs/dashboards.md: page and API behind one Caddy, each a site with its own certificate.
func testSecure(t *testing.T, s shop) {
	t.Helper()
	p := openTab(t)
	w := newWorkshop(t, server, s.Project, s.author, s.Key)
	w.env = append(w.env, fmt.Sprintf("PORT=%d", secure.backend), "ORIGIN=https://"+secure.page, "TEAM=promql", "NODE_EXTRA_CA_CERTS="+secure.root)
	w.serve(t, fmt.Sprintf("API=https://%s/api/projects/%d node docs/examples/dashboard/server.mjs", secure.api, s.Project), fmt.Sprintf("http://localhost:%d", secure.backend))
	p.open(t, "https://"+secure.page)
	months := activity(t, "promql", "2012-01-01")
	p.shows(t, page("promql", months, 0))
	p.click(t, "#older")
	p.shows(t, page("promql", months, 1))
	p.keeps(t, s.Key, s.author)
	p.ran(t, "https://"+secure.api, 0, "POST 200", "POST 200")
	harness.Eventually(t, time.Minute, func() error { // the browser may report an answer after the page
		// The browser reached the page's site over TCP, and may have switched to HTTP/3, which Caddy advertises.
		if got := p.protocols("https://" + secure.page)[0]; got != "h2" {
			return fmt.Errorf("the page came by %q", got)
		}
		for _, got := range p.protocols("https://" + secure.api) {
			if got != "h3" {
				return fmt.Errorf("the API's answers came by %q", got)
			}
		}
		return nil
	})
}
