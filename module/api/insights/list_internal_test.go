package insights

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// TestForEachConcurrentlyStops: after the first failure, calls in progress end and no others are made.
func TestForEachConcurrentlyStops(t *testing.T) {
	failure := errors.New("failed")
	for name, fail := range map[string]func() error{
		"an error": func() error { return failure },
		"a panic":  func() error { panic(failure) },
	} {
		var calls atomic.Int64
		_, err := forEachConcurrently(t.Context(), 1000, func(ctx context.Context, i int) (execution.Quotas, error) {
			calls.Add(1)
			if i == resultsAtOnce-1 {
				return nil, fail()
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		if crash, ok := errors.AsType[*panics.Error](err); !errors.Is(err, failure) || ok != (name == "a panic") || ok && len(crash.Stack) == 0 {
			t.Errorf("after %s: %v", name, err)
		}
		if calls.Load() > resultsAtOnce {
			t.Errorf("after %s: %d calls", name, calls.Load())
		}
	}
}
