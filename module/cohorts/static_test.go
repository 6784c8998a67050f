package cohorts_test

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// countedMembers returns one count after the other, and then always the last.
type countedMembers []int64

func (c *countedMembers) CountMembers(context.Context, *admission.Place, int64, int64) (int64, error) {
	count := (*c)[0]
	if len(*c) > 1 {
		*c = (*c)[1:]
	}
	return count, nil
}

// TestCountStatic: the recorded number is the final one, whoever changes the members meanwhile.
func TestCountStatic(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{Project: s.project, CohortFields: registry.CohortFields{Static: registry.To(true)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, counts := range []countedMembers{{0}, {1}, {1, 2}, {1, 3, 2}} {
		last := counts[len(counts)-1]
		got, err := cohorts.CountStatic(t.Context(), s.registry, &counts, nil, s.project, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if stored := s.registry.Snapshot().Cohort(s.project, c.ID); *got.Count != last || *stored.Count != last {
			t.Errorf("%d is returned and %d stored, want %d", *got.Count, *stored.Count, last)
		}
	}
}
