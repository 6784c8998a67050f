package endpoints_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestEndpointWrites checks which fields of a write are refused, and that a record can be written back as it was read.
func TestEndpointWrites(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "e", "select 1")
	const path = "/api/projects/@current/endpoints/e/"
	tests := []struct {
		name, body string
		attr       any
		detail     string
	}{
		{"a typo", `{"data_freshness": 900}`, "data_freshness", "Extra inputs are not permitted"},
		{"breakdowns", `{"optional_breakdown_properties": ["a"]}`, "optional_breakdown_properties", "Query kind 'HogQLQuery' does not support optional breakdowns. Supported: RetentionQuery, TrendsQuery."},
		{"buckets", `{"bucket_overrides": {"a": "b"}}`, "bucket_overrides", "Invalid bucket override values: {'a': 'b'}. Valid options: ['minute', 'fifteen_minutes', 'hour', 'day', 'week', 'month']"},
		{"buckets of no table", `{"bucket_overrides": {"a": "day"}}`, "bucket_overrides", "bucket_overrides are for versions that are materialized: set is_materialized too."},
		{"version 0", `{"version": 0}`, "version", "Version 0 not found"},
		{"no such version", `{"version": 9, "description": "d"}`, "version", "Version 9 not found"},
		{"a query for a version", `{"version": 1, "query": {"kind": "HogQLQuery", "query": "select 2"}}`, "query", "Cannot change query when targeting a specific version. Query changes create a new version."},
		{"freshness of none", `{"data_freshness_seconds": 0}`, "data_freshness_seconds", "Ensure this value is greater than or equal to 1."},
		{"freshness of too long", `{"data_freshness_seconds": 604801}`, "data_freshness_seconds", "Ensure this value is less than or equal to 604800."},
		{"freshness as a word", `{"data_freshness_seconds": "day"}`, "data_freshness_seconds", "A valid integer is required."},
		{"materialization, inactive", `{"is_materialized": true, "is_active": false}`, "is_materialized", "Cannot enable materialization on inactive endpoint."},
		{"materialization of a version, inactive", `{"version": 1, "is_materialized": true, "is_active": false}`, "is_materialized", "Cannot enable materialization on inactive endpoint."},
		{"a draft without a query", `{"draft": true}`, "draft", "A draft needs a query."},
		{"an invalid time", `{"deprecated_at": "soon"}`, "deprecated_at", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z."},
		{"an end before the deprecation", `{"deprecated_at": "2026-06-30T00:00:00Z", "sunset_at": "2026-06-29T00:00:00Z"}`, "sunset_at", "A version cannot end before it is deprecated."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.Send(t, http.MethodPatch, path, tt.body)
			if answer.Code != 400 || apitest.FieldOf(t, answer, "attr") != tt.attr || apitest.FieldOf(t, answer, "detail") != tt.detail {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
		})
	}
	if now := w.Registry.Snapshot().Endpoint(w.Project.ID, "e"); !now.UpdatedAt.Equal(e.UpdatedAt) {
		t.Error("a refused write changed the endpoint")
	}
	for _, ok := range []string{
		`{"data_freshness_seconds": 1}`, `{"data_freshness_seconds": 604800}`, `{"data_freshness_seconds": null, "optional_breakdown_properties": [], "bucket_overrides": null}`,
		`{"deprecated_at": "2026-06-30 12:00", "sunset_at": "2026-12-31"}`, `{"deprecated_at": null, "sunset_at": null}`,
	} {
		if answer := w.Send(t, http.MethodPatch, path, ok); answer.Code != 200 {
			t.Errorf("%s: %d %s", ok, answer.Code, answer.Body)
		}
	}
	if got := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current().FreshnessSeconds; got != registry.DefaultFreshness {
		t.Errorf("null sets the freshness to %d", got)
	}
	version := w.Send(t, http.MethodGet, path+"?version=1", "").Body.String()
	if answer := w.Send(t, http.MethodPut, path, strings.Replace(version, `"query":{"kind":"HogQLQuery","query":"select 1"},`, "", 1)); answer.Code != 200 {
		t.Errorf("a record that was read can't be sent back: %d %s", answer.Code, answer.Body)
	}
}

// TestUpdateOfMaterializedEndpoint: a new version inherits the table unless its query can't be materialized, which the answer says. A limit refuses the
// update.
func TestUpdateOfMaterializedEndpoint(t *testing.T) {
	const reason = "Cannot materialize endpoint. Reason: Variables not supported: Variable not used in WHERE clause"
	tests := []struct {
		name, query string
		more        string // fields of the update
		left        int    // queries of the key's rate
		status      int
		version     int // afterwards, the current one
		table       bool
		impossible  any
	}{
		{"while ClickHouse is unavailable", "select 2", "", 9, 200, 2, true, nil},
		{"an impossible table", "select {variables.x} from events", "", 9, 200, 2, false, reason},
		{"an impossible table of a draft, which inherits none", "select {variables.x} from events", `, "draft": true`, 9, 200, 1, true, nil},
		{"the rate is used up before the table is planned", "select 2", "", 1, 429, 1, true, nil},
		{"the rate is used up by one description", "select event from events where event = {variables.x}", `, "is_materialized": false`, 1, 429, 1, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.New(t)
			w.Shards = warehouse.Only(warehousetest.Nowhere(t, schema.NativeLayout()))
			w.Limits = execution.NewLimiter(registry.Rate{Queries: tt.left, Per: time.Hour})
			if _, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: w.Project.ID, Name: "x", Type: registry.VariableString}, apitest.Began); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
				Project: w.Project.ID, Name: "e", Query: []byte(`{"kind": "HogQLQuery", "query": "select 1"}`), Table: registry.TableUpdate{On: new(true)},
			}, apitest.Began); err != nil {
				t.Fatal(err)
			}
			body := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": %q}%s}`, tt.query, tt.more)
			answer := w.Send(t, http.MethodPatch, "/api/projects/@current/endpoints/e/", body)
			if answer.Code != tt.status || apitest.FieldOf(t, answer, "materialization_error") != tt.impossible {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
			now := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current()
			if now.Number != tt.version || (now.Table != nil) != tt.table {
				t.Errorf("the current version is %d, with the table %v", now.Number, now.Table)
			}
		})
	}
}

// TestNoOptionalBreakdowns: null stands for an empty list.
func TestNoOptionalBreakdowns(t *testing.T) {
	w := apitest.New(t)
	if _, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: "e", Query: []byte(`{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan"}}`), OptionalBreakdowns: []string{"plan"},
	}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	answer := w.Send(t, http.MethodPatch, "/api/projects/@current/endpoints/e/", `{"optional_breakdown_properties": null}`)
	if left := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current().OptionalBreakdowns; answer.Code != 200 || len(left) != 0 {
		t.Errorf("%v are left: %d %s", left, answer.Code, answer.Body)
	}
}
