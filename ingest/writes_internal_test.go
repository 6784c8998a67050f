package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// watching is a Writes that keeps nothing, and considers each lookup useful.
type watching struct{ Writes }

func (watching) Watches(int64) bool { return true }

// TestLookupRests: after a slow lookup of hours there is none for 20 times as long as it took; after a fast one the next may come at once.
func TestLookupRests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		takes time.Duration
		err   error
		rest  time.Duration // from the beginning of the lookup
	}{
		{"fast", slowLookup - 1, nil, 0},
		{"fast, and fails", time.Millisecond, errTooMany, 0},
		{"slow", slowLookup, nil, 5 * time.Second},
		{"slower", 600 * time.Millisecond, nil, 12 * time.Second},
		{"too slow", movedTime, context.DeadlineExceeded, 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st := &store{project: 1, now: time.Now(), writes: watching{}}
				hours := []time.Time{time.Unix(3600, 0)}
				takes, asked := tt.takes, 0
				s := &session{store: st, people: &people{store: st}, hoursOf: func(_ context.Context, names []string) ([]time.Time, error) {
					if diff := cmp.Diff([]string{"a"}, names); diff != "" {
						t.Errorf("distinct ids (-want +got):\n%s", diff)
					}
					asked++
					time.Sleep(takes)
					return hours, tt.err
				}}
				// looksUp reports whether the hours of a batch are looked up, and checks what its block then says.
				looksUp := func() bool {
					t.Helper()
					before := asked
					overrides := newBlock(physical.Overrides, idColumns, []row{st.row(1, "a", "a", uuid.Nil, int8(0), int64(1), uint64(0))})
					persons := newBlock(physical.Persons, personColumns, nil)
					s.findMoved(t.Context(), &overrides, &persons)
					want := hours
					if asked == before || tt.err != nil {
						want = nil
					}
					if diff := cmp.Diff(want, overrides.moved); diff != "" {
						t.Errorf("hours of the overrides (-want +got):\n%s", diff)
					}
					return asked > before
				}
				began := time.Now()
				if !looksUp() {
					t.Fatal("the first lookup does not happen")
				}
				takes = 0
				if tt.rest > 0 {
					if looksUp() {
						t.Error("there is another lookup at once")
					}
					time.Sleep(tt.rest - time.Since(began) - 1)
					if looksUp() {
						t.Error("there is another lookup before the rest is over")
					}
					time.Sleep(time.Nanosecond)
				}
				for range 2 {
					if !looksUp() {
						t.Errorf("there is no lookup after %s", time.Since(began))
					}
				}
			})
		})
	}
}
