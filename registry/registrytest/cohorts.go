package registrytest

import (
	"encoding/json"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func deleteCohort(p pair, project, id int64, when time.Time) error {
	_, err := p.UpdateCohort(p.Context(), project, id, registry.CohortFields{Deleted: registry.To(true)}, when)
	return err
}

func testCohorts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	add := func(project, id int64, f registry.CohortFields) registry.Cohort {
		t.Helper()
		return *must(p.CreateCohort(ctx, registry.NewCohort{Project: project, ID: id, CohortFields: f, CreatedBy: "key"}, at))(t)
	}
	const odd = "paying ' \" ; -- \x00"
	paying, given, theirs, next := add(shop.ID, 0, staticCohort(odd)), add(shop.ID, 41, staticCohort("given")),
		add(other.ID, 41, staticCohort("given")), add(shop.ID, 0, staticCohort("given"))
	if got := [4]int64{paying.ID, given.ID, theirs.ID, next.ID}; got != [4]int64{1, 41, 41, 42} {
		t.Errorf("cohorts got the numbers %v, want 1, 41, 41 and 42", got)
	}
	are := func(want ...registry.Cohort) {
		t.Helper()
		all := p.settled()
		same(t, "cohorts", [][]registry.Cohort{want, {theirs}}, [][]registry.Cohort{all[0].Cohorts, all[1].Cohorts})
	}
	are(paying, given, next)
	p.refused("a taken id", &registry.FieldError{Field: "id", Code: registry.CodeUnique}, func() error {
		_, err := p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, ID: 41}, at)
		return err
	})
	given = *must(p.UpdateCohort(ctx, shop.ID, 41, registry.CohortFields{
		Name: registry.To[*string](nil), Description: registry.To(odd), Query: registry.To(json.RawMessage(`{"q": "' < é"}`)),
	}, at))(t)
	given = *must(p.SetCohortMembers(ctx, shop.ID, 41, 7, at))(t)
	if err := deleteCohort(p, shop.ID, next.ID, at); err != nil {
		t.Fatal(err)
	}
	next.Deleted, next.DeletedAt, next.ChangedAt = true, at, at
	are(paying, given, next)

	// The number of a deleted cohort is reused only for callers that ask for it.
	again := must(p.other.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: staticCohort("next"), CreatedBy: "key"}, at))(t)
	asked := add(shop.ID, next.ID, staticCohort("asked for"))
	if again.ID != 43 || asked.ID != 42 {
		t.Errorf("cohorts got the numbers %d and %d, want 43 and 42", again.ID, asked.ID)
	}
	are(paying, given, asked, *again)
}

// testCohortVersions lets one process compute what another one asks for.
func testCohortVersions(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	filters := json.RawMessage(`{"properties":{"type":"OR","values":[]}}`)
	c := must(p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: registry.CohortFields{Filters: registry.To(filters)}}, at))(t)
	if c.PendingVersion != 1 || c.Version != 0 {
		t.Errorf("a new cohort has version %d and waits for %d", c.Version, c.PendingVersion)
	}
	begun := must(p.other.BeginCohort(ctx, shop.ID, c.ID))(t)
	if begun.PendingVersion != 2 || string(begun.Filters) != string(filters) {
		t.Errorf("the other registry begins %+v", begun)
	}
	swap := func(r *registry.Registry, version uint64, want bool) {
		t.Helper()
		if done := must(r.SwapCohort(ctx, shop.ID, c.ID, version, 10, at))(t); done != want {
			t.Errorf("SwapCohort(%d) = %v, want %v", version, done, want)
		}
	}
	must(p.UpdateCohort(ctx, shop.ID, c.ID, registry.CohortFields{Filters: registry.To(filters)}, at))(t) // while it is being computed
	swap(p.other, begun.PendingVersion, false)
	begun = must(p.other.BeginCohort(ctx, shop.ID, c.ID))(t)
	if failed := must(p.other.FailCohort(ctx, shop.ID, c.ID, begun.PendingVersion, "odd '", at))(t); !failed {
		t.Error("FailCohort() = false")
	}
	if err := p.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	all := p.settled()
	failed := all[0].Cohorts[0]
	same(t, "a cohort that failed", registry.Cohort{
		ID: 1, Project: shop.ID, Filters: filters, LastVersion: 4, Errors: 1, LastError: "odd '", LastErrorAt: at, CreatedAt: at,
	}, failed)
	begun = must(p.AwaitCohort(ctx, shop.ID, c.ID))(t)
	swap(p.Registry, begun.PendingVersion, true)
	swap(p.other, begun.PendingVersion, false)
	all = p.settled()
	same(t, "a cohort that was computed", registry.Cohort{
		ID: 1, Project: shop.ID, Filters: filters, Version: 5, LastVersion: 5, Count: new(int64(10)), LastCalculation: at, CreatedAt: at,
	}, all[0].Cohorts[0])
	same(t, "what queries need of it", []registry.SchemaCohort{{ID: 1, Version: 5}}, all[0].Schema)
	p.refused("beginning what nobody waits for", registry.ErrNotFound, func() error { _, err := p.BeginCohort(ctx, shop.ID, c.ID); return err })
}
