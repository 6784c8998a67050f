package routes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// inSecondsFrom10 finds numbers of seconds from ten on.
var inSecondsFrom10 = regexp.MustCompile(`(;t=|^)([0-9]{2,})`)

// left returns the fields of an answer that describe quotas, and its status. Times are rounded up to tens of seconds, because some may have passed.
func left(answer *httptest.ResponseRecorder) string {
	rounded := func(text string) string {
		return inSecondsFrom10.ReplaceAllStringFunc(text, func(found string) string {
			parts := inSecondsFrom10.FindStringSubmatch(found)
			n, _ := strconv.Atoi(parts[2])
			return fmt.Sprint(parts[1], (n+9)/10*10)
		})
	}
	h := answer.Header()
	return fmt.Sprintf("%d %s | %s | %s", answer.Code, h.Get("RateLimit-Policy"), rounded(h.Get("RateLimit")), rounded(h.Get("Retry-After")))
}

// TestQuotasOfAnswers: an answer that counted or was refused says what is left, even if ClickHouse then failed; a stored answer says nothing.
func TestQuotasOfAnswers(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 4, Per: time.Hour})
	w.NewEndpoint(t, "free", "select 1")
	e := w.NewEndpoint(t, "orders", "select 2")
	cached, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{"limit": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, cached, time.Now(), `[1,"a"]`)
	run := func(endpoint, body string) string {
		return left(w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/"+endpoint, body))
	}
	set := func(body string) {
		t.Helper()
		if answer := w.Send(t, http.MethodPatch, "/api/projects/@current/endpoints/orders/", body); answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
		}
	}
	set(`{"rate_limit": "2/m"}`)
	const both, key = `"endpoint";q=2;w=60;pk=:b3JkZXJz:, "key";q=4;w=3600`, `"key";q=4;w=3600`
	for i, tt := range []struct{ got, want string }{
		{run("orders/run", `{"limit": 7}`), "200  |  | "},
		{run("orders/run", `{"offset": 7}`), "400  |  | "},
		{run("orders/run", `{}`), "503 " + both + ` | "endpoint";r=1;t=30;pk=:b3JkZXJz:, "key";r=3;t=900 | 1`},
		{run("orders/run.csv", `{}`), "503 " + both + ` | "endpoint";r=0;t=30;pk=:b3JkZXJz:, "key";r=2;t=900 | 1`},
		{run("orders/run", `{}`), "429 " + both + ` | "endpoint";r=0;t=30;pk=:b3JkZXJz:, "key";r=2;t=900 | 30`},
		{run("orders/run.csv", `{}`), "429 " + both + ` | "endpoint";r=0;t=30;pk=:b3JkZXJz:, "key";r=2;t=900 | 30`},
		{run("orders/run", `{"limit": 7}`), "200  |  | "}, // stored results still cost nothing
		{run("free/run", `{}`), "503 " + key + ` | "key";r=1;t=900 | 1`},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", i+1, diff)
		}
	}
	ask := func(body string) string {
		return left(w.Send(t, http.MethodPost, "/api/projects/@current/query/", body))
	}
	const query = `"query": {"kind": "HogQLQuery", "query": "select 1"}`
	for i, tt := range []struct{ got, want string }{
		{ask(`{` + query + `}`), "503 " + key + ` | "key";r=0;t=900 | 1`},
		{ask(`{` + query + `}`), "429 " + key + ` | "key";r=0;t=900 | 900`},
		{ask(`{"refresh": "async", ` + query + `}`), "429 " + key + ` | "key";r=0;t=900 | 900`},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("answer %d of the query route (-want +got):\n%s", i+1, diff)
		}
	}
	set(`{"rate_limit": null}`)
	w.EndpointRate = registry.Rate{Queries: 600, Per: time.Minute}
	want := `429 "endpoint";q=600;w=60;pk=:b3JkZXJz:, "key";q=4;w=3600 | "endpoint";r=600;pk=:b3JkZXJz:, "key";r=0;t=900 | 900`
	if diff := cmp.Diff(want, run("orders/run", `{}`)); diff != "" {
		t.Errorf("with the server's default (-want +got):\n%s", diff)
	}

	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1_000_000, Per: time.Second})
	w.FillPlaces(t, 1)
	want = `429 "key";q=1000000;w=1 | "key";r=1000000 | 1`
	for _, refresh := range []string{"blocking", "async"} {
		if diff := cmp.Diff(want, ask(`{"refresh": "`+refresh+`", `+query+`}`)); diff != "" {
			t.Errorf("of a full queue, %s (-want +got):\n%s", refresh, diff)
		}
	}

	w.Places = admission.New(apitest.PlacesFor(1))

	counted := map[string]float64{"/concurrency": 2, "/key": 2, "orders/endpoint": 2, "orders/key": 1}
	if diff := cmp.Diff(counted, refusals(t, w)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	rare := registry.Rate{Queries: 7, Per: time.Hour}
	limited := *e
	limited.RateLimit = rare
	if err := w.Count(w.Key, &execution.Query{Endpoint: &limited}, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.Send(t, http.MethodDelete, "/api/projects/@current/endpoints/orders/", "")
	if left := w.Limits.OfEndpoint(e.ID, rare).Left(time.Now()); left != 7 {
		t.Errorf("of what a deleted endpoint may run %d are left", left)
	}
	if counted := refusals(t, w); len(counted) != 2 {
		t.Errorf("after the endpoint was deleted %v are counted", counted)
	}
}

// refusals returns the queries that limits refused, by endpoint and limit.
func refusals(tb testing.TB, w *apitest.World) map[string]float64 {
	tb.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Metrics)
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "caddy_analytics_refused_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["project"] != fmt.Sprint(w.Project.ID) {
				tb.Errorf("a refusal of project %s", labels["project"])
			}
			found[labels["endpoint"]+"/"+labels["limit"]] = metric.GetCounter().GetValue()
		}
	}
	return found
}

