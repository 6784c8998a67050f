package registry_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func staticCohort(name string) registry.CohortFields {
	return registry.CohortFields{Name: registry.To(&name), Static: registry.To(true)}
}

// someFilters stands for filters that the caller has checked.
var someFilters = registry.To(json.RawMessage(` {"properties": {}} `))

func TestCohorts(t *testing.T) {
	r, p := fresh(t)
	empty := r.Snapshot()
	paying := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: staticCohort(" paying ")}, now))(t)
	trial := must(r.CreateCohort(t.Context(), registry.NewCohort{
		Project: p.ID, ID: 7, CreatedBy: "key", CohortFields: registry.CohortFields{Description: registry.To("d"), Filters: someFilters},
	}, now.Add(time.Second)))(t)
	made := now.UTC().Truncate(time.Microsecond)
	want := []*registry.Cohort{
		{
			ID: 7, Project: p.ID, Description: "d", Filters: json.RawMessage(`{"properties":{}}`), PendingVersion: 1, LastVersion: 1,
			CreatedAt: made.Add(time.Second), CreatedBy: "key",
		},
		{ID: 1, Project: p.ID, Name: new("paying"), Static: true, CreatedAt: made},
	}
	if diff := cmp.Diff(want, []*registry.Cohort{trial, paying}); diff != "" {
		t.Errorf("CreateCohort() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.Snapshot().Cohorts(p.ID)); diff != "" {
		t.Errorf("Cohorts() (-want +got):\n%s", diff)
	}
	before := r.Snapshot()
	if _, err := r.UpdateCohort(t.Context(), p.ID, 1, registry.CohortFields{Deleted: registry.To(true)}, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:1], r.Snapshot().Cohorts(p.ID)); diff != "" {
		t.Errorf("Cohorts() after one was deleted (-want +got):\n%s", diff)
	}
	if c := r.Snapshot().Cohort(p.ID, 1); c != nil {
		t.Errorf("Cohort() of a deleted one = %+v", c)
	}
	if c := r.Snapshot().AnyCohort(p.ID, 1); c == nil || !c.Deleted || !c.DeletedAt.Equal(made.Add(time.Hour)) {
		t.Errorf("AnyCohort() of a deleted one = %+v", c)
	}
	if len(empty.Cohorts(p.ID)) != 0 || len(before.Cohorts(p.ID)) != 2 || before.Cohort(p.ID, 1) == nil {
		t.Error("an older snapshot changed")
	}
}

