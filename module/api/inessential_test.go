package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestInessential(t *testing.T) {
	broken := errors.New("broken")
	hangs := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, fmt.Errorf("reading: %w", context.Cause(ctx))
	}
	answers := func(n int, err error) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, err }
	}
	for _, tt := range []struct {
		name  string
		read  func(context.Context) (int, error)
		waits time.Duration // of the caller
		want  int
		ok    bool
		err   error
	}{
		{"a store that answers", answers(7, nil), time.Hour, 7, true, nil},
		{"a store that is away", answers(0, fmt.Errorf("reading: %w", registry.ErrUnavailable)), time.Hour, 0, false, nil},
		{"a store that is silent", hangs, time.Hour, 0, false, nil},
		{"a caller who goes away", hangs, time.Millisecond, 0, false, context.DeadlineExceeded},
		{"a store that can't be read", answers(0, broken), time.Hour, 0, false, broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.waits)
				defer cancel()
				got, ok, err := api.Inessential(ctx, tt.read)
				if got != tt.want || ok != tt.ok || !errors.Is(err, tt.err) {
					t.Errorf("%d %t %v, want %d %t %v", got, ok, err, tt.want, tt.ok, tt.err)
				}
			})
		})
	}
}
