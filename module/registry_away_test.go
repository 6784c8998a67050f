package module

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// node is a server that has started, on an engine and a registry in PostgreSQL.
type node struct {
	database *postgrestest.Server
	dsn      string
	rt       *runtime
	handler  *Handler
	secret   string // of a key with all scopes
}

func startNode(t *testing.T) *node {
	t.Helper()
	engine := embeddedtest.New(t)
	n := &node{database: postgrestest.New(t)}
	n.dsn = n.database.Database(t)
	if err := loader(t)(n.dsn, map[string]any{"clickhouse": engine.DSN()}); err != nil {
		t.Fatal(err)
	}
	becomesReady(t)
	app, err := activeApp()
	if err != nil {
		t.Fatal(err)
	}
	n.rt, n.handler = app.runtime.Load(), &Handler{Health: true, app: app, logger: zap.NewNop()}
	project, err := n.rt.registry.CreateProject(t.Context(), registry.NewProject{Name: "shop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, n.secret, err = n.rt.registry.CreateKey(t.Context(), registry.NewKey{Project: project.ID, Kind: registry.Personal, Scopes: []string{"*"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// send sends a request, to a path of the project unless it begins with a slash.
func (n *node) send(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/api/projects/@current/" + path
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+n.secret)
	w := httptest.NewRecorder()
	nothing := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := n.handler.ServeHTTP(w, r, nothing); err != nil {
		t.Fatal(err)
	}
	return w
}

// must sends a request that must succeed, and returns a member of its answer.
func (n *node) must(t *testing.T, method, path, body, member string) string {
	t.Helper()
	w := n.send(t, method, path, body)
	var out map[string]any
	if w.Code >= http.StatusMultipleChoices || json.Unmarshal(w.Body.Bytes(), &out) != nil || out[member] == nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if number, ok := out[member].(float64); ok {
		return fmt.Sprint(int64(number))
	}
	return fmt.Sprint(out[member])
}

// ready returns the answer of /readyz from a probe without a stored result.
func (n *node) ready(t *testing.T) string {
	t.Helper()
	n.rt.probe.looking <- struct{}{}
	n.rt.probe.at = time.Time{}
	<-n.rt.probe.looking
	w := n.send(t, http.MethodGet, "/readyz", "")
	return fmt.Sprint(w.Code, " ", w.Body)
}

// TestReadyWithoutTheRegistry: a server that has started is ready as long as ClickHouse answers, whatever happens to the registry.
func TestReadyWithoutTheRegistry(t *testing.T) {
	n := startNode(t)
	const all, without = `200 {"status":"ok","clickhouse":"ok","registry":"ok"}`, `200 {"status":"ok","clickhouse":"ok","registry":"unavailable"}`
	eventually.Is(t, "it is ready with its registry", func() bool { return n.ready(t) == all })

	conn, err := pgx.Connect(t.Context(), n.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	held, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `LOCK TABLE analytics_records IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := n.rt.registry.CreateProject(t.Context(), registry.NewProject{Name: "waits"}, time.Now())
		written <- err
	}()
	eventually.Is(t, "the write waits for a lock", func() bool {
		var waits bool
		err := held.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'analytics_records'::regclass)`).Scan(&waits)
		return err == nil && waits
	})
	eventually.Is(t, "it is ready while a write waits", func() bool { return n.ready(t) == all })
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Errorf("the write that waited: %v", err)
	}

	if err := n.database.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := n.ready(t); got != without {
		t.Errorf("without its registry: %s", got)
	}
	if err := n.database.Run(); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the registry answers again", func() bool { return n.ready(t) == all })
}

// needRegistry are the read routes that are refused while the registry is unavailable, with the reasons.
var needRegistry = map[string]string{
	"insights/activity":                          "its log is in the registry's store alone",
	"insights/:name/activity":                    "as above",
	"insights/my_last_viewed":                    "views are in the registry's store alone",
	"insights/trending":                          "as above",
	"cohorts/:name/duplicate_as_static_cohort":   "it writes, though it is a GET",
	"insights?order=-last_viewed_at":             "it is sorted by views",
	"insights?last_viewed_date_from=-7d":         "it asks for views",
	"alerts/:name?checks_date_from=-7d":          "it asks for checks, which are in the registry's store alone",
	"alerts/:name?checks_offset=1":               "as above",
	"insights?order=last_viewed_at&search=sales": "it is sorted by views",
}

// unanswered are routes for programs that write: a GET there names a missing endpoint.
var unanswered = []string{"endpoints/bulk_update_tags", "endpoints/last_execution_times"}

// readsOf are the parameters that routes need in addition to their pattern, and further requests to make.
var readsOf = map[string][]string{
	"/project":                     {"s/@current"},
	"/organizations/:name/member":  {"s/@me"},
	"/organizations/:name/project": {"s/@current"},
	"event_definitions/by_name":    {"?name=view"},
	"events/values":                {"?key=plan"},
	"persons/values":               {"?key=plan"},
	"persons/cohorts":              {"?person_id=PERSON"},
	"insights": {
		"", "?order=name", "?search=sales", "?basic=true", "?order=-last_viewed_at", "?last_viewed_date_from=-7d", "?order=last_viewed_at&search=sales",
	},
	"alerts/:name": {"", "?checks_date_from=-7d", "?checks_offset=1"},
}