// TestCohortSchema: the schema changes only with what queries need to know about a cohort, because plans are made anew with it.
func TestCohortSchema(t *testing.T) {
	r, p := fresh(t)
	c := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: registry.CohortFields{Filters: someFilters}}, now))(t)
	update := func(f registry.CohortFields) func() error {
		return func() error { _, err := r.UpdateCohort(t.Context(), p.ID, c.ID, f, now); return err }
	}
	for _, tt := range []struct {
		name string
		do   func() error
		want registry.SchemaCohort
		same bool
	}{
		{"a description", update(registry.CohortFields{Description: registry.To("d")}), registry.SchemaCohort{ID: 1}, true},
		{"filters", update(registry.CohortFields{Filters: someFilters}), registry.SchemaCohort{ID: 1}, true},
		{"a name", update(registry.CohortFields{Name: registry.To(new("n"))}), registry.SchemaCohort{ID: 1, Name: "n"}, false},
		{"a version", func() error {
			_, err := r.SwapCohort(t.Context(), p.ID, 1, r.Snapshot().Cohort(p.ID, 1).PendingVersion, 3, now)
			return err
		}, registry.SchemaCohort{ID: 1, Name: "n", Version: 2}, false},
		{"deletion", update(registry.CohortFields{Deleted: registry.To(true)}), registry.SchemaCohort{ID: 1, Name: "n", Version: 2, Deleted: true}, false},
		{"static", update(registry.CohortFields{Static: registry.To(true), Deleted: registry.To(false)}), registry.SchemaCohort{ID: 1, Name: "n", Static: true}, false},
		{"members", func() error { _, err := r.SetCohortMembers(t.Context(), p.ID, 1, 4, now); return err }, registry.SchemaCohort{ID: 1, Name: "n", Static: true, Version: 3}, false},
	} {
		before := r.Snapshot().Schema(p.ID)
		if err := tt.do(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		after := r.Snapshot().Schema(p.ID)
		if (before == after) != tt.same {
			t.Errorf("%s: the schema stayed: %t, want %t", tt.name, before == after, tt.same)
		}
		if diff := cmp.Diff([]registry.SchemaCohort{tt.want}, after.Cohorts); diff != "" {
			t.Errorf("%s: cohorts of the schema (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestCohortCalculations: which writes make a cohort wait for a calculation.
func TestCohortCalculations(t *testing.T) {
	dynamic := registry.CohortFields{Filters: someFilters}
	selected := registry.To(json.RawMessage(`{"kind":"HogQLQuery"}`))
	deleted := registry.CohortFields{Deleted: registry.To(true)}
	restored := registry.CohortFields{Deleted: registry.To(false)}
	static := registry.CohortFields{Static: registry.To(true)}
	for _, tt := range []struct {
		name          string
		first, second registry.CohortFields
		computed      bool // in between
		want          bool
	}{
		{"new", dynamic, registry.CohortFields{}, false, true},
		{"new and without filters", registry.CohortFields{}, registry.CohortFields{}, false, true},
		{"another description", dynamic, registry.CohortFields{Description: registry.To("d")}, true, false},
		{"another description, asked for", dynamic, registry.CohortFields{Description: registry.To("d"), Calculate: true}, true, true},
		{"other filters", dynamic, dynamic, true, true},
		{"other groups", dynamic, registry.CohortFields{Groups: registry.To(json.RawMessage(`[]`))}, true, true},
		{"deleted", dynamic, deleted, true, false},
		{"deleted while it waits", dynamic, deleted, false, false},
		{"restored when it was not deleted", dynamic, restored, true, false},
		{"static", static, static, false, false},
		{"static, asked for", static, registry.CohortFields{Calculate: true}, false, false},
		{"static from a query", registry.CohortFields{Static: registry.To(true), Query: selected}, static, false, true},
		{"static from another query", static, registry.CohortFields{Query: selected}, true, true},
		{"static and once more", registry.CohortFields{Static: registry.To(true), Query: selected}, static, true, false},
		{"static from now on", dynamic, static, true, false},
		{"static from now on, while it waits", dynamic, static, false, false},
		{"computed from now on", static, registry.CohortFields{Static: registry.To(false)}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, p := fresh(t)
			c := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: tt.first}, now))(t)
			if tt.computed {
				must(r.SwapCohort(t.Context(), p.ID, c.ID, c.PendingVersion, 1, now))(t)
			}
			if c = must(r.UpdateCohort(t.Context(), p.ID, c.ID, tt.second, now))(t); c.Calculating() != tt.want {
				t.Errorf("the cohort waits: %t, want %t", c.Calculating(), tt.want)
			}
		})
	}
	t.Run("restored", func(t *testing.T) {
		for _, f := range []registry.CohortFields{dynamic, {Static: registry.To(true), Query: selected}} {
			r, p := fresh(t)
			c := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: f}, now))(t)
			must(r.UpdateCohort(t.Context(), p.ID, c.ID, deleted, now))(t)
			if c = must(r.UpdateCohort(t.Context(), p.ID, c.ID, restored, now))(t); c.PendingVersion != 2 {
				t.Errorf("the cohort waits for version %d, want 2", c.PendingVersion)
			}
		}
	})
}

// TestCohortVersions: no version is reused, and only the awaited one becomes the one that queries read.
func TestCohortVersions(t *testing.T) {
	r, p := fresh(t)
	c := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: registry.CohortFields{Filters: someFilters}}, now))(t)
	ask := func() uint64 {
		t.Helper()
		return must(r.AwaitCohort(t.Context(), p.ID, c.ID))(t).PendingVersion
	}
	if ask() != 1 {
		t.Error("asking again gave up the calculation that is awaited")
	}
	first := must(r.BeginCohort(t.Context(), p.ID, c.ID))(t).PendingVersion
	if failed := must(r.FailCohort(t.Context(), p.ID, c.ID, first, strings.Repeat("é", 501), now))(t); !failed {
		t.Error("FailCohort() = false")
	}
	shown := r.Snapshot().Cohort(p.ID, c.ID)
	if shown.Version != 0 || shown.Errors != 1 || shown.LastError != strings.Repeat("é", 500) || shown.Calculating() || shown.Count != nil {
		t.Errorf("after a calculation that failed: %+v", shown)
	}
	second := ask()
	if first != 2 || second != 3 {
		t.Errorf("the versions are %d and %d, want 2 and 3", first, second)
	}
	for version, want := range map[uint64]bool{0: false, first: false} {
		if got := must(r.SwapCohort(t.Context(), p.ID, c.ID, version, 5, now))(t); got != want {
			t.Errorf("SwapCohort(%d) = %t", version, got)
		}
	}
	if !must(r.SwapCohort(t.Context(), p.ID, c.ID, second, 5, now))(t) {
		t.Error("SwapCohort() = false")
	}
	shown = r.Snapshot().Cohort(p.ID, c.ID)
	if shown.Version != 3 || *shown.Count != 5 || shown.Errors != 0 || shown.LastError != "" || shown.LastCalculation.IsZero() || shown.Calculating() {
		t.Errorf("after a calculation: %+v", shown)
	}
	if got := must(r.SwapCohort(t.Context(), p.ID, 99, 1, 5, now))(t); got {
		t.Error("SwapCohort() of an unknown cohort = true")
	}
	// A reused number continues with the versions.
	must(r.UpdateCohort(t.Context(), p.ID, c.ID, registry.CohortFields{Deleted: registry.To(true)}, now))(t)
	if again := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: c.ID}, now))(t); again.PendingVersion != 4 {
		t.Errorf("a cohort with the number of a deleted one waits for version %d, want 4", again.PendingVersion)
	}
}

