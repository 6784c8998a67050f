package e2e_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

func stringReader(s string) io.Reader { return strings.NewReader(s) }

func row(cells ...any) any { return cells }

// TestDemoAnswers runs queries on the demo's events whose answers are known.
func TestDemoAnswers(t *testing.T) {
	c := demoProject(t)
	tests := []struct {
		query string
		want  []any
	}{
		{
			"select event, count() from events group by event order by count() desc",
			[]any{row("commit authored", 37605.0), row("pull request merged", 8614.0), row("commit landed", 4113.0), row("release tagged", 465.0)},
		},
		{"select count(distinct person_id) from events", []any{row(2859.0)}},
		{
			"select properties.component c, count() n from events where event = 'commit authored' and c is not null group by c order by n desc limit 2",
			[]any{row("tsdb", 648.0), row("promql", 628.0)},
		},
		{
			"select y, n from (select toYear(timestamp) y, count() n from events where event = 'commit authored' group by y) where y in (2012, 2024, 2026) order by y",
			[]any{row(2012.0, 44.0), row(2024.0, 4982.0), row(2026.0, 3491.0)},
		},
		{
			"select count() from (select toYear(timestamp) y, count() from events where event = 'commit authored' group by y order by y)",
			[]any{row(15.0)},
		},
		{"select count() from persons", []any{row(2859.0)}},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, c.Query(t, tt.query)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// publishCommits publishes the endpoint run by the tests below.
func publishCommits(t *testing.T, c *harness.Client, name string) {
	t.Helper()
	for _, v := range []map[string]any{
		{"name": "component", "type": "String", "default_value": "tsdb"},
		{"name": "year", "type": "Number", "default_value": 2023},
	} {
		answer := c.Do(t, http.MethodPost, "insight_variables/", v)
		if answer.Status != http.StatusCreated && answer.Body["detail"] != "Variable with this code name already exists" {
			t.Fatalf("creating a variable: %d %s", answer.Status, answer.Raw)
		}
	}
	answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": name,
		"query": map[string]any{
			"kind": "HogQLQuery",
			"query": "select uuid, timestamp from events where event = 'commit authored' and properties.component = {variables.component} " +
				"and toYear(timestamp) = {variables.year} order by timestamp, uuid",
		},
	})
	if answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
}

func rows(t *testing.T, a harness.Answer) []any {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("answered %d: %s", a.Status, a.Raw)
	}
	list, _ := a.Body["results"].([]any)
	return list
}

// TestCustomersRows is the product's main use: a customer's backend calls an endpoint with variables and paging, and the second call is served from the
// cache.
func TestCustomersRows(t *testing.T) {
	c := demoProject(t)
	publishCommits(t, c, "customers_rows")
	dashboard := server.Client(c.Project, server.Key(t, c.Project, "endpoint:read", "secret"))
	run := func(body map[string]any) harness.Answer {
		return dashboard.Do(t, http.MethodPost, "endpoints/customers_rows/run", body)
	}
	variables := map[string]any{"component": "tsdb", "year": 2023}

	first := run(map[string]any{"variables": variables, "limit": 20})
	if got := len(rows(t, first)); got != 20 || first.Body["hasMore"] != true || first.Body["is_cached"] != false {
		t.Fatalf("first page: %d rows, hasMore %v, is_cached %v", got, first.Body["hasMore"], first.Body["is_cached"])
	}
	last := run(map[string]any{"variables": variables, "limit": 20, "offset": 40})
	if got := len(rows(t, last)); got != 14 || last.Body["hasMore"] != false || last.Body["is_cached"] != true {
		t.Fatalf("last page: %d rows, hasMore %v, is_cached %v", got, last.Body["hasMore"], last.Body["is_cached"])
	}
	if status := last.Header.Get("Cache-Status"); !strings.Contains(status, "; hit") {
		t.Errorf("the last page is no hit: Cache-Status: %s", status)
	}
	var paged []any
	for offset := 0; offset < 60; offset += 7 {
		paged = append(paged, rows(t, run(map[string]any{"variables": variables, "limit": 7, "offset": offset}))...)
	}
	if diff := cmp.Diff(rows(t, run(map[string]any{"variables": variables, "limit": 1000})), paged); diff != "" {
		t.Errorf("pages of seven (-whole +pages):\n%s", diff)
	}
	if n := len(rows(t, run(map[string]any{}))); n != 54 {
		t.Errorf("the defaults give %d rows, want 54", n)
	}
	if n := len(rows(t, run(map[string]any{"variables": map[string]any{"year": "2023"}}))); n != 54 {
		t.Errorf("a number given as text gives %d rows, want 54", n)
	}
	for _, value := range []string{"' OR 1=1 --", `\' OR 1=1 --`, "tsdb'", "{variables.year}", "tsdb\x00", "\t\n", "%", "'; drop table events; --"} {
		if n := len(rows(t, run(map[string]any{"variables": map[string]any{"component": value, "year": 2023}}))); n != 0 {
			t.Errorf("the component %q gives %d rows", value, n)
		}
	}
	if answer := run(map[string]any{"variables": map[string]any{"year": "2023 or 1=1"}}); answer.Status != http.StatusBadRequest || answer.Body["attr"] != "variables" {
		t.Errorf("a year that is not a number: %d %s", answer.Status, answer.Raw)
	}
}

