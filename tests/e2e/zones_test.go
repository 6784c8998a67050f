package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// hostileZones are names that the engine would accept as time zones, and cache or open as files.
var hostileZones = []string{
	"file:/proc/self/fd/3", "Fixed/UTC+01:02:03", "libc:localtime", "/etc/passwd", "../../etc/passwd", "posixrules", "europe/berlin", "",
}

// TestHostileZones sends zones that the engine must not see, in every way possible in a request. Afterwards it uses a single table, which a hanging
// thread of the engine would block.
func TestHostileZones(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "zone", "type": "String", "default_value": "Europe/Berlin"})
	publish(t, c, "times", "select toString(toTimeZone(toDateTime('2026-01-01 00:00:00'), {variables.zone}))")
	if got := must(t, c, http.StatusOK, http.MethodPost, "endpoints/times/run", map[string]any{"variables": map[string]any{"zone": "Asia/Tokyo"}})["results"]; !strings.Contains(fmt.Sprint(got), "09:00:00") {
		t.Errorf("a zone by a variable gives %v", got)
	}
	for _, zone := range hostileZones {
		quoted := "'" + zone + "'"
		for _, query := range []string{
			"select toTimeZone(now(), " + quoted + ")",
			"select now(" + quoted + ")",
			"select toStartOfDay(timestamp, " + quoted + ") from events",
			"with " + quoted + " as z select formatDateTime(now(), '%H', z)",
			"select " + quoted + " as z, toDateTime('2026-01-01', z)",
			"select arrayMap(x -> toTimeZone(now(), x), [" + quoted + "])",
			"select toTimeZone(now(), concat(" + quoted + ", ''))",
			"select toTimeZone(timestamp, properties.zone) from events",
			`select JSONExtract('{"a": 1}', 'a', 'DateTime(\'` + zone + `\')')`,
			`select JSONExtract(properties, 'Array(Nullable(DateTime64(3, \'` + zone + `\')))') from events`,
		} {
			if answer := c.HogQL(t, query); answer.Status != http.StatusBadRequest {
				t.Errorf("%s\nanswers %d: %.300s", query, answer.Status, answer.Raw)
			}
		}
		values := map[string]any{"query": map[string]any{
			"kind": "HogQLQuery", "query": "select toTimeZone(now(), {z})", "values": map[string]any{"z": zone},
		}}
		if answer := c.Do(t, http.MethodPost, "query/", values); answer.Status != http.StatusBadRequest {
			t.Errorf("zone %q as a value answers %d: %.300s", zone, answer.Status, answer.Raw)
		}
		body := map[string]any{"variables": map[string]any{"zone": zone}}
		if answer := c.Do(t, http.MethodPost, "endpoints/times/run", body); answer.Status != http.StatusBadRequest {
			t.Errorf("zone %q as a variable answers %d: %.300s", zone, answer.Status, answer.Raw)
		}
	}
	if rows := c.Query(t, "select count(), 'after all' from events"); len(rows) != 1 {
		t.Errorf("after that, a table answers %v", rows)
	}
}
