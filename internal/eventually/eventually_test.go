package eventually_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
)

// failed remembers how a test failed.
type failed struct {
	testing.TB

	with string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.with = fmt.Sprintf(format, args...)
	panic(f)
}

func TestIs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration // when it becomes true
		waited time.Duration
		want   string
	}{
		{name: "at once"},
		{name: "after a while", after: 30 * time.Second, waited: 30 * time.Second},
		{
			name: "never", after: time.Hour, waited: eventually.Patience + 5*time.Millisecond,
			want: "after 1m0s it is still not so that the hour is over",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, f := time.Now(), &failed{TB: t}
				func() {
					defer func() {
						if p := recover(); p != nil && p != any(f) {
							panic(p)
						}
					}()
					eventually.Is(f, "the hour is over", func() bool { return time.Since(began) >= tt.after })
				}()
				if waited := time.Since(began); f.with != tt.want || waited != tt.waited {
					t.Errorf("Is() failed with %q after %s, want %q after %s", f.with, waited, tt.want, tt.waited)
				}
			})
		})
	}
}
