package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// boundKey makes a key of the given kind with additional flags, such as --fix, and returns a client that uses it.
func boundKey(t *testing.T, c *harness.Client, kind string, flags ...string) *harness.Client {
	t.Helper()
	var key struct{ Key string }
	c.Server.MustCommand(t, &key, nil, append([]string{
		"key", "create", "--project", strconv.FormatInt(c.Project, 10), "--scopes", "endpoint:read", "--kind", kind,
	}, flags...)...)
	return c.Server.Client(c.Project, key.Key)
}

// customers is a project with rows of two customers, and endpoints that show those of one.
func customers(t *testing.T) *harness.Client {
	t.Helper()
	c := newProject(t)
	lines := ""
	for i, customer := range []string{"acme", "globex", "acme", "globex", "globex"} {
		lines += fmt.Sprintf(`{"event":"order","distinct_id":"%[1]s-%[2]d","timestamp":"2026-01-0%[2]dT10:00:00Z","properties":{"customer":"%[1]s","note":"note of %[1]s"}}`+"\n", customer, i+1)
	}
	importLines(t, c, lines)
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "customer", "type": "String", "default_value": "globex"})
	publish(t, c, "orders", "select distinct_id, properties.note from events where properties.customer = {variables.customer} order by distinct_id")
	publish(t, c, "fails", "select intDiv(1, number) from numbers(3) where {variables.customer} != ''")
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "trend", "query": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "order"}},
		"dateRange":       map[string]any{"date_from": "2026-01-01", "date_to": "2026-01-05"},
		"breakdownFilter": map[string]any{"breakdown": "customer", "breakdown_type": "event"},
	}})
	return c
}

// TestBoundKeysSeeTheirRowsAlone runs endpoints with keys that fix a customer, in every form, concurrently and one after the other.
func TestBoundKeysSeeTheirRowsAlone(t *testing.T) {
	c := customers(t)
	keys := map[string]*harness.Client{
		"acme": boundKey(t, c, "secret", "--fix", "customer=acme", "--endpoints", "orders,trend"), "globex": boundKey(t, c, "personal", "--fix", "customer=globex"),
	}
	other := map[string]string{"acme": "globex", "globex": "acme"}
	requests := []struct{ path, body string }{
		{"orders/run", ""},
		{"orders/run", `{"limit": 1}`},
		{"orders/run", `{"refresh": "force"}`},
		{"orders/run", `{"debug": true}`},
		{"orders/run?limit=2&offset=0", "{}"},
		{"orders/run.objects", ""},
		{"orders/run.csv", ""},
		{"orders/run.ndjson", ""},
		{"orders/run.parquet", ""},
		{"orders/run.arrow", ""},
		{"trend/run", ""},
		{"trend/run", `{"variables": {"date_from": "2026-01-01"}}`},
		{"orders/run?customer=globex&variables={}", ""},
		{"orders/run?version=1", ""},
	}
	var all sync.WaitGroup
	for range 3 { // a miss, then two hits
		for name, key := range keys {
			for _, request := range requests {
				all.Go(func() {
					answer, err := key.Send(http.MethodPost, "endpoints/"+request.path, request.body)
					if err != nil || answer.Status != http.StatusOK || !bytes.Contains(answer.Raw, []byte(name)) || bytes.Contains(answer.Raw, []byte(other[name])) {
						t.Errorf("%s: %s %s: %v %d %q", name, request.path, request.body, err, answer.Status, answer.Raw)
					}
					if bytes.Contains(answer.Raw, []byte("SELECT")) {
						t.Errorf("%s %s shows SQL: %s", request.path, request.body, answer.Raw)
					}
				})
			}
		}
		all.Wait()
	}
	answer := keys["acme"].Do(t, http.MethodPost, "endpoints/orders/run", "")
	if diff := cmp.Diff([]any{[]any{"acme-1", "note of acme"}, []any{"acme-3", "note of acme"}}, answer.Body["results"]); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if status := answer.Header.Get("Cache-Status"); !strings.Contains(status, "hit") {
		t.Errorf("the last run was no hit: %s", status)
	}
	tag := answer.Header.Get("Etag")
	keys["globex"].Header = http.Header{"If-None-Match": {tag}}
	if answer := keys["globex"].Do(t, http.MethodPost, "endpoints/orders/run", ""); answer.Status != http.StatusOK {
		t.Errorf("the tag of another key's page is answered %d", answer.Status)
	}
}

