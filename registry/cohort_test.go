package registry_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestCohorts(t *testing.T) {
	r, p := fresh(t)
	empty := r.Snapshot()
	paying := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, Name: " paying "}, now))(t)
	trial := must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 7, Name: "trial"}, now))(t)
	made := now.Truncate(time.Microsecond)
	want := []registry.Cohort{{ID: 1, Project: p.ID, Name: "paying", CreatedAt: made}, {ID: 7, Project: p.ID, Name: "trial", CreatedAt: made}}
	if diff := cmp.Diff(want, []registry.Cohort{*paying, *trial}); diff != "" {
		t.Errorf("CreateCohort() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.Snapshot().Cohorts(p.ID)); diff != "" {
		t.Errorf("Cohorts() (-want +got):\n%s", diff)
	}
	before := r.Snapshot()
	renamed := must(r.RenameCohort(t.Context(), p.ID, 1, "customers"))(t)
	if want[0].Name = "customers"; *renamed != want[0] {
		t.Errorf("RenameCohort() = %v, want %v", *renamed, want[0])
	}
	if diff := cmp.Diff(want, r.Snapshot().Cohorts(p.ID)); diff != "" {
		t.Errorf("Cohorts() after a new name (-want +got):\n%s", diff)
	}
	if len(empty.Cohorts(p.ID)) != 0 || before.Cohorts(p.ID)[0].Name != "paying" {
		t.Error("an older snapshot changed")
	}
	if before.Schema(p.ID) == r.Snapshot().Schema(p.ID) {
		t.Error("a new name left the schema as it was: plans and answers that hold the old name would live on")
	}
	if err := r.DeleteCohort(t.Context(), p.ID, 1, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1:], r.Snapshot().Cohorts(p.ID)); diff != "" {
		t.Errorf("Cohorts() after one was deleted (-want +got):\n%s", diff)
	}
}

func TestCohortMistakes(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 7, Name: "trial"}, now))(t)
	must(r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, ID: 8, Name: "paying"}, now))(t)
	create := func(n registry.NewCohort) error {
		_, err := r.CreateCohort(t.Context(), n, now)
		return err
	}
	rename := func(project, id int64, name string) error {
		_, err := r.RenameCohort(t.Context(), project, id, name)
		return err
	}
	last := registry.NewCohort{Project: p.ID, ID: math.MaxInt32, Name: "last"}
	if err := create(last); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		err   error
		field registry.FieldError
		is    error
	}{
		{"no name", create(registry.NewCohort{Project: p.ID, Name: " "}), registry.FieldError{Field: "name", Code: registry.CodeRequired, Message: "This field is required."}, nil},
		{"a long name", create(registry.NewCohort{Project: p.ID, Name: strings.Repeat("é", 401)}), registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}, nil},
		{"a taken name", create(registry.NewCohort{Project: p.ID, Name: "trial"}), registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "A cohort with this name exists already."}, nil},
		{"a taken number", create(registry.NewCohort{Project: p.ID, ID: 7, Name: "x"}), registry.FieldError{Field: "id", Code: registry.CodeUnique, Message: "A cohort with this id exists already."}, nil},
		{"a number below 1", create(registry.NewCohort{Project: p.ID, ID: -1, Name: "x"}), registry.FieldError{Field: "id", Code: registry.CodeTooSmall, Message: "Ensure this value is greater than or equal to 1."}, nil},
		{"a large number", create(registry.NewCohort{Project: p.ID, ID: 1 << 40, Name: "x"}), registry.FieldError{Field: "id", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 2147483647."}, nil},
		{"no number left", create(registry.NewCohort{Project: p.ID, Name: "x"}), registry.FieldError{Field: "id", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 2147483647."}, nil},
		{"a new name that is taken", rename(p.ID, 7, "paying"), registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "A cohort with this name exists already."}, nil},
		{"a new name that is none", rename(p.ID, 7, ""), registry.FieldError{Field: "name", Code: registry.CodeRequired, Message: "This field is required."}, nil},
		{"an unknown project", create(registry.NewCohort{Project: 99, Name: "x"}), registry.FieldError{}, registry.ErrNotFound},
		{"renaming what is not there", rename(p.ID, 9, "x"), registry.FieldError{}, registry.ErrNotFound},
		{"renaming in another project", rename(99, 7, "x"), registry.FieldError{}, registry.ErrNotFound},
		{"deleting what is not there", r.DeleteCohort(t.Context(), p.ID, 9, now), registry.FieldError{}, registry.ErrNotFound},
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