// TestCohortCheck: a check sees the registry as it is when the cohort is written, and its error prevents the write.
func TestCohortCheck(t *testing.T) {
	r, p := fresh(t)
	refused := errors.New("refused")
	f := staticCohort("x")
	f.Check = func(now *registry.Snapshot, c *registry.Cohort) error {
		if c.ID != 1 || *c.Name != "x" || now.Project(p.ID) == nil || now.Cohort(p.ID, 1) != nil {
			t.Errorf("the check sees %+v", c)
		}
		return refused
	}
	if _, err := r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: f}, now); !errors.Is(err, refused) {
		t.Errorf("CreateCohort() = %v", err)
	}
	if len(r.Snapshot().Cohorts(p.ID)) != 0 {
		t.Error("a refused cohort is there")
	}
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: staticCohort("before")}, now))(t)
	f.Check = func(now *registry.Snapshot, _ *registry.Cohort) error {
		if *now.Cohort(p.ID, 1).Name != "before" {
			t.Error("the check does not see the cohort as it is")
		}
		return refused
	}
	if _, err := r.UpdateCohort(t.Context(), p.ID, 1, f, now); !errors.Is(err, refused) || *r.Snapshot().Cohort(p.ID, 1).Name != "before" {
		t.Errorf("UpdateCohort() = %v", err)
	}
}

