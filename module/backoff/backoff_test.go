package backoff_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/backoff"
)

// length waits for the end of a pause.
func length(p *backoff.Pauses[string], name string) time.Duration {
	began := time.Now()
	for p.Holds(name, time.Now()) {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// fail makes something fail several times, and returns how long each pause was.
func fail(p *backoff.Pauses[string], name string, times int) (lengths []time.Duration) {
	for range times {
		p.Failed(name, time.Now())
		lengths = append(lengths, length(p, name))
	}
	return lengths
}

// TestPauses: each pause is twice as long as the one before, up to a minute.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p backoff.Pauses[string]
		if p.Holds("a", time.Now()) {
			t.Error("what never failed is not tried")
		}
		var want []time.Duration
		for _, seconds := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			want = append(want, seconds*time.Second)
		}
		if diff := cmp.Diff(want, fail(&p, "a", 9)); diff != "" {
			t.Errorf("the pauses are (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[:2], fail(&p, "b", 2)); diff != "" {
			t.Errorf("those of another name are (-want +got):\n%s", diff)
		}
	})
}

// TestPausesEnd: after a success, or for something that did not exist, pauses start afresh; others do not.
func TestPausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p backoff.Pauses[string]
		names := []string{"ended", "gone", "there"}
		for _, name := range names {
			fail(&p, name, 2)
			p.Failed(name, time.Now())
		}
		p.End("ended")
		p.Keep(func(name string) bool { return name != "gone" })
		names = slices.DeleteFunc(names, func(name string) bool { return !p.Holds(name, time.Now()) })
		if diff := cmp.Diff([]string{"there"}, names); diff != "" {
			t.Errorf("not tried are (-want +got):\n%s", diff)
		}
		length(&p, "there")
		for name, want := range map[string]time.Duration{"ended": time.Second, "gone": time.Second, "there": 8 * time.Second} {
			if got := fail(&p, name, 1); got[0] != want {
				t.Errorf("%s: %s, want %s", name, got[0], want)
			}
		}
	})
}