// TestBoundKeysAreRefused checks the refusals when keys with fixed variables ask for more.
func TestBoundKeysAreRefused(t *testing.T) {
	c := customers(t)
	publish(t, c, "open", "select count() from events")
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"query": hogql("select 1 where {variables.customer} = 'x'"), "draft": true})
	publish(t, c, "grown", "select 'everything'")
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/grown/", map[string]any{"query": hogql("select {variables.customer}")})
	acme, named := boundKey(t, c, "secret", "--fix", "customer=acme"), boundKey(t, c, "personal", "--endpoints", "open")
	const denied = "You do not have access to this endpoint."
	for _, tt := range []struct {
		key                *harness.Client
		method, path, body string
		status             int
		detail             string
	}{
		{acme, "POST", "endpoints/orders/run", `{"variables": {"customer": "globex"}}`, 403, "Variable customer: this key fixes its value."},
		{acme, "POST", "endpoints/orders/run.csv", `{"variables": {"customer": "globex"}}`, 403, "Variable customer: this key fixes its value."},
		{acme, "POST", "endpoints/open/run", `{}`, 403, denied},
		{acme, "POST", "endpoints/orders/run", `{"version": 2}`, 404, "Version 2 not found for endpoint 'orders'"},
		{acme, "POST", "endpoints/grown/run", `{"version": 1}`, 403, denied},
		{acme, "POST", "endpoints/grown/run?version=1", ``, 403, denied},
		{acme, "POST", "endpoints/fails/run", `{}`, 400, "The query of this endpoint failed for these values."},
		{acme, "POST", "endpoints/fails/run.csv", `{}`, 400, "The query of this endpoint failed for these values."},
		{named, "POST", "endpoints/orders/run", `{}`, 403, denied},
		{named, "GET", "endpoints/open/", ``, 403, "This key can only run endpoints."},
		{named, "GET", "endpoints/open/openapi.json", ``, 403, "This key can only run endpoints."},
		{named, "GET", "endpoints/openapi.json", ``, 403, "This key can only run endpoints."},
	} {
		answer := tt.key.Do(t, tt.method, tt.path, tt.body)
		if answer.Status != tt.status || answer.Body["detail"] != tt.detail {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, answer.Status, answer.Raw)
		}
	}
}

// TestBoundKeysAreChecked checks what the command that makes keys refuses.
func TestBoundKeysAreChecked(t *testing.T) {
	c := customers(t)
	publish(t, c, "open", "select count() from events")
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "seats", "type": "Number"})
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--fix", "customer"}, `--fix "customer": want one name=value for each variable`},
		{[]string{"--fix", "customer="}, `--fix "customer=": want one name=value for each variable`},
		{[]string{"--fix", "customer=a", "--fix", "customer=b"}, `--fix "customer=b": want one name=value for each variable`},
		{[]string{"--fix", "custommer=acme"}, "the project has no variable custommer, and none of its endpoints takes one"},
		{[]string{"--fix", "seats=many"}, `variable seats: "many" is not a number`},
		{[]string{"--endpoints", "none"}, `there is no endpoint`},
		{[]string{"--fix", "customer=acme", "--endpoints", "orders,open"}, "endpoint open does not use the variable(s) customer: a key that fixes them could not run it"},
	} {
		_, messages, err := c.Server.Command(nil, append([]string{"key", "create", "--project", strconv.FormatInt(c.Project, 10), "--scopes", "endpoint:read"}, tt.flags...)...)
		if err == nil || !strings.Contains(messages, tt.want) {
			t.Errorf("%q: %v\n%s", tt.flags, err, messages)
		}
	}
}
