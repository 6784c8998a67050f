package warehouse

import (
	"context"
	"errors"
	"testing"
)

// fakeReplicas catch up at once, or fail.
type fakeReplicas struct {
	first   string
	whole   bool
	failure error
	asked   int
}

func (f *fakeReplicas) First() string { return f.first }

func (f *fakeReplicas) CatchUp(context.Context, ...string) (host string, whole bool, err error) {
	f.asked++
	return f.first, f.whole, f.failure
}

// TestCaughtUp: a host catches up if others wrote, if it is another one, and as long as rows are missing. When they are there, what was read without
// them is forgotten.
func TestCaughtUp(t *testing.T) {
	f := &fakeReplicas{}
	c := &caughtUp{replicas: f}
	for _, step := range []struct {
		name          string
		first         string
		whole, others bool
		asks, missed  bool
	}{
		{"the first time", "a", true, false, true, false},
		{"the same host", "a", true, false, false, false},
		{"others wrote", "a", true, true, true, false},
		{"another host, which lacks rows", "b", false, false, true, false},
		{"it still lacks them", "b", false, false, true, false},
		{"the first host is back", "a", true, false, true, true},
		{"nothing is missing any more", "a", true, false, false, false},
		{"another host, which lacks nothing", "b", true, false, true, false},
		{"rows are missing on the same host", "b", false, true, true, false},
		{"they have come", "b", true, false, true, true},
	} {
		asked := f.asked
		f.first, f.whole = step.first, step.whole
		if step.others {
			c.forget(1)
		}
		missed, err := c.await(t.Context(), 1)
		if err != nil || missed != step.missed || f.asked > asked != step.asks {
			t.Errorf("%s: missed is %t, asked %t, %v; want %t, %t", step.name, missed, f.asked > asked, err, step.missed, step.asks)
		}
	}
	c.forget(1)
	if missed, err := c.await(t.Context(), 1); missed || err != nil || f.asked != 9 {
		t.Errorf("of a project that was forgotten, rows are missed (%t), or it was not asked (%d times): %v", missed, f.asked, err)
	}
}

// TestNotCaughtUp: a host that could not catch up is asked again, though others have written only once.
func TestNotCaughtUp(t *testing.T) {
	f := &fakeReplicas{first: "a", whole: true}
	c := &caughtUp{replicas: f}
	if _, err := c.await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.forget(1)
	f.failure = errors.New("too far behind")
	for range 2 {
		if _, err := c.await(t.Context(), 1); !errors.Is(err, f.failure) {
			t.Errorf("a host that is behind: %v", err)
		}
	}
	f.failure = nil
	if _, err := c.await(t.Context(), 1); err != nil || f.asked != 4 {
		t.Errorf("at last: %v, asked %d times", err, f.asked)
	}
}
