package mcp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
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
