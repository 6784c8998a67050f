package delivery

import (
	"slices"
	"sync"
)

// targets are the targets that events may be delivered to. Deliveries share them.
type targets struct {
	mu      sync.Mutex
	list    []*registered // the newest last
	changed chan struct{} // closed when another target becomes the newest
	unused  *sync.Cond    // a target is no longer in use
}

type registered struct {
	Target

	uses int // guarded by the mutex of targets
}

func newTargets() *targets {
	a := &targets{changed: make(chan struct{})}
	a.unused = sync.NewCond(&a.mu)
	return a
}

// Use makes t the target until another one takes its place or release is called; after that, the previous one is used again. Use waits until the target that t
// replaces is no longer in use, and release waits for t. Neither waits for the target that is used from then on.
func (a *targets) Use(t Target) (release func()) {
	r := &registered{Target: t}
	a.mu.Lock()
	defer a.mu.Unlock()
	replaced := a.newest()
	a.list = append(a.list, r)
	a.tell()
	a.waitFor(replaced)
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		newest := a.newest() == r
		a.list = slices.DeleteFunc(a.list, func(other *registered) bool { return other == r })
		if newest {
			a.tell()
		}
		a.waitFor(r)
	})
}

// newest returns the target that is to be used, nil for none. The caller holds mu.
func (a *targets) newest() *registered {
	if len(a.list) == 0 {
		return nil
	}
	return a.list[len(a.list)-1]
}

// tell ends what uses the previous target. The caller holds mu.
func (a *targets) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// waitFor waits until r, which may be nil, is no longer in use, unless it becomes the newest target again. The caller holds mu.
func (a *targets) waitFor(r *registered) {
	for r != nil && r.uses > 0 && a.newest() != r {
		a.unused.Wait()
	}
}

// target returns the newest target, nil for none, and a channel that is closed when another one takes its place.
func (a *targets) target() (*registered, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newest(), a.changed
}

// hold keeps a target from being replaced until done is called. It reports false if it has been replaced already.
func (a *targets) hold(r *registered) (done func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest() != r {
		return nil, false
	}
	r.uses++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		r.uses--
		a.unused.Broadcast()
	}, true
}
