package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

var errEnd = errors.New("the end")

func TestFor(t *testing.T) {
	for _, tt := range []struct {
		name          string
		d, end, waits time.Duration // end: when the context ends; 0: never, negative: before
		want          error
	}{
		{name: "the whole time", d: time.Minute, waits: time.Minute},
		{name: "a context that ends later", d: time.Minute, end: time.Hour, waits: time.Minute},
		{name: "a context that ends meanwhile", d: time.Hour, end: time.Minute, waits: time.Minute, want: errEnd},
		{name: "a context that has ended", d: time.Hour, end: -1, want: errEnd},
		{name: "no time"},
		{name: "no time, and a context that has ended", end: -1, want: errEnd},
		{name: "less than no time", d: -time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.end < 0 {
					cancel(errEnd)
				}
				if tt.end > 0 {
					defer time.AfterFunc(tt.end, func() { cancel(errEnd) }).Stop()
				}
				began := time.Now()
				if err := pause.For(ctx, tt.d); !errors.Is(err, tt.want) || time.Since(began) != tt.waits {
					t.Errorf("For() = %v after %v, want %v after %v", err, time.Since(began), tt.want, tt.waits)
				}
			})
		})
	}
}