// TestCacheHeaders checks the headers of a cached answer.
func TestCacheHeaders(t *testing.T) {
	c := demoProject(t)
	publishCommits(t, c, "cache_headers")
	run := func(header map[string]string) harness.Answer {
		one := server.Client(c.Project, c.Key)
		one.Header = http.Header{}
		for name, value := range header {
			one.Header.Set(name, value)
		}
		return one.Do(t, http.MethodPost, "endpoints/cache_headers/run", map[string]any{})
	}
	miss := run(nil)
	if status := miss.Header.Get("Cache-Status"); status != "caddy-analytics; fwd=miss; stored" {
		t.Errorf("miss: Cache-Status: %s", status)
	}
	hit := run(nil)
	for name, pattern := range map[string]string{
		"Cache-Status": "caddy-analytics; hit; ttl=", "Cache-Control": "private, max-age=", "Server-Timing": "total;dur=",
		"Content-Type": "application/json", "Content-Length": strconv.Itoa(len(hit.Raw)),
	} {
		if got := hit.Header.Get(name); !strings.HasPrefix(got, pattern) {
			t.Errorf("hit: %s: %q does not begin with %q", name, got, pattern)
		}
	}
	for _, name := range []string{"Age", "Etag", "X-Request-Id"} {
		if hit.Header.Get(name) == "" {
			t.Errorf("hit: no %s", name)
		}
	}
	if miss.Body["execution_id"] != hit.Body["execution_id"] {
		t.Error("a cached answer does not name the execution that it comes from")
	}
	again := run(map[string]string{"If-None-Match": hit.Header.Get("Etag")})
	if again.Status != http.StatusNotModified || len(again.Raw) != 0 {
		t.Errorf("If-None-Match: %d with %d bytes", again.Status, len(again.Raw))
	}
	packed := run(map[string]string{"Accept-Encoding": "gzip"})
	if packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Raw) >= len(hit.Raw) || packed.Header.Get("Etag") == hit.Header.Get("Etag") {
		t.Errorf("gzip: Content-Encoding %q, %d bytes of %d", packed.Header.Get("Content-Encoding"), len(packed.Raw), len(hit.Raw))
	}
}

// TestRefused sends queries that must not run, and checks that the answer is a 400 with a place in the text.
func TestRefused(t *testing.T) {
	c := newProject(t)
	for _, query := range []string{
		"select * from system.tables",
		"select * from url('http://127.0.0.1', 'CSV')",
		"insert into events values (1)",
		"select * from file('x')",
		"select * from remote('127.0.0.1', system.one)",
		"select sleep(1)",
		"select hostName()",
		"select getSetting('readonly')",
		"select dictGet('d', 'a', 1)",
		"select 1; select 2",
		"select 1 settings readonly = 0",
		"select 1 format Null",
		"select 1 into outfile 'x'",
		"select event from events final",
		"select team_id as x, 1 as team_id from events",
		"select * from default.events",
		"select * from person_distinct_id2",
		"select nosuchfield from events",
	} {
		t.Run(query, func(t *testing.T) {
			answer := c.HogQL(t, query)
			if answer.Status != http.StatusBadRequest {
				t.Fatalf("answered %d: %s", answer.Status, answer.Raw)
			}
			extra, _ := answer.Body["extra"].(map[string]any)
			if extra["line"] != 1.0 || extra["column"] == nil || extra["end"] == 0.0 {
				t.Errorf("no place: %s", answer.Raw)
			}
		})
	}
}
