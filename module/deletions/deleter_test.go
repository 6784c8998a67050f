package deletions_test

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
)

// TestRecountAfterwards: cohorts are counted anew when the deletion has given its place and the project's people back.
func TestRecountAfterwards(t *testing.T) {
	placed, recounted := false, 0
	var s *server
	s = start(t, func(c *deletions.Config) {
		c.Recount = func(ctx context.Context, project int64, _ []int64) error {
			recounted++
			if placed {
				t.Error("the deletion still has its place")
				return nil
			}
			nobody := func(context.Context, []ingest.Gone) error { return nil }
			return s.warehouse.DeletePeople(ctx, s.options(project), ingest.Named{}, false, nobody, nobody) // waits for who writes
		}
	})
	s.capture(t, time.Now())
	enter := func(context.Context) (func(), error) {
		placed = true
		return func() { placed = false }, nil
	}
	done, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: ingest.Named{DistinctIDs: []string{"ann"}}, Enter: enter})
	if err != nil || len(done) != 1 || recounted != 1 {
		t.Errorf("%d deletions, counted %d times, %v", len(done), recounted, err)
	}
}
