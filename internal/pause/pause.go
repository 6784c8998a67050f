// Package pause waits for a while, or until there is no reason to wait any more.
package pause

import (
	"context"
	"time"
)

// For waits for d. If ctx ends first, it returns the cause at once. A d that is not positive only asks whether ctx has ended.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
