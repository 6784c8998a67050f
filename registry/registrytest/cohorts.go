package registrytest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func newCohort(project, id int64, name string) registry.Cohort {
	return registry.Cohort{ID: id, Project: project, Name: name, CreatedAt: at}
}

func testCohorts(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	insert := func(c registry.Cohort) (id int64) {
		t.Helper()
		write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
			id, err = tx.InsertCohort(ctx, c)
			return err
		})
		return id
	}
	paying, given, theirs := newCohort(p.ID, 0, "paying ' \" ; --"), newCohort(p.ID, 41, "given"), newCohort(other.ID, 41, "given")
	paying.ID, given.ID, theirs.ID = insert(paying), insert(given), insert(theirs)
	next := newCohort(p.ID, 0, "next")
	next.ID = insert(next)
	if got := [4]int64{paying.ID, given.ID, theirs.ID, next.ID}; got != [4]int64{1, 41, 41, 42} {
		t.Errorf("cohorts got the numbers %v, want 1, 41, 41 and 42", got)
	}
	there := registry.ProjectRecord{Project: other, Cohorts: []registry.Cohort{theirs}}
	expect(t, s, registry.ProjectRecord{Project: p, Cohorts: []registry.Cohort{paying, given, next}}, there)
	for name, tt := range map[string]struct {
		c    registry.Cohort
		want string
	}{
		"number": {newCohort(p.ID, 41, "fresh"), registry.ConflictID},
		"name":   {newCohort(p.ID, 0, "given"), registry.ConflictCohortName},
	} {
		t.Run("a taken "+name, func(inner *testing.T) {
			refuse(exam{inner, t.place}, s, &registry.ConflictError{Field: tt.want}, func(ctx context.Context, tx registry.Tx) error {
				_, err := tx.InsertCohort(ctx, tt.c)
				return err
			})
		})
	}
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictCohortName}, func(ctx context.Context, tx registry.Tx) error {
		return tx.UpdateCohort(ctx, newCohort(p.ID, 41, "next"))
	})

	given.Name = "renamed"
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.UpdateCohort(ctx, given) })
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return tx.DeleteCohort(ctx, p.ID, next.ID, at.Add(time.Hour))
	})
	expect(t, s, registry.ProjectRecord{Project: p, Cohorts: []registry.Cohort{paying, given}}, there)
	refuse(t, s, registry.ErrNotFound, func(ctx context.Context, tx registry.Tx) error { return tx.DeleteCohort(ctx, p.ID, next.ID, at) })
	refuse(t, s, registry.ErrNotFound, func(ctx context.Context, tx registry.Tx) error { return tx.UpdateCohort(ctx, next) })
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Cohort(ctx, p.ID, 41)
		if diff := cmp.Diff(given, got); diff != "" {
			t.Errorf("Cohort(41) (-want +got):\n%s", diff)
		}
		return err
	})

	// The name of a deleted one is free; its number is given again to those alone who ask for it.
	again := newCohort(p.ID, 0, "next")
	again.ID = insert(again)
	asked := newCohort(p.ID, next.ID, "asked for")
	asked.ID = insert(asked)
	if again.ID != 43 || asked.ID != 42 {
		t.Errorf("cohorts got the numbers %d and %d, want 43 and 42", again.ID, asked.ID)
	}
	expect(t, s, registry.ProjectRecord{Project: p, Cohorts: []registry.Cohort{paying, given, again, asked}}, there)
}
