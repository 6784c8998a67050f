package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestConsoleHealth: the page shows the content of status/, and the queries in the log.
func TestConsoleHealth(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client, "sales")
	must(t, client, http.MethodPost, "endpoints/sales/run", map[string]any{})
	must(t, client, http.MethodPost, "endpoints/sales/run", map[string]any{})
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "health")
	status := must(t, client, http.MethodGet, "status/", nil)
	shown := c.text(t, ".health-cards")
	part := func(name string) map[string]any {
		of, _ := status[name].(map[string]any)
		return of
	}
	figure := func(title, name string) string {
		return c.evaluate(t, fmt.Sprintf(`(() => {
			const card = [...document.querySelectorAll(".health-cards section")].find((s) => s.querySelector("h2").innerText === %s);
			return [...card.querySelectorAll("dt")].find((dt) => dt.innerText === %s)?.nextElementSibling.innerText ?? "";
		})()`, quote(title), quote(name)))
	}
	for _, want := range []struct {
		title, name string
		value       any
	}{
		{"Server", "Version", status["version"]},
		{"ClickHouse", "Version", part("clickhouse")["version"]},
		{"Cache", "Hits", part("cache")["hits"]},
		{"Capture", "Accepted", part("capture")["accepted_events"]},
		{"Materialized tables", "Tables", part("materialized")["tables"]},
	} {
		if got := figure(want.title, want.name); got != fmt.Sprint(want.value) {
			t.Errorf("%s of %s is %q; the API says %v\n%s", want.name, want.title, got, want.value, shown)
		}
	}
	if hits := part("cache")["hits"]; hits == 0.0 {
		t.Error("the second run was no hit, so that the test shows nothing")
	}
	c.accessible(t)
	c.picture(t, "health")
	link := c.evaluate(t, `[...document.querySelectorAll(".health-query")].find((a) => a.innerText.includes("'sold'"))?.getAttribute("href") ?? ""`)
	if want := fmt.Sprintf("/project/%d/sql?q=select%%20toInt", client.Project); !strings.HasPrefix(link, want) {
		t.Errorf("the query of the run leads to %q", link)
	}

	asked := len(c.answers("/status/"))
	harness.Eventually(t, time.Minute, func() error {
		if again := len(c.answers("/status/")); again <= asked {
			return fmt.Errorf("status/ was asked %d times, and not again", again)
		}
		return nil
	})
	c.look(t, dark, narrow)
	c.fits(t)
}
