package mcp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestMCPReadsHeldTables: the tool reads the tables of system.* that its caller may read.
func TestMCPReadsHeldTables(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "insight:read")
	_, other := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	const query = `"select id, name from system.insights where not deleted"`
	p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": ` + query + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1, "mine"]`)
	for _, tt := range []struct{ name, secret, want string }{
		{"with the scope", w.Secret, `{"success":true,"content":"n|a<b\n1|mine"}`},
		{"without", other, `{"success":false,"content":"You don't have access to table ` + "`system.insights`" + `. The key needs the scope 'insight:read'."}`},
	} {
		got := w.SendAs(t, tt.secret, http.MethodPost, "/api/projects/@current/mcp_tools/execute_sql/", `{"args": {"query": `+query+`}}`)
		if diff := cmp.Diff(tt.want, got.Body.String()); diff != "" || got.Code != http.StatusOK {
			t.Errorf("%s: %d (-want +got):\n%s", tt.name, got.Code, diff)
		}
	}
}

// TestTextWithoutMemory: a large table waits for memory before it is written as text, but asks only for what it needs, and for no more than there can be.
func TestTextWithoutMemory(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select event from events"}}`))
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf(`[%q]`, strings.Repeat("x", memory.Large))
	large := slices.Repeat([]string{row}, 5)
	const size, half = 20 * memory.Large, 10 * memory.Large
	for _, tt := range []struct {
		name, args string
		rows       []string
		taken      int64
		want       int
	}{
		{"a small one", "", []string{`["x"]`}, half, http.StatusOK},
		{"cells that are cut", "", large, half, http.StatusOK},
		{"whole cells", `, "truncate": false`, large, half, http.StatusServiceUnavailable},
		{"whole cells while nothing else is lent", `, "truncate": false`, large, 0, http.StatusOK},
		{"many cells", "", slices.Repeat([]string{`["xxxxxxxx"]`}, 100_000), half, http.StatusServiceUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.API.Memory = memory.NewPool(size)
			other := &memory.Loan{Pool: w.API.Memory, Project: w.Project.ID + 1}
			if err := other.Take(t.Context(), tt.taken); err != nil {
				t.Fatal(err)
			}
			w.Remember(t, p, time.Now(), tt.rows...)
			got := w.Send(t, http.MethodPost, "/api/projects/@current/mcp_tools/execute_sql/", `{"args": {"query": "select event from events"`+tt.args+`}}`)
			if got.Code != tt.want {
				t.Errorf("answered %d %.300s, want %d", got.Code, got.Body, tt.want)
			}
			if lent := w.API.Memory.Lent(); lent != tt.taken {
				t.Errorf("%d bytes are lent after the answer, want %d", lent, tt.taken)
			}
		})
	}
}