// TestQuotasOfTokens: a page with a token can also read what is left of the token's own rate.
func TestQuotasOfTokens(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 9, Per: time.Hour})
	w.NewEndpoint(t, "orders", "select 1")
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	token := w.NewToken(t, secret, `{"endpoints": ["orders"], "rate": "1/m", "origins": ["`+site+`"]}`)
	const policy = `"key";q=9;w=3600, "token";q=1;w=60`
	for _, want := range []string{"503 " + policy + ` | "key";r=8;t=400, "token";r=0;t=60 | 1`, "429 " + policy + ` | "key";r=8;t=400, "token";r=0;t=60 | 60`} {
		answer := w.RunWith(t, token, "orders", `{}`, "Origin", site)
		if diff := cmp.Diff(want, left(answer)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		exposed := strings.Split(answer.Header().Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{"Content-Disposition", "RateLimit", "RateLimit-Policy", "Retry-After"} {
			if !strings.Contains(" "+strings.Join(exposed, " ")+" ", " "+name+" ") {
				t.Errorf("pages cannot read %s: %s", name, exposed)
			}
		}
	}
}

// TestSharedRefusals: a caller that shares another's computation shares refusals only by limits that apply to both.
func TestSharedRefusals(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	e := w.NewEndpoint(t, "orders", "select 1")
	w.EndpointRate = registry.Rate{Queries: 1, Per: time.Hour}
	other, _ := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	for _, tt := range []struct {
		name, owner string
		limit       execution.LimitName
		want        int
	}{
		{"of another key", other.ID, execution.LimitKey, http.StatusServiceUnavailable},
		{"of a token", "some token", execution.LimitToken, http.StatusServiceUnavailable},
		{"of the endpoint", e.ID, execution.LimitEndpoint, http.StatusTooManyRequests},
		{"of the project", "", execution.LimitConcurrency, http.StatusTooManyRequests},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.Limits.Forget(e.ID)
			rq := w.Asks(http.MethodPost, "/")
			rq.Start = time.Now()
			p, err := rq.PlanRun(e, []byte(fmt.Sprintf(`{"limit": %d}`, len(tt.name))))
			if err != nil {
				t.Fatal(err)
			}
			refused := w.TooMany(w.Project.ID)
			if tt.owner != "" {
				refused = &execution.LimitError{Owner: tt.owner, Limit: tt.limit, Detail: "no", Wait: time.Second}
			}
			began := make(chan struct{})
			before := w.Cache.Stats().Coalesced
			var first sync.WaitGroup
			first.Go(func() {
				_, err := w.Cache.Do(t.Context(), p.Key, p.Policy(rq.Start), func(context.Context) (*cache.Entry, error) {
					close(began)
					for w.Cache.Stats().Coalesced == before {
						runtime.Gosched()
					}
					return nil, refused
				})
				if !errors.Is(err, refused) {
					t.Errorf("the first caller gets %v", err)
				}
			})
			<-began
			_, err = rq.Answer(p)
			first.Wait()
			if got := api.ErrorOf(err).Status; got != tt.want {
				t.Errorf("the second caller gets %d: %v", got, err)
			}
			own := w.Limits.OfEndpoint(e.ID, w.EndpointRate).Left(time.Now())
			if ran := tt.want == http.StatusServiceUnavailable; ran != (own == 0) {
				t.Errorf("%d queries of the endpoint are left", own)
			}
		})
	}
}

// TestRefusedRefresh: a stale answer whose refresh a limit refused stays in use, and its caller is not told.
func TestRefusedRefresh(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	e := w.NewEndpoint(t, "orders", "select 1")
	p, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now().Add(-p.Fresh-time.Minute), `[1,"a"]`)
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	ask := func() {
		t.Helper()
		answer := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/orders/run", `{}`)
		if got, want := left(answer), "200  |  | "; got != want || fmt.Sprint(apitest.FieldOf(t, answer, "results")) != "[[1 a]]" {
			t.Fatalf("%s: %s %+v", got, answer.Body, w.Cache.Stats())
		}
	}
	for ask(); w.Cache.Stats().RefreshFailures == 0; ask() { // one of them begins a refresh
		runtime.Gosched()
	}
	for range 3 {
		ask()
	}
	if failures := w.Cache.Stats().RefreshFailures; failures != 1 {
		t.Errorf("%d refreshes were refused, want 1", failures)
	}
}