// TestReadsWithoutTheRegistry requests all read routes before and after the registry's database is stopped. All except needRegistry answer alike.
func TestReadsWithoutTheRegistry(t *testing.T) {
	n := startNode(t)
	names := n.fill(t)
	type read struct{ name, path string }
	var all []read
	for _, r := range n.rt.api.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		path := r.Pattern
		if at := r.Address(); strings.Contains(path, ":name") {
			name, ok := names[at.Resource]
			if !ok {
				t.Errorf("%s: there is no name to ask for", r.Pattern)
			}
			path = strings.Replace(path, ":name", name, 1)
		}
		if strings.HasPrefix(path, "/") {
			path = "/api" + path
		}
		given := readsOf[r.Pattern]
		if given == nil {
			given = []string{""}
		}
		for _, query := range given {
			all = append(all, read{r.Pattern + query, path + strings.Replace(query, "PERSON", names["persons"], 1)})
		}
	}
	slices.SortFunc(all, func(a, b read) int { return strings.Compare(a.name, b.name) })
	for name := range needRegistry {
		if !slices.ContainsFunc(all, func(r read) bool { return r.name == name }) {
			t.Errorf("%s is no route", name)
		}
	}
	all = slices.DeleteFunc(all, func(r read) bool { return slices.Contains(unanswered, r.name) })
	for _, r := range all {
		if w := n.send(t, http.MethodGet, r.path, ""); w.Code >= http.StatusMultipleChoices {
			t.Errorf("before, %s: %d %s", r.name, w.Code, w.Body)
		}
	}
	if err := n.database.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		w := n.send(t, http.MethodGet, r.path, "")
		_, refused := needRegistry[r.name]
		switch {
		case !refused && w.Code >= http.StatusMultipleChoices:
			t.Errorf("%s: %d %s", r.name, w.Code, w.Body)
		case refused && (w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "The registry is not available")):
			t.Errorf("%s, which needs the registry: %d %v %s", r.name, w.Code, w.Header(), w.Body)
		}
	}
	// Unknown values are left out.
	if got := n.must(t, http.MethodGet, "insights/?order=name", "", "results"); !strings.Contains(got, "last_viewed_at:<nil>") || !strings.Contains(got, "sales") {
		t.Errorf("the list of insights: %s", got)
	}
	if w := n.send(t, http.MethodGet, "alerts/"+names["alerts"]+"/", ""); !strings.Contains(w.Body.String(), `"checks":[]`) || strings.Contains(w.Body.String(), "checks_total") {
		t.Errorf("the alert: %s", w.Body)
	}
}

// fill creates one of everything that is named in the address of a read, and returns the names by resource.
func (n *node) fill(t *testing.T) map[string]string {
	t.Helper()
	post := func(path, body, member string) string {
		t.Helper()
		return n.must(t, http.MethodPost, path, body, member)
	}
	first := func(path string) string {
		t.Helper()
		w := n.send(t, http.MethodGet, path, "")
		var list struct {
			Results []map[string]any `json:"results"`
		}
		if json.Unmarshal(w.Body.Bytes(), &list) != nil || len(list.Results) == 0 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return fmt.Sprint(list.Results[0]["id"])
	}
	eventually.Is(t, "the tables are there", func() bool {
		return n.send(t, http.MethodPost, "query/", `{"query": {"kind": "HogQLQuery", "query": "select count() from events"}}`).Code == http.StatusOK
	})
	imported := post("imports/", `{"type":"person","distinct_ids":["ann"],"properties":{"plan":"pro"}}
{"event":"view","distinct_id":"ann","timestamp":"`+time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)+`","properties":{"plan":"pro"}}
`, "id")
	eventually.Is(t, "the file is imported", func() bool { return n.must(t, http.MethodGet, "imports/"+imported+"/", "", "status") == "completed" })
	insight := post("insights/", `{"name": "sales", "saved": true, "query": {"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "view"}]}}}`, "id")
	if w := n.send(t, http.MethodPost, "insights/viewed/", `{"insight_ids": [`+insight+`]}`); w.Code != http.StatusCreated {
		t.Fatalf("viewing: %d %s", w.Code, w.Body)
	}
	post("endpoints/", `{"name": "daily", "query": {"kind": "HogQLQuery", "query": "select 1 as one"}}`, "name")
	names := map[string]string{
		"endpoints": "daily", "imports": imported, "insights": insight, "/organizations": "@current", "/users": "@me", "/personal_api_keys": "@current",
		"actions":           post("actions/", `{"name": "viewed", "steps": [{"event": "view"}]}`, "id"),
		"annotations":       post("annotations/", `{"content": "deployed", "scope": "project"}`, "id"),
		"cohorts":           post("cohorts/", `{"name": "paying", "filters": {"properties": {"type": "AND", "values": [{"type": "person", "key": "plan", "value": "pro", "operator": "exact"}]}}}`, "id"),
		"dashboards":        post("dashboards/", `{"name": "all"}`, "id"),
		"insight_variables": post("insight_variables/", `{"name": "customer", "type": "String", "default_value": "x"}`, "id"),
		"alerts": post("alerts/", `{"insight": `+insight+`, "subscribed_users": [], "condition": {"type": "absolute_value"}, "calculation_interval": "daily",
			"config": {"type": "TrendsAlertConfig", "series_index": 0}, "threshold": {"configuration": {"type": "absolute", "bounds": {"upper": 9}}}}`, "id"),
		"personal_api_keys":       post("personal_api_keys/", `{"label": "one", "scopes": ["query:read"]}`, "id"),
		"project_secret_api_keys": post("project_secret_api_keys/", `{"label": "two", "scopes": ["query:read"]}`, "id"),
		"query":                   "again",
		"event_definitions":       first("event_definitions/"),
		"property_definitions":    first("property_definitions/"),
		"persons":                 first("persons/"),
		"events":                  first("events/"),
	}
	if w := n.send(t, http.MethodPost, "query/", `{"query": {"kind": "HogQLQuery", "query": "select 2"}, "refresh": "force_async", "client_query_id": "again"}`); w.Code >= http.StatusMultipleChoices {
		t.Fatalf("a query in the background: %d %s", w.Code, w.Body)
	}
	return names
}
