package registry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC)

// moment is now as every store holds it.
var moment = now.Truncate(time.Microsecond)

// quiet leaves the background work to other tests.
var quiet = registry.Options{Poll: time.Hour, Gather: time.Hour, Uses: time.Hour}

// openAt opens a registry on a file, and closes it with the test.
func openAt(tb testing.TB, path string, opts registry.Options) *registry.Registry {
	tb.Helper()
	r, err := registry.Open(tb.Context(), openStore(tb, path), opts)
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return r
}

func openStore(tb testing.TB, path string) registry.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), path)
	if err != nil {
		tb.Fatalf("sqlite.Open() = %v", err)
	}
	return s
}

// fresh opens a registry on a new file, with one project.
func fresh(tb testing.TB) (*registry.Registry, *registry.Project) {
	tb.Helper()
	r := openAt(tb, sqlitetest.Path(tb), quiet)
	return r, must(r.CreateProject(tb.Context(), registry.NewProject{Name: "Shop"}, now))(tb)
}

// must unwraps a result that can't fail: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// mistake is the field mistake in err, nil if there is none.
func mistake(t *testing.T, err error) *registry.FieldError {
	t.Helper()
	found, ok := errors.AsType[*registry.FieldError](err)
	if !ok && err != nil {
		t.Errorf("the error is no field mistake: %v", err)
	}
	return found
}

// projectRecord is all of a project that a snapshot shows.
type projectRecord struct {
	Project       registry.Project
	Keys          []registry.Key
	Endpoints     []registry.Endpoint
	Variables     []registry.Variable
	Insights      []registry.Insight
	Listed        []int64 // numbers of insights in the order of a list
	Dashboards    []registry.Dashboard
	Properties    []registry.PropertyDefinition
	GroupTypes    []registry.GroupType
	Cohorts       []*registry.Cohort
	SchemaCohorts []registry.SchemaCohort
	Actions       []registry.Action           // in the order of a list
	Defined       []registry.ActionDefinition // including deleted ones
	Alerts        []*registry.Alert
	TokenSecrets  []registry.TokenSecret
	Deleted       []registry.Insight   // of the first numbers
	DeletedBoards []registry.Dashboard // of the first numbers
	Tiles         []registry.Tile      // of those insights, where they stand
}

// records is all that a snapshot shows, through its public methods.
func records(s *registry.Snapshot) []projectRecord {
	var all []projectRecord
	for _, p := range s.Projects() {
		rec := projectRecord{Project: *p, Properties: s.PropertyDefinitions(p.ID), GroupTypes: s.GroupTypes(p.ID), TokenSecrets: s.TokenSecrets(p.ID), Cohorts: s.Cohorts(p.ID), SchemaCohorts: s.Schema(p.ID).Cohorts}
		for _, k := range s.Keys(p.ID) {
			rec.Keys = append(rec.Keys, *k)
		}
		for _, e := range s.Endpoints(p.ID) {
			rec.Endpoints = append(rec.Endpoints, *e)
		}
		for _, v := range s.Variables(p.ID) {
			rec.Variables = append(rec.Variables, *v)
		}
		for _, i := range s.Insights(p.ID) {
			rec.Insights = append(rec.Insights, *i)
		}
		for _, d := range s.Dashboards(p.ID) {
			rec.Dashboards = append(rec.Dashboards, *d)
		}
		for _, a := range s.Actions(p.ID) {
			rec.Actions = append(rec.Actions, *a)
		}
		rec.Defined, rec.Alerts = s.Schema(p.ID).Actions, s.Alerts(p.ID)
		page, total := s.InsightPage(p.ID, 0, len(rec.Insights)+1)
		for _, i := range page {
			rec.Listed = append(rec.Listed, i.ID)
		}
		if total != len(rec.Insights) {
			panic("the list of insights is not whole")
		}
		for id := range int64(30) {
			if i := s.AnyInsight(p.ID, id); i != nil && i.Deleted {
				rec.Deleted = append(rec.Deleted, *i)
			}
			if d := s.AnyDashboard(p.ID, id); d != nil && d.Deleted {
				rec.DeletedBoards = append(rec.DeletedBoards, *d)
			}
			for _, t := range s.TilesOf(p.ID, id) {
				rec.Tiles = append(rec.Tiles, *t)
			}
		}
		all = append(all, rec)
	}
	return all
}

// checkSame compares what two snapshots show, in order.
func checkSame(t *testing.T, want, got *registry.Snapshot) {
	t.Helper()
	if diff := difference(want, got); diff != "" {
		t.Errorf("snapshots differ (-want +got):\n%s", diff)
	}
}

func difference(want, got *registry.Snapshot) string {
	type shown struct {
		Revision uint64
		Projects []projectRecord
	}
	return cmp.Diff(shown{want.Revision, records(want)}, shown{got.Revision, records(got)}, cmpopts.EquateEmpty())
}

func query(sql string) json.RawMessage {
	text, err := json.Marshal(map[string]string{"kind": "HogQLQuery", "query": sql})
	if err != nil {
		panic(err)
	}
	return text
}
