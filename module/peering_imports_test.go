package module

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestImportsOfOtherServers: clients ask servers about imports that were sent to another server, as through a load balancer.
func TestImportsOfOtherServers(t *testing.T) {
	s := startServers(t, 3)
	_, secret := s.newKey(t, s.project.ID, registry.Personal, "batch_import:read", "batch_import:write")
	_, reader := s.newKey(t, s.project.ID, registry.Personal, "batch_import:read")
	other, err := s.all[0].registry.CreateProject(t.Context(), registry.NewProject{Name: "other", Timezone: "UTC"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := s.newKey(t, other.ID, registry.Personal, "batch_import:read", "batch_import:write")
	s.sameRegistry(t)
	add := func(n int) string {
		t.Helper()
		got := s.ask(n, secret, "imports/", `{"event":"a","distinct_id":"b"}`)
		if got.Code != http.StatusCreated {
			t.Fatalf("importing on server %d: %d %s", n, got.Code, got.Body)
		}
		return fmt.Sprint(apitest.FieldOf(t, got, "id"))
	}
	get := func(n int, secret, id string) *httptest.ResponseRecorder {
		return s.send(n, http.MethodGet, secret, "imports/"+id+"/", "")
	}
	listed := func(n int, secret string) (ids []string) {
		t.Helper()
		got := s.send(n, http.MethodGet, secret, "imports/", "")
		results, _ := apitest.FieldOf(t, got, "results").([]any)
		for _, one := range results {
			fields, _ := one.(map[string]any)
			ids = append(ids, fmt.Sprint(fields["id"]))
		}
		return ids
	}
	first := add(0)
	eventually.Is(t, "it is at work", func() bool { return apitest.FieldOf(t, get(0, secret, first), "status") == "running" })
	last := add(2)
	eventually.Is(t, "the other one is at work too", func() bool { return apitest.FieldOf(t, get(2, secret, last), "status") == "running" })
	for n := range s.all {
		if got, want := get(n, reader, first), get(0, secret, first); got.Code != http.StatusOK || got.Body.String() != want.Body.String() {
			t.Errorf("server %d: %d %s, want %s", n, got.Code, got.Body, want.Body)
		}
		if diff := cmp.Diff([]string{last, first}, listed(n, reader)); diff != "" {
			t.Errorf("server %d lists (-want +got):\n%s", n, diff)
		}
		if got := get(n, foreign, first); got.Code != http.StatusNotFound {
			t.Errorf("server %d, for another project: %d %s", n, got.Code, got.Body)
		}
		if got := listed(n, foreign); len(got) > 0 {
			t.Errorf("server %d lists %v for another project", n, got)
		}
	}
	for _, tt := range []struct {
		name, secret, id string
		want             int
	}{
		{"a key that may only read", reader, first, http.StatusForbidden},
		{"a key without the scope", s.secret, first, http.StatusForbidden},
		{"a key of another project", foreign, first, http.StatusNotFound},
		{"an id that nobody knows", secret, "019e0000-0000-7000-8000-000000000000", http.StatusNotFound},
	} {
		if got := s.send(1, http.MethodDelete, tt.secret, "imports/"+tt.id+"/", ""); got.Code != tt.want {
			t.Errorf("cancelling, %s: %d %s", tt.name, got.Code, got.Body)
		}
	}
	if got := s.send(1, http.MethodDelete, secret, "imports/"+first+"/", ""); got.Code != http.StatusNoContent {
		t.Errorf("cancelling an import of another server: %d %s", got.Code, got.Body)
	}
	eventually.Is(t, "it is cancelled", func() bool { return apitest.FieldOf(t, get(2, secret, first), "status") == "cancelled" })
	if got := s.send(2, http.MethodDelete, secret, "imports/"+first+"/", ""); got.Code != http.StatusNoContent || get(0, secret, first).Code != http.StatusNotFound {
		t.Errorf("forgetting it: %d %s", got.Code, got.Body)
	}
	if err := s.all[2].fleet.peers.Close(); err != nil {
		t.Fatal(err)
	}
	if got := get(1, secret, last); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
		t.Errorf("of what a server may know that does not answer: %d %s, Retry-After %q", got.Code, got.Body, got.Header().Get("Retry-After"))
	}
	if got := listed(1, secret); len(got) > 0 {
		t.Errorf("the list has %v, and nobody answers who knows it", got)
	}
}
