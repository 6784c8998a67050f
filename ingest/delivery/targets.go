package delivery

import "sync"

// targets are the targets that events may be delivered to. Deliveries share them.
type targets struct {
	mu      sync.Mutex
	list    []*registered // the newest last
	changed chan struct{} // closed when the list changes

	busy sync.RWMutex // read-locked while a target is used
}

type registered struct{ Target }

func newTargets() *targets { return &targets{changed: make(chan struct{})} }

// Use makes t the target until another one takes its place or release is called; after that, the previous one is used again. Both Use and release wait until no
// target is in use that has been replaced.
func (a *targets) Use(t Target) (release func()) {
	r := &registered{t}
	a.change(func() { a.list = append(a.list, r) })
	return sync.OnceFunc(func() {
		a.change(func() {
			for i, other := range a.list {
				if other == r {
					a.list = append(a.list[:i:i], a.list[i+1:]...)
					return
				}
			}
		})
	})
}

func (a *targets) change(do func()) {
	a.mu.Lock()
	do()
	close(a.changed)
	a.changed = make(chan struct{})
	a.mu.Unlock()
	a.busy.Lock()
	defer a.busy.Unlock() // every use of the old target has ended
}

// target returns the newest target, nil for none, and a channel that is closed when the targets change.
func (a *targets) target() (*registered, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == 0 {
		return nil, a.changed
	}
	return a.list[len(a.list)-1], a.changed
}

// hold keeps a target from being replaced until done is called. It reports false if it has been replaced already.
func (a *targets) hold(r *registered) (done func(), ok bool) {
	a.busy.RLock()
	if newest, _ := a.target(); newest != r {
		a.busy.RUnlock()
		return nil, false
	}
	return a.busy.RUnlock, true
}
