package apitest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// ActionsPath is the path of actions.
const ActionsPath = "/api/projects/@current/actions/"

// NewForActions returns a world whose key may write actions.
func NewForActions(tb testing.TB) *World {
	tb.Helper()
	w := New(tb)
	w.LoseTables(tb, schema.NativeLayout())
	w.Key, w.Secret = w.NewKey(tb, w.Project.ID, registry.Personal, "action:write")
	return w
}

// NewAction adds an action over the API, and returns its record.
func (w *World) NewAction(tb testing.TB, body string) map[string]any {
	tb.Helper()
	answer := w.Send(tb, http.MethodPost, ActionsPath, body)
	if answer.Code != http.StatusCreated {
		tb.Fatalf("POST %s answers %d %s", body, answer.Code, answer.Body)
	}
	var record map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &record); err != nil {
		tb.Fatal(err)
	}
	return record
}
