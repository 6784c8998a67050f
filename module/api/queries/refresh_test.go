package queries_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// told summarizes an answer of the query route.
func told(tb testing.TB, answer *httptest.ResponseRecorder) string {
	tb.Helper()
	var body struct {
		Results  json.RawMessage `json:"results"`
		CacheKey *string         `json:"cache_key"`
		Status   *struct {
			ID       string `json:"id"`
			Complete bool   `json:"complete"`
		} `json:"query_status"`
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		tb.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	out := fmt.Sprint(answer.Code)
	if body.Detail != "" {
		return out + " " + body.Detail
	}
	if body.Results != nil {
		out += " " + answer.Header().Get("Cache-Status")[len("caddy-analytics; "):]
	} else if body.CacheKey != nil {
		out += " key"
	}
	if body.Status != nil {
		out += fmt.Sprintf(" + run %s, complete %t", body.Status.ID, body.Status.Complete)
	}
	return out
}

// TestRefreshModes goes through the table of contract api.md, section 1.3. ClickHouse is down, so an answer computed while the caller waits is a 503, or a
// stale answer marked as such.
func TestRefreshModes(t *testing.T) {
	const (
		away    = "503 The analytics database is not available right now. Please try again later."
		fresh   = "200 hit; ttl=60"
		stale   = "200 hit; ttl=0; detail=revalidating"
		outage  = "200 hit; ttl=0; detail=database-unavailable"
		begun   = "202 hit; ttl=0; detail=revalidating + run me, complete false"
		nothing = "202 key + run me, complete false"
		forced  = "202 + run me, complete false"
	)
	tests := []struct {
		mode                    string
		fresh, stale, old, miss string // old: past the lazy threshold
	}{
		{"blocking", fresh, outage, outage, away},
		{"force_cache", fresh, outage, outage, away}, // the query route computes
		{"async", fresh, begun, begun, nothing},
		{"lazy_async", fresh, stale, begun, nothing},
		{"async_except_on_cache_miss", fresh, begun, begun, away},
		{"force_blocking", outage, outage, outage, away},
		{"force_async", forced, forced, forced, forced},
	}
	const path = "/api/projects/1/query/"
	for _, tt := range tests {
		for state, want := range map[string]string{"fresh": tt.fresh, "stale": tt.stale, "old": tt.old, "miss": tt.miss} {
			t.Run(tt.mode+" "+state, func(t *testing.T) {
				w := apitest.New(t)
				w.LoseClickHouse(t)
				body := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": "select 1"}, "refresh": %q, "client_query_id": "me"}`, tt.mode)
				p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				age := map[string]time.Duration{"fresh": p.Fresh - 61*time.Second, "stale": p.Fresh + time.Minute, "old": p.Lazy + time.Minute}
				asked := time.Now()
				if state != "miss" {
					w.Remember(t, p, asked.Add(-age[state]), "[1]")
				}
				got := told(t, w.Send(t, http.MethodPost, path, body))
				for left := range int(time.Since(asked)/time.Second) + 2 { // as many seconds as have passed
					got = strings.Replace(got, fmt.Sprintf("ttl=%d", 61-left), "ttl=60", 1)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAnswerBesideRun: while a background run for an answer is in progress, cached answers mention it to every caller.
func TestAnswerBesideRun(t *testing.T) {
	w := apitest.New(t)
	const path, body = "/api/projects/1/query/", `{"query": {"kind": "HogQLQuery", "query": "select n from events"}}`
	p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), "[1, 2]")
	if got := told(t, w.Send(t, http.MethodPost, path, body)); !strings.HasPrefix(got, "200 hit") {
		t.Fatalf("before: %s", got)
	}
	ended := make(chan struct{})
	if _, err := w.Runs.Begin(execution.NewRun{
		Query: &execution.Query{ClientID: "other", Key: p.Key, Node: p.Node}, Shows: p, Most: 1, Picked: new(atomic.Int64), Release: func() { close(ended) },
		Answer: func(ctx context.Context) (cache.Answer, error) { <-ctx.Done(); return cache.Answer{}, ctx.Err() },
	}); err != nil {
		t.Fatal(err)
	}
	beside := w.Send(t, http.MethodPost, path, body)
	if got := told(t, beside); !strings.HasSuffix(got, "+ run other, complete false") || !strings.HasPrefix(got, "202 hit") {
		t.Errorf("beside the run: %s", got)
	}
	if got := beside.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control beside a run: %s", got)
	}
	status := w.Send(t, http.MethodGet, path+"other", "")
	const want = `{"query_status":{"id":"other","query_async":true,"team_id":1,"insight_id":null,"dashboard_id":null,"complete":false,"error":false,` +
		`"error_message":null,"error_code":null,"results":null,"start_time":"T","pickup_time":null,"end_time":null,"expiration_time":null,"task_id":null,` +
		`"query_progress":null,"labels":null,"cache_key":"K","bytes_read":null,"budget_remaining_bytes":null,"query_scan":null}}`
	got := strings.Replace(status.Body.String(), p.Key.String(), "K", 1)
	at, _ := apitest.FieldOf(t, status, "query_status").(map[string]any)["start_time"].(string)
	if diff := cmp.Diff(want, strings.Replace(got, at, "T", 1)); diff != "" || status.Code != http.StatusAccepted {
		t.Errorf("status %d (-want +got):\n%s", status.Code, diff)
	}
	cancelledBody := w.Send(t, http.MethodDelete, path+"other/", "")
	if diff := cmp.Diff(`{"message":"The query was cancelled."}`, cancelledBody.Body.String()); diff != "" || cancelledBody.Code != http.StatusOK {
		t.Errorf("cancel %d (-want +got):\n%s", cancelledBody.Code, diff)
	}
	<-ended
	if got := told(t, w.Send(t, http.MethodPost, path, body)); !strings.HasPrefix(got, "200 hit") || strings.Contains(got, "run") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestStatusOfFailure: an error that the caller may see is a 400 with its text, any other a 500 without.
func TestStatusOfFailure(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	run := func(id, hogql string) *httptest.ResponseRecorder {
		t.Helper()
		body := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": %q}, "refresh": "force_async", "client_query_id": %q}`, hogql, id)
		if answer := w.Send(t, http.MethodPost, "/api/projects/1/query/", body); answer.Code != http.StatusAccepted {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		for {
			if answer := w.Send(t, http.MethodGet, "/api/projects/1/query/"+id+"/?show_progress=true", ""); answer.Code != http.StatusAccepted {
				return answer
			}
		}
	}
	tests := []struct {
		id, hogql string
		code      int
		want      map[string]any
	}{
		{"mistake", "select nothing", 400, map[string]any{"error_message": "Unable to resolve field: nothing", "error_code": "hogql_query_error"}},
		{"outage", "select 1", 500, map[string]any{"error_message": nil, "error_code": nil}},
	}
	for _, tt := range tests {
		answer := run(tt.id, tt.hogql)
		status, _ := apitest.FieldOf(t, answer, "query_status").(map[string]any)
		got := map[string]any{"error_message": status["error_message"], "error_code": status["error_code"]}
		if diff := cmp.Diff(tt.want, got); diff != "" || answer.Code != tt.code || status["complete"] != true || status["error"] != true || status["results"] != nil {
			t.Errorf("%s: %d %s (-want +got):\n%s", tt.id, answer.Code, answer.Body, diff)
		}
		for _, name := range []string{"start_time", "pickup_time", "end_time", "expiration_time"} {
			if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(status[name])); err != nil {
				t.Errorf("%s: %s is %v", tt.id, name, status[name])
			}
		}
	}
}

// TestRunsRespectLimits: a background run that could not be admitted is refused at once.
func TestRunsRespectLimits(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	ask := func(n int) *httptest.ResponseRecorder {
		t.Helper()
		return w.Send(t, http.MethodPost, "/api/projects/1/query/", fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": "select %d"}, "refresh": "async"}`, n))
	}
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	answer := ask(1)
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" || apitest.FieldOf(t, answer, "code") != "throttled" {
		t.Errorf("without an allowance: %d %s", answer.Code, answer.Body)
	}
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1000, Per: time.Second})
	w.FillPlaces(t, 1)
	want := w.TooMany(w.Project.ID).Error()
	if answer := ask(2); answer.Code != http.StatusTooManyRequests || !strings.HasSuffix(want, fmt.Sprint(apitest.FieldOf(t, answer, "detail"))) {
		t.Errorf("with a full queue: %d %s", answer.Code, answer.Body)
	}
}

// TestPastLasts: an answer whose range had ended when it was computed does not become stale, even if the end moves with the clock.
func TestPastLasts(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	for date, want := range map[string]string{"-30d": "200 hit; ttl=0", "-1h": "202 hit; ttl=0; detail=revalidating + run me, complete false"} {
		body := fmt.Sprintf(`{"query": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}], "dateRange": {"date_from": "-60d", "date_to": %q, "explicitDate": true}},
			"refresh": "async", "client_query_id": "me"}`, date)
		p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		w.Remember(t, p, time.Now().Add(-p.Fresh-time.Minute), "[1]")
		if diff := cmp.Diff(want, told(t, w.Send(t, http.MethodPost, "/api/projects/1/query/", body))); diff != "" {
			t.Errorf("an old answer up to %s (-want +got):\n%s", date, diff)
		}
	}
}
