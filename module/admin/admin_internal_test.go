package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// began is when everything in a test was created.
var began = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func open(tb testing.TB) *registry.Registry {
	tb.Helper()
	return sqlitetest.Open(tb, registry.Options{})
}

func newProject(tb testing.TB, reg *registry.Registry) *registry.Project {
	tb.Helper()
	p, err := reg.CreateProject(tb.Context(), registry.NewProject{Name: "p", Timezone: "Europe/Berlin"}, began)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestServe: a route answers its methods with JSON, its mistakes have a status, and a server that was entered is left.
func TestServe(t *testing.T) {
	reg := open(t)
	at := map[string]*Route{}
	for _, route := range Routes() {
		at[route.Pattern] = &route
	}
	tests := []struct {
		name, method, pattern, query, body string
		refused                            error
		want                               string
	}{
		{name: "an answer", method: "GET", pattern: "/analytics/keys", want: `200 application/json {"keys":[]}`},
		{name: "a mistake", method: "GET", pattern: "/analytics/keys", query: "?project=x", want: `400 "x" is not a project id`},
		{name: "nothing there", method: "GET", pattern: "/analytics/alerts", query: "?project=999", want: "404 project 999: not found"},
		{name: "an unknown field", method: "POST", pattern: "/analytics/tokens/rotate", body: `{"x":1}`, want: `400 reading the request: json: unknown field "x"`},
		{name: "a mistake before the first line", method: "POST", pattern: "/analytics/backups/list", body: `x`, want: "400 reading the request: invalid character 'x' looking for beginning of value"},
		{name: "another method", method: "PUT", pattern: "/analytics/keys", refused: errors.New("never asked"), want: "405 method PUT is not allowed here"},
		{name: "no server", method: "GET", pattern: "/analytics/keys", refused: errors.New("not started"), want: "0 not started"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entered, left := 0, 0
			enter := func() (*Server, func(), error) {
				if tt.refused != nil {
					return nil, nil, tt.refused
				}
				entered++
				return &Server{Registry: reg}, func() { left++ }, nil
			}
			answer := httptest.NewRecorder()
			err := at[tt.pattern].Serve(answer, httptest.NewRequest(tt.method, tt.pattern+tt.query, strings.NewReader(tt.body)), enter)
			got := fmt.Sprintf("%d %s %s", answer.Code, answer.Header().Get("Content-Type"), answer.Body)
			if err != nil {
				refusal, _ := errors.AsType[caddy.APIError](err)
				got = fmt.Sprintf("%d %v", refusal.HTTPStatus, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if entered != left {
				t.Errorf("entered %d times, left %d times", entered, left)
			}
		})
	}
}

// TestCreateKeyNumbersLabels: an operator may reuse a label, and a project's secret keys get distinct ones.
func TestCreateKeyNumbersLabels(t *testing.T) {
	reg := open(t)
	project, other := newProject(t, reg), newProject(t, reg)
	tests := []struct {
		name    string
		project int64
		kind    registry.KeyKind
		label   string
		want    string
	}{
		{"the first", project.ID, registry.Secret, "backend", "backend"},
		{"the second", project.ID, registry.Secret, "backend", "backend 2"},
		{"the third", project.ID, registry.Secret, " backend ", "backend 3"},
		{"a personal one", project.ID, registry.Personal, "backend", "backend"},
		{"one of another project", other.ID, registry.Secret, "backend", "backend"},
		{"a long one", project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 40)},
		{"a long one again", project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 38) + " 2"},
		{"none", project.ID, registry.Secret, "", ""},
		{"none again", project.ID, registry.Secret, "", ""},
	}
	for _, tt := range tests {
		wanted := registry.NewKey{Project: tt.project, Kind: tt.kind, Label: tt.label, Scopes: []string{"endpoint:read"}}
		key, _, err := addKey(t.Context(), reg, wanted, began)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, key.Label); diff != "" {
			t.Errorf("%s: label (-want +got):\n%s", tt.name, diff)
		}
	}
	_, _, err := addKey(t.Context(), reg, registry.NewKey{Project: project.ID, Kind: registry.Secret, Label: "x", Scopes: []string{"*"}}, began)
	if got := api.ErrorOf(err); got.Status != 400 || got.Attr != "scopes" {
		t.Errorf("another mistake is answered with %v", got)
	}
}

// TestPurgeProject: the answer counts all that a purge removed.
func TestPurgeProject(t *testing.T) {
	reg := open(t)
	project := newProject(t, reg)
	asked := registry.Deletion{Names: []registry.DeletedName{{Name: "someone"}}}
	added, err := reg.AddDeletions(t.Context(), project.ID, []registry.Deletion{asked}, began)
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.EraseDeletions(t.Context(), project.ID, added, began); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.CreateAnnotation(t.Context(), project.ID, registry.AnnotationFields{Deleted: registry.To(true)}, "key", began); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
	r.SetPathValue("id", fmt.Sprint(project.ID))
	got, err := (&Server{Registry: reg}).purgeProject(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(adminapi.Purged{Project: project.ID, Annotations: 1, Deletions: 1}, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

// TestAdminErrors: an operator's request that could not be done now says so, as the API does.
func TestAdminErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"a mistake":                      {badRequest("no such thing"), http.StatusBadRequest},
		"a project that is not there":    {registry.ErrNotFound, http.StatusNotFound},
		"a registry that is away":        {registry.ErrUnavailable, http.StatusServiceUnavailable},
		"a ClickHouse that is away":      {&clickhouse.Error{Kind: clickhouse.Unavailable}, http.StatusServiceUnavailable},
		"a ClickHouse that is not known": {warehouse.ErrStillLooking, http.StatusServiceUnavailable},
		"a full queue":                   {admission.ErrQueueFull, http.StatusServiceUnavailable},
		"rows that can't be deleted":     {&deletions.RefusedError{Reason: "a view"}, http.StatusConflict},
		"anything else":                  {errors.New("a bug"), http.StatusInternalServerError},
	} {
		answer, ok := errors.AsType[caddy.APIError](apiError(fmt.Errorf("doing it: %w", tt.err)))
		if !ok || answer.HTTPStatus != tt.want || !strings.Contains(answer.Message, tt.err.Error()) {
			t.Errorf("%s: %d %s, want %d", name, answer.HTTPStatus, answer.Message, tt.want)
		}
	}
}
