package background_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/background"
)

// TestPerShard: a shard whose work does not end holds up no other, and work begun for it meanwhile is done once, afterwards. That also holds for work that
// panics.
func TestPerShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := background.New(nil, zap.NewNop())
		work := worker.PerShard()
		var mu sync.Mutex
		var done []string
		note := func(what string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, what)
			}
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(done, want) {
				t.Errorf("done %q, want %q", done, want)
			}
		}
		hang := make(chan struct{})
		work.Begin("east", func() { <-hang })
		work.Begin("east", note("overtaken"))
		work.Begin("", note("main"))
		work.Begin("east", note("east"))
		expect("main")
		close(hang)
		expect("main", "east")
		work.Begin("east", func() { panic("broken") })
		work.Begin("east", note("once more"))
		if err := worker.Close(); err != nil {
			t.Error(err)
		}
		work.Begin("east", note("too late"))
		expect("main", "east", "once more")
	})
}
