package warehouse_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
)

// TestHoldSeesOthers: a server that holds the writers for a backup after another server has merged two people knows of that when it writes next.
func TestHoldSeesOthers(t *testing.T) {
	dir := t.TempDir()
	places, project := admission.New(admission.Limits{Places: 2, Project: 2}), clickhousetest.Project()
	_, first := warehousetest.Open(t, dir, clickhouse.Config{DSN: engine.DSN()})
	_, second := warehousetest.Open(t, dir, clickhouse.Config{DSN: engine.DSN()})
	a, b := &house{first, places, project}, &house{second, places, project}
	a.capture(t, event("ann", "2024-03-04T10:00:00Z"))
	a.capture(t, event("bob", "2024-03-04T10:00:00Z"))
	b.capture(t, fmt.Sprintf(
		`{"event":"$merge_dangerously","distinct_id":"ann","timestamp":"2024-03-04T11:00:00Z","uuid":%q,"properties":{"alias":"bob"}}`, uuid.NewString(),
	))
	release, _, err := a.Hold(t.Context(), []int64{a.project})
	if err != nil {
		t.Fatal(err)
	}
	release()
	a.capture(t, `{"event":"$set","distinct_id":"bob","timestamp":"2024-03-04T12:00:00Z","uuid":"`+uuid.NewString()+`","properties":{"$set":{"plan":"pro"}}}`)
	ann := a.person(t, "ann")
	if bob := a.person(t, "bob"); bob != ann {
		t.Errorf("after the merge, ann is %s, and bob %s", ann, bob)
	}
	rows := clickhousetest.Ask(t, client, a.project, "SELECT toString(person_id) FROM events WHERE event = '$set'")
	if want := fmt.Sprintf("[%q]", ann); len(rows) != 1 || rows[0] != want {
		t.Errorf("the event after the merge is of %s, want %s", rows, want)
	}
}
