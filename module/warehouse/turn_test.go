package warehouse

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// TestTaking: a batch of an import takes a place of its project and, unless nothing is written, its turn, for which it waits during a backup.
func TestTaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Warehouse{common: newCommon()}
		places := admission.New(admission.Limits{Places: 2, Project: 1})
		options := w.taking(places, ingest.Options{Project: 1})
		leave, err := options.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held, _ := places.Of(1); held != 1 {
			t.Errorf("the project holds %d places", held)
		}
		leave()
		if held, _ := places.Of(1); held != 0 {
			t.Errorf("after the batch the project holds %d places", held)
		}

		release, _, err := w.Hold(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := options.Turn(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a turn during a backup: %v", err)
		}
		release()
		end, err := options.Turn(t.Context())
		if err != nil {
			t.Fatalf("a turn after a backup: %v", err)
		}
		end()
		if !w.gate.TryAcquire(writers) {
			t.Error("the gate is not given back")
		}

		if dry := w.taking(places, ingest.Options{Project: 1, DryRun: true}); dry.Turn != nil || dry.Enter == nil {
			t.Error("a dry run takes a turn, or needs no place")
		}
	})
}
