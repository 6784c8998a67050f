package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// orders returns the lines of events numbered from first to last.
func orders(first, last int) string {
	var lines strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&lines, `{"event":"order","distinct_id":"a","timestamp":"2026-01-01T00:00:00Z","properties":{"number":%d}}`+"\n", i)
	}
	return lines.String()
}

// mustAnswer sends a request and requires a status.
func mustAnswer(t *testing.T, c *harness.Client, status int, method, path string, body any) harness.Answer {
	t.Helper()
	answer := c.Do(t, method, path, body)
	if answer.Status != status {
		t.Fatalf("%s %s %v answers %d, want %d: %s", method, path, body, answer.Status, status, answer.Raw)
	}
	return answer
}

// firstCells returns the numbers in the first column of rows.
func firstCells(rows []any) []int {
	var all []int
	for _, row := range rows {
		cells, _ := row.([]any)
		n, _ := cells[0].(float64)
		all = append(all, int(n))
	}
	return all
}

// TestCursorsSurviveEverything follows cursors through the orders while new ones are imported, other clients have the rows recomputed, the cache entry
// expires, a property gets a type, and the endpoint gets a new version. Each original row comes exactly once.
func TestCursorsSurviveEverything(t *testing.T) {
	c := newProject(t)
	importLines(t, c, orders(1, 40))
	publish(t, c, "orders", "select properties.number as n, properties.number % 2 from events where event = 'order' order by n desc")
	mustAnswer(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"data_freshness_seconds": 1})
	dashboard, other := server.Client(c.Project, server.Key(t, c.Project, "endpoint:read", "secret")), c
	run := func(by *harness.Client, body map[string]any) harness.Answer {
		t.Helper()
		return mustAnswer(t, by, http.StatusOK, http.MethodPost, "endpoints/orders/run", body)
	}
	imported := 40
	meanwhile := []func(){
		func() {},
		func() { // events arrive, and another client has seen them
			importLines(t, c, orders(imported+1, imported+5))
			imported += 5
			harness.Eventually(t, time.Minute, func() error {
				if first := firstCells(rows(t, run(other, map[string]any{"limit": 1})))[0]; first != imported {
					return fmt.Errorf("the newest order is %d, want %d", first, imported)
				}
				return nil
			})
		},
		func() { run(other, map[string]any{"limit": 3, "refresh": "force"}) },
		func() { // it expires, and the next client refreshes it
			harness.Eventually(t, time.Minute, func() error {
				if status := run(other, map[string]any{"limit": 7}).Header.Get("Cache-Status"); !strings.HasSuffix(status, "detail=revalidating") {
					return fmt.Errorf("Cache-Status: %s", status)
				}
				return nil
			})
		},
		func() {
			server.MustCommand(t, nil, nil, "property", "set", "--project", fmt.Sprint(c.Project), "--type", "event", "--name", "number", "--as", "String")
		},
		func() {
			mustAnswer(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select 0 as n, 0"}})
		},
	}
	first := run(dashboard, map[string]any{"limit": 6})
	got := firstCells(rows(t, first))
	next := first.Body["next_cursor"]
	for page, happens := range meanwhile {
		happens()
		answer := run(dashboard, map[string]any{"cursor": next})
		got = append(got, firstCells(rows(t, answer))...)
		next = answer.Body["next_cursor"]
		if answer.Body["execution_id"] != first.Body["execution_id"] || answer.Body["endpoint_version"] != 1.0 {
			t.Errorf("page %d is of another run: %s", page+2, answer.Raw)
		}
	}
	if next != nil {
		t.Error("there are more pages")
	}
	var want []int
	for n := 40; n > 0; n-- {
		want = append(want, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of all pages (-want +got):\n%s", diff)
	}
}

// TestPagesOfFiles pages through CSV and NDJSON: by offset within the rows of a result, pages come from the snapshot of the JSON pages, and a header
// names the next one.
func TestPagesOfFiles(t *testing.T) {
	c := newProject(t)
	publish(t, c, "moments", "select number as n, toString(rand()) as id from numbers(60000) order by n")
	file := func(query, body string) harness.Answer {
		t.Helper()
		return mustAnswer(t, c, http.StatusOK, http.MethodPost, "endpoints/moments/run"+query, body)
	}
	all := string(file(".csv", `{"limit": 30}`).Raw)
	var pages strings.Builder
	answer := file("?format=csv", `{"limit": 7}`)
	for limit := 7; limit > 0 && pages.Len() < len(all); limit++ {
		page := string(answer.Raw)
		if pages.Len() > 0 {
			page = strings.TrimPrefix(page, "n,id\r\n")
		}
		pages.WriteString(page)
		answer = file(".csv?cursor="+answer.Header.Get("Next-Cursor"), fmt.Sprintf(`{"limit": %d}`, limit))
	}
	if got := pages.String(); !strings.HasPrefix(got, all) {
		t.Errorf("pages (-want +got):\n%s", cmp.Diff(all, got))
	}
	lines := strings.Split(all, "\r\n")
	if byOffset := string(file(".csv", `{"limit": 1, "offset": 20}`).Raw); byOffset != "n,id\r\n"+lines[21]+"\r\n" {
		t.Errorf("by its offset: %q, want %q", byOffset, lines[21])
	}
	cells := rows(t, file("", `{"limit": 1, "offset": 20}`))[0].([]any)
	if line := fmt.Sprintf("%v,%v", cells...); line != lines[21] {
		t.Errorf("in JSON: %s, want %s", line, lines[21])
	}
	if last := file(".ndjson", `{"limit": 10, "offset": 59995}`); strings.Count(string(last.Raw), "\n") != 5 || last.Header.Get("Next-Cursor") != "" || last.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("behind the rows that a result holds: %v %s", last.Header, last.Raw)
	}
}