func TestCohortMistakes(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 7, CohortFields: staticCohort("trial")}, now))(t)
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 8}, now))(t)
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 9, CohortFields: staticCohort("gone")}, now))(t)
	must(r.UpdateCohort(t.Context(), p.ID, 9, registry.CohortFields{Deleted: registry.To(true)}, now))(t)
	create := func(n registry.NewCohort) error {
		_, err := r.CreateCohort(t.Context(), n, now)
		return err
	}
	update := func(project, id int64, f registry.CohortFields) error {
		_, err := r.UpdateCohort(t.Context(), project, id, f, now)
		return err
	}
	await := func(id int64) error { _, err := r.AwaitCohort(t.Context(), p.ID, id); return err }
	begin := func(id int64) error { _, err := r.BeginCohort(t.Context(), p.ID, id); return err }
	fill := func(id int64) error { _, err := r.SetCohortMembers(t.Context(), p.ID, id, 1, now); return err }
	if err := create(registry.NewCohort{Project: p.ID, ID: math.MaxInt32}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		err   error
		field registry.FieldError
		is    error
	}{
		{"a long name", create(registry.NewCohort{Project: p.ID, CohortFields: staticCohort(strings.Repeat("é", 401))}), registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}, nil},
		{"a long description", update(p.ID, 7, registry.CohortFields{Description: registry.To(strings.Repeat("é", 1001))}), registry.FieldError{Field: "description", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 1000 characters."}, nil},
		{"too large", update(p.ID, 7, registry.CohortFields{Filters: registry.To(query(strings.Repeat("x", registry.MaxRecord)))}), registry.FieldError{Field: "filters", Code: registry.CodeTooBig, Message: "This cohort takes 1048613 bytes; the limit is 1048576."}, nil},
		{"a taken number", create(registry.NewCohort{Project: p.ID, ID: 7}), registry.FieldError{Field: "id", Code: registry.CodeUnique, Message: "A cohort with this id exists already."}, nil},
		{"a number below 1", create(registry.NewCohort{Project: p.ID, ID: -1}), registry.FieldError{Field: "id", Code: registry.CodeTooSmall, Message: "Ensure this value is greater than or equal to 1."}, nil},
		{"a large number", create(registry.NewCohort{Project: p.ID, ID: 1 << 40}), registry.FieldError{Field: "id", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 2147483647."}, nil},
		{"no number left", create(registry.NewCohort{Project: p.ID}), registry.FieldError{Field: "id", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 2147483647."}, nil},
		{"a calculation of a static one", await(7), registry.FieldError{Field: "id", Code: registry.CodeInvalid, Message: "Cohort 7 is static: its members are not computed."}, nil},
		{"members of one that is computed", fill(8), registry.FieldError{Field: "id", Code: registry.CodeInvalid, Message: "Cohort 8 is not static: its members are computed."}, nil},
		{"an unknown project", create(registry.NewCohort{Project: 99}), registry.FieldError{}, registry.ErrNotFound},
		{"changing what is not there", update(p.ID, 10, staticCohort("x")), registry.FieldError{}, registry.ErrNotFound},
		{"changing in another project", update(99, 7, staticCohort("x")), registry.FieldError{}, registry.ErrNotFound},
		{"a calculation of a deleted one", await(9), registry.FieldError{}, registry.ErrNotFound},
		{"beginning what nobody waits for", begin(7), registry.FieldError{}, registry.ErrNotFound},
		{"members of a deleted one", fill(9), registry.FieldError{}, registry.ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mistake, isMistake := errors.AsType[*registry.FieldError](tt.err)
			switch {
			case tt.is != nil:
				if !errors.Is(tt.err, tt.is) {
					t.Errorf("got %v, want %v", tt.err, tt.is)
				}
			case !isMistake:
				t.Errorf("got %v, want a mistake", tt.err)
			default:
				if diff := cmp.Diff(tt.field, *mistake); diff != "" {
					t.Errorf("mistake (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestReserveCohorts: members that are newer than the registry, or gone, do not become those of another cohort or version.
func TestReserveCohorts(t *testing.T) {
	r, p := fresh(t)
	ctx := t.Context()
	other := must(r.CreateProject(ctx, registry.NewProject{Name: "Other"}, now))(t)
	computed := func(count int64) *registry.Cohort {
		t.Helper()
		c := must(r.CreateCohort(ctx, registry.NewCohort{Project: p.ID, CohortFields: registry.CohortFields{Filters: someFilters}}, now))(t)
		must(r.SwapCohort(ctx, p.ID, c.ID, c.PendingVersion, count, now))(t)
		return c
	}
	same, newer, gone, empty := computed(3), computed(3), computed(3), computed(0)
	static := must(r.CreateCohort(ctx, registry.NewCohort{Project: p.ID, CohortFields: staticCohort("static")}, now))(t)
	deleted := computed(3)
	must(r.UpdateCohort(ctx, p.ID, deleted.ID, registry.CohortFields{Deleted: registry.To(true)}, now))(t)
	stored := []registry.StoredMembers{
		{p.ID, same.ID, 1},
		{p.ID, newer.ID, 1},
		{p.ID, newer.ID, 4},
		{p.ID, gone.ID, 6},
		{p.ID, static.ID, 0},
		{p.ID, deleted.ID, 8},
		{p.ID, 20, 0},                // made after the backup
		{p.ID, math.MaxInt64, 0},     // no cohort has such a number
		{p.ID, same.ID, 1 << 60},     // nor such a version
		{other.ID + 1, 30, 0},        // the project is not known
		{other.ID, math.MinInt64, 0}, // nonsense
	}
	for range 2 { // it may be done again
		if err := r.ReserveCohorts(ctx, stored); err != nil {
			t.Fatal(err)
		}
	}
	type state struct{ Version, Pending, Last uint64 }
	got := map[string]state{}
	for name, c := range map[string]*registry.Cohort{"same": same, "newer": newer, "gone": gone, "empty": empty, "static": static, "deleted": deleted} {
		now := r.Snapshot().AnyCohort(p.ID, c.ID)
		got[name] = state{now.Version, now.PendingVersion, now.LastVersion}
	}
	want := map[string]state{"same": {1, 0, 1}, "newer": {1, 0, 4}, "gone": {0, 7, 7}, "empty": {1, 0, 1}, "static": {}, "deleted": {1, 0, 8}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the cohorts (-want +got):\n%s", diff)
	}
	for project, least := range map[int64]int64{p.ID: 21, other.ID: 21} {
		made := must(r.CreateCohort(ctx, registry.NewCohort{Project: project, CohortFields: staticCohort("new")}, now))(t)
		if made.ID != least {
			t.Errorf("a new cohort of project %d has the number %d, want %d", project, made.ID, least)
		}
	}
}
