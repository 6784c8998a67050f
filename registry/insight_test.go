package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// named gives the fields of an insight with a name and a query.
func named(name string) registry.InsightFields {
	return registry.InsightFields{Name: registry.To(&name), Query: registry.To(query("select 1"))}
}

func createInsight(tb testing.TB, r *registry.Registry, project int64, f registry.InsightFields) *registry.Insight {
	tb.Helper()
	return must(r.CreateInsight(tb.Context(), project, f, "author", now))(tb)
}

func createDashboard(tb testing.TB, r *registry.Registry, project int64, f registry.DashboardFields) *registry.Dashboard {
	tb.Helper()
	return must(r.CreateDashboard(tb.Context(), project, f, "author", now))(tb)
}

// on lists the dashboards that an insight is on, as the snapshot shows it.
func on(r *registry.Registry, i *registry.Insight) []int64 {
	var ids []int64
	for _, t := range r.Snapshot().TilesOf(i.Project, i.ID) {
		ids = append(ids, t.Dashboard)
	}
	return ids
}

// activities lists what the log of a project tells, oldest first, as "activity field field".
func activities(t *testing.T, r *registry.Registry, project int64) []string {
	t.Helper()
	entries, _, err := r.Activities(t.Context(), project, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range slices.Backward(entries) {
		words := []string{e.By, e.Activity}
		for _, c := range e.Changes {
			words = append(words, fmt.Sprintf("%s=%s", c.Field, c.After))
		}
		told = append(told, strings.Join(words, " "))
	}
	return told
}

func TestCreateInsight(t *testing.T) {
	r, p := fresh(t)
	d := createDashboard(t, r, p.ID, registry.DashboardFields{})
	f := named("Daily")
	f.Query.Value = json.RawMessage(` {"kind": "HogQLQuery", "query": "select '<'"} `)
	f.Tags, f.Dashboards = registry.To([]string{"b", " A\n", "B", ""}), registry.To([]int64{d.ID})
	got := createInsight(t, r, p.ID, f)
	want := &registry.Insight{
		ID: 1, Project: p.ID, Name: new("Daily"), Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select '<'"}`), Filters: json.RawMessage(`{}`),
		Saved: true, Tags: []string{"b", "a"}, CreatedAt: moment, UpdatedAt: moment, LastModifiedAt: moment, CreatedBy: "author", LastModifiedBy: "author",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(registry.Insight{}, "ShortID")); diff != "" {
		t.Errorf("CreateInsight() (-want +got):\n%s", diff)
	}
	if !regexp.MustCompile(`^[0-9A-Za-z]{8}$`).MatchString(got.ShortID) {
		t.Errorf("the short id is %q", got.ShortID)
	}
	snap := r.Snapshot()
	for name, found := range map[string]*registry.Insight{
		"Insight": snap.Insight(p.ID, 1), "AnyInsightByShortID": snap.AnyInsightByShortID(p.ID, got.ShortID), "Insights": snap.Insights(p.ID)[0],
	} {
		if diff := cmp.Diff(got, found); diff != "" {
			t.Errorf("%s (-created +found):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]int64{d.ID}, on(r, got)); diff != "" {
		t.Errorf("dashboards (-want +got):\n%s", diff)
	}
	views := must(r.Views(t.Context(), p.ID, time.Time{}))(t)
	if diff := cmp.Diff([]registry.View{{Insight: 1, Viewer: "author", At: moment}}, views); diff != "" {
		t.Errorf("views (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"author created"}, activities(t, r, p.ID)); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
}

func TestInsightMistakes(t *testing.T) {
	r, p := fresh(t)
	long := new(strings.Repeat("ä", 401))
	gone := createDashboard(t, r, p.ID, registry.DashboardFields{Deleted: registry.To(true)})
	tests := []struct {
		name   string
		fields registry.InsightFields
		want   registry.FieldError
	}{
		{"name", registry.InsightFields{Name: registry.To(long)}, registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}},
		{"derived name", registry.InsightFields{DerivedName: registry.To(long)}, registry.FieldError{Field: "derived_name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}},
		{"description", registry.InsightFields{Description: registry.To(long)}, registry.FieldError{Field: "description", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}},
		{"tag", registry.InsightFields{Tags: registry.To([]string{strings.Repeat("x", 256)})}, registry.FieldError{Field: "tags", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 255 characters."}},
		{"filters", registry.InsightFields{Filters: registry.To(json.RawMessage(`[]`))}, registry.FieldError{Field: "filters", Code: registry.CodeInvalid, Message: "Filters must be a JSON object."}},
		{"no such dashboard", registry.InsightFields{Dashboards: registry.To([]int64{9})}, registry.FieldError{Field: "dashboards", Code: registry.CodeNoObject, Message: `Invalid pk "9" - object does not exist.`}},
		{"deleted dashboard", registry.InsightFields{Dashboards: registry.To([]int64{gone.ID})}, registry.FieldError{Field: "dashboards", Code: registry.CodeNoObject, Message: `Invalid pk "1" - object does not exist.`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.CreateInsight(t.Context(), p.ID, tt.fields, "author", now)
			if diff := cmp.Diff(&tt.want, mistake(t, err)); diff != "" {
				t.Errorf("CreateInsight() (-want +got):\n%s", diff)
			}
		})
	}
	if left := r.Snapshot().Insights(p.ID); len(left) != 0 {
		t.Errorf("refused insights are there: %v", left)
	}
	if _, err := r.CreateInsight(t.Context(), 9, named("x"), "author", now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("in an unknown project: %v", err)
	}
}

// TestUpdateInsight follows an insight through its life: what an update does not name stays, and the log reports what it did.
func TestUpdateInsight(t *testing.T) {
	r, p := fresh(t)
	a, b := createDashboard(t, r, p.ID, registry.DashboardFields{Name: registry.To(new("A"))}), createDashboard(t, r, p.ID, registry.DashboardFields{})
	i := createInsight(t, r, p.ID, named("Old"))
	at := now
	update := func(f registry.InsightFields, restore bool) *registry.Insight {
		t.Helper()
		at = at.Add(time.Minute)
		return must(r.UpdateInsight(t.Context(), p.ID, i.ID, f, restore, "editor", at))(t)
	}
	got := update(registry.InsightFields{Favorited: registry.To(true), Tags: registry.To([]string{"t"}), Dashboards: registry.To([]int64{a.ID, b.ID})}, false)
	if *got.Name != "Old" || !got.Favorited || !got.LastModifiedAt.Equal(moment) || got.LastModifiedBy != "author" || got.UpdatedAt.Equal(moment) {
		t.Errorf("after other fields: %+v", got)
	}
	got = update(registry.InsightFields{Name: registry.To(new("New")), Saved: registry.To(false)}, false)
	if *got.Name != "New" || got.LastModifiedBy != "editor" || !got.LastModifiedAt.Equal(got.UpdatedAt) || got.Saved || got.Tags[0] != "t" {
		t.Errorf("after a new name: %+v", got)
	}
	got = update(registry.InsightFields{Query: registry.To[json.RawMessage](nil)}, false)
	if got.Query != nil || !got.Saved {
		t.Errorf("after an update without saved: %+v", got)
	}
	update(registry.InsightFields{Dashboards: registry.To([]int64{b.ID})}, false)
	if diff := cmp.Diff([]int64{b.ID}, on(r, i)); diff != "" {
		t.Errorf("dashboards (-want +got):\n%s", diff)
	}
	got = update(registry.InsightFields{Deleted: registry.To(true)}, false)
	if !got.Deleted || len(on(r, i)) != 0 || r.Snapshot().Insight(p.ID, i.ID) != nil || len(r.Snapshot().Insights(p.ID)) != 0 {
		t.Errorf("after its deletion: %+v on %v", got, on(r, i))
	}
	for name, f := range map[string]registry.InsightFields{"a name": {Name: registry.To(new("Ghost"))}, "deleted again": {Deleted: registry.To(true)}} {
		if _, err := r.UpdateInsight(t.Context(), p.ID, i.ID, f, true, "editor", at); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s of a deleted insight: %v", name, err)
		}
	}
	if _, err := r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Deleted: registry.To(false)}, false, "editor", at); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("restoring without being allowed to: %v", err)
	}
	got = update(registry.InsightFields{Deleted: registry.To(false)}, true)
	if got.Deleted || *got.Name != "New" || r.Snapshot().Insight(p.ID, i.ID) == nil {
		t.Errorf("restored: %+v", got)
	}
	want := []string{
		"author created",
		`editor updated favorited=true tags=["t"] dashboards=[{"id":1,"name":"A"},{"id":2,"name":null}]`,
		`editor updated name="New" saved=false`,
		`editor updated query=null saved=true`,
		`editor updated dashboards=[{"id":2,"name":null}]`,
		`editor deleted deleted=true`,
		`editor restored deleted=false`,
	}
	if diff := cmp.Diff(want, activities(t, r, p.ID)); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
	if _, err := r.UpdateInsight(t.Context(), p.ID, 99, named("x"), false, "editor", at); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an unknown insight: %v", err)
	}
}

// TestInsightsWithoutAName have no log.
func TestInsightsWithoutAName(t *testing.T) {
	r, p := fresh(t)
	createInsight(t, r, p.ID, registry.InsightFields{Name: registry.To(new(""))})
	createInsight(t, r, p.ID, registry.InsightFields{DerivedName: registry.To(new("Pageviews"))})
	entries, total, err := r.Activities(t.Context(), p.ID, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 10})
	if err != nil || total != 1 || entries[0].Name != "Pageviews" {
		t.Errorf("Activities() = %+v, %d, %v", entries, total, err)
	}
}

func TestConcurrentCreatesGiveDistinctIDs(t *testing.T) {
	r, p := fresh(t)
	const writers = 100
	var all sync.WaitGroup
	made := make([]*registry.Insight, writers)
	for i := range writers {
		all.Go(func() {
			var err error
			if made[i], err = r.CreateInsight(t.Context(), p.ID, named(fmt.Sprint(i)), "author", now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ids, codes := map[int64]bool{}, map[string]bool{}
	for i, one := range made {
		if one == nil || *one.Name != fmt.Sprint(i) {
			t.Fatalf("insight %d is %+v", i, one)
		}
		ids[one.ID], codes[one.ShortID] = true, true
	}
	if len(ids) != writers || len(codes) != writers || len(r.Snapshot().Insights(p.ID)) != writers {
		t.Errorf("%d writers made %d numbers and %d short ids", writers, len(ids), len(codes))
	}
}

// TestInsightOnDeletedDashboard: a deleted dashboard keeps its tiles for when it is restored, and can't get others.
func TestInsightOnDeletedDashboard(t *testing.T) {
	r, p := fresh(t)
	kept, gone := createDashboard(t, r, p.ID, registry.DashboardFields{}), createDashboard(t, r, p.ID, registry.DashboardFields{})
	i := createInsight(t, r, p.ID, registry.InsightFields{Dashboards: registry.To([]int64{kept.ID, gone.ID})})
	remove := func(deleted bool) {
		t.Helper()
		must(r.UpdateDashboard(t.Context(), p.ID, gone.ID, registry.DashboardFields{Deleted: registry.To(deleted)}, "editor", now))(t)
	}
	remove(true)
	must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Dashboards: registry.To([]int64{kept.ID})}, false, "editor", now))(t) // what it shows
	var refused *registry.FieldError
	_, err := r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Dashboards: registry.To([]int64{gone.ID})}, false, "editor", now)
	if !errors.As(err, &refused) || refused.Field != "dashboards" || refused.Code != registry.CodeNoObject {
		t.Errorf("on the deleted dashboard alone: %v", err)
	}
	remove(false)
	if diff := cmp.Diff([]int64{kept.ID, gone.ID}, on(r, i)); diff != "" {
		t.Errorf("dashboards after the restore (-want +got):\n%s", diff)
	}
}

func TestRecordViews(t *testing.T) {
	r, p := fresh(t)
	other := must(r.CreateProject(t.Context(), registry.NewProject{Name: "other"}, now))(t)
	mine, gone, theirs := createInsight(t, r, p.ID, named("a")), createInsight(t, r, p.ID, named("b")), createInsight(t, r, other.ID, named("c"))
	must(r.UpdateInsight(t.Context(), p.ID, gone.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "author", now))(t)
	before := r.Snapshot()
	if err := r.RecordViews(t.Context(), p.ID, "reader", []int64{mine.ID, mine.ID, gone.ID, theirs.ID, 99}, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r.Snapshot() != before {
		t.Error("a view made a new snapshot: no request that was seen before is known to it")
	}
	views := must(r.Views(t.Context(), p.ID, now.Add(time.Minute)))(t)
	if diff := cmp.Diff([]registry.View{{Insight: mine.ID, Viewer: "reader", At: moment.Add(time.Hour)}}, views); diff != "" {
		t.Errorf("views (-want +got):\n%s", diff)
	}
	if err := r.RecordViews(t.Context(), p.ID, "reader", []int64{theirs.ID}, now); err != nil {
		t.Error(err)
	}
}

// bounded is a store that remembers how the last write limited logs.
type bounded struct {
	registry.Store

	bounds []registry.Bound
}

func (s *bounded) Write(ctx context.Context, w *registry.Write) (uint64, error) {
	s.bounds = w.Bounds
	return s.Store.Write(ctx, w)
}

// TestViewsAreBounded: keys that come and go can't make the log of views grow forever.
func TestViewsAreBounded(t *testing.T) {
	store := &bounded{Store: openStore(t, sqlitetest.Path(t))}
	r := must(registry.Open(t.Context(), store, quiet))(t)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	want := registry.Bound{Project: p.ID, Log: "view", Entries: registry.MaxViews}
	i, j := createInsight(t, r, p.ID, named("a")), createInsight(t, r, p.ID, named("b")) // a creation is a view
	if !slices.Contains(store.bounds, want) {
		t.Errorf("creating an insight limits logs to %v, want %v among them", store.bounds, want)
	}
	if err := r.RecordViews(t.Context(), p.ID, "reader", []int64{i.ID, j.ID}, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]registry.Bound{want}, store.bounds); diff != "" {
		t.Errorf("limits of logs after two views (-want +got):\n%s", diff)
	}
}

func TestViewsBy(t *testing.T) {
	r, p := fresh(t)
	first, second := createInsight(t, r, p.ID, named("a")), createInsight(t, r, p.ID, named("b"))
	for n, id := range []int64{first.ID, second.ID} {
		for _, viewer := range []string{"reader", "other"} {
			if err := r.RecordViews(t.Context(), p.ID, viewer, []int64{id}, now.Add(time.Duration(n)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for offset, want := range [][]registry.View{{{Insight: second.ID, Viewer: "reader", At: moment.Add(time.Hour)}}, {{Insight: first.ID, Viewer: "reader", At: moment}}, {}} {
		if diff := cmp.Diff(want, must(r.ViewsBy(t.Context(), p.ID, "reader", 1, offset))(t)); diff != "" {
			t.Errorf("the view of reader at %d (-want +got):\n%s", offset, diff)
		}
	}
}