// TestCeilings pages to the end of results: the end by the query's own LIMIT, and the last row that pages can reach.
func TestCeilings(t *testing.T) {
	c := newProject(t)
	const most = 50_000
	behind := fmt.Sprintf("A run gives pages of its first %d rows; narrow the query to see the rest.", most)
	for name, query := range map[string]string{
		"none": "select number as n from numbers(60000) order by n", "exactly": "select number as n from numbers(50000) order by n",
		"own": "select number as n from numbers(100) order by n limit 30 offset 5", "ownfull": "select number as n from numbers(60000) order by n limit 50000",
		"ownlarge": "select number as n from numbers(60000) order by n limit 55000", "owncut": "select number as n from numbers(100) order by n limit 1000000",
		"computed": "select number as n from numbers(60000) order by n limit length(range(60000))",
	} {
		publish(t, c, name, query)
	}
	for _, tt := range []struct {
		endpoint, body string
		want           []int // the first row of the page and the number of its rows
		more           bool
	}{
		{"own", `{"limit": 7}`, []int{5, 7}, true},
		{"own", `{"limit": 30}`, []int{5, 30}, false},
		{"own", `{"limit": 1000}`, []int{5, 30}, false},
		{"own", `{"limit": 7, "offset": 28}`, []int{33, 2}, false},
		{"own", `{"limit": 7, "offset": 30}`, []int{0, 0}, false},
		{"own", `{"limit": 7, "offset": 9000000000}`, []int{0, 0}, false},
		{"owncut", `{"limit": 20, "offset": 90}`, []int{90, 10}, false},
		{"exactly", `{"limit": 50000}`, []int{0, most}, false},
		{"exactly", `{"limit": 1, "offset": 49999}`, []int{49_999, 1}, false},
		{"exactly", `{"limit": 1, "offset": 50000}`, []int{0, 0}, false},
		{"ownfull", `{"limit": 100, "offset": 49950}`, []int{49_950, 50}, false},
		{"none", `{"limit": 100, "offset": 49900}`, []int{49_900, 100}, true},
		{"none", `{"limit": 9223372036854775807, "offset": 1}`, []int{1, 49_999}, true},
		{"ownlarge", `{"limit": 50000}`, []int{0, most}, true},
		{"computed", `{"limit": 50000}`, []int{0, most}, true},
	} {
		t.Run(tt.endpoint+" "+tt.body, func(t *testing.T) {
			answer := mustAnswer(t, c, http.StatusOK, http.MethodPost, "endpoints/"+tt.endpoint+"/run", tt.body)
			got := firstCells(rows(t, answer))
			page := []int{0, len(got)}
			if len(got) > 0 {
				page[0] = got[0]
			}
			next, _ := answer.Body["next_cursor"].(string)
			if diff := cmp.Diff(tt.want, page); diff != "" || answer.Body["hasMore"] != tt.more || (next != "") != tt.more {
				t.Errorf("hasMore %v, cursor %q, page (-want +got):\n%s", answer.Body["hasMore"], next, diff)
			}
			if !tt.more || page[0]+page[1] < most {
				return
			}
			for body, attr := range map[string]string{
				fmt.Sprintf(`{"cursor": %q}`, next): "cursor", `{"limit": 1, "offset": 50000}`: "offset",
			} { // the rows behind are refused, never omitted silently
				refused := mustAnswer(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/"+tt.endpoint+"/run", body)
				if refused.Body["detail"] != behind || refused.Body["attr"] != attr {
					t.Errorf("%s: %s", body, refused.Raw)
				}
			}
		})
	}
}

// TestCursorOfAnotherServer sends cursors to a restarted server: it says that the rows are gone, and the client starts again.
func TestCursorOfAnotherServer(t *testing.T) {
	own := harness.Start(t)
	id, key := own.Project(t, "restart")
	c := own.Client(id, key)
	publish(t, c, "numbers", "select number as n from numbers(10) order by n")
	next := mustAnswer(t, c, http.StatusOK, http.MethodPost, "endpoints/numbers/run", `{"limit": 4}`).Body["next_cursor"]
	reloaded := fmt.Sprintf(`{"cursor": %q}`, next)
	if err := own.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, c.Do(t, http.MethodPost, "endpoints/numbers/run", reloaded)); len(got) != 4 {
		t.Errorf("after a reload: %d rows", len(got))
	}
	if err := own.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := own.Run(); err != nil {
		t.Fatal(err)
	}
	gone := mustAnswer(t, c, http.StatusGone, http.MethodPost, "endpoints/numbers/run", reloaded)
	want := map[string]any{
		"type": "invalid_request", "code": "cursor_expired", "attr": "cursor",
		"detail": "The rows that this cursor pages through are no longer kept. Begin again without a cursor.",
	}
	if diff := cmp.Diff(want, gone.Body); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if again := mustAnswer(t, c, http.StatusOK, http.MethodPost, "endpoints/numbers/run", `{"limit": 4}`); again.Body["next_cursor"] == nil {
		t.Errorf("and again: %s", again.Raw)
	}
}
