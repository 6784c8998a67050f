package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// model is the scheduler as documented, with plain lists.
type model struct {
	limits admission.Limits
	asked  []*modelRequest // all of them, in order of arrival
	order  int
	turns  map[int64]int
}

type modelRequest struct {
	name    string
	project int64
	class   *admission.Class
	free    bool // not counted in the queue
	awaited bool
	since   int // its position in the order of the waiting requests
	until   time.Time
	state   string // waits, holds, or how it ended
	cancel  context.CancelFunc
	await   func()
	place   *admission.Place
}

func (m *model) count(project int64, state string) (n int) {
	for _, r := range m.asked {
		if (project == 0 || r.project == project) && r.state == state {
			n++
		}
	}
	return n
}

// classes are what a modelled request may be of.
var classes = []*admission.Class{nil, nil, {Most: 1}, {Most: 2}}

func (m *model) full(class *admission.Class) bool {
	held := 0
	for _, r := range m.asked {
		if r.class == class && r.state == "holds" {
			held++
		}
	}
	return class != nil && held >= class.Most
}

func (m *model) ask(r *modelRequest) {
	if m.count(r.project, "holds")+m.count(r.project, "waits") == 0 {
		m.order++
		m.turns[r.project] = m.order
	}
	before := 0
	for _, other := range m.asked {
		if other.project == r.project && other.state == "waits" && !other.free {
			before++
		}
	}
	m.queue(r)
	m.asked = append(m.asked, r)
	m.serve()
	if r.state == "waits" && before >= m.limits.Queue && !r.free {
		r.state = "full"
	}
}

func (m *model) queue(r *modelRequest) {
	m.order++
	r.state, r.since = "waits", m.order
}

// serve gives out places while there are any: to the project that holds the fewest, then to awaited requests, then by turns; within a project to
// awaited requests, then in order.
func (m *model) serve() {
	for {
		var candidates []*modelRequest
		for _, r := range m.asked {
			if r.state == "waits" && m.free(r.project) && !m.full(r.class) {
				candidates = append(candidates, r)
			}
		}
		if len(candidates) == 0 {
			return
		}
		next := slices.MinFunc(candidates, func(a, b *modelRequest) int {
			switch held := m.count(a.project, "holds") - m.count(b.project, "holds"); {
			case held != 0:
				return held
			case a.awaited != b.awaited && a.awaited:
				return -1
			case a.awaited != b.awaited:
				return 1
			case a.project != b.project:
				return m.turns[a.project] - m.turns[b.project]
			}
			return a.since - b.since
		})
		m.order++
		next.state, m.turns[next.project] = "holds", m.order
	}
}

func (m *model) free(project int64) bool {
	held := m.count(project, "holds")
	free := m.limits.Places - m.count(0, "holds")
	if held > 0 {
		free -= m.limits.Spare()
	}
	return free > 0 && held < m.limits.Project
}

// TestModel makes random calls, and after each compares who holds a place with the model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { rapid.SyncTest(rt, playModel) })
}

func playModel(rt *rapid.T) {
	limits := func() admission.Limits {
		return admission.Limits{
			Places: rapid.IntRange(1, 9).Draw(rt, "places"), Project: rapid.IntRange(1, 6).Draw(rt, "project's"), Queue: rapid.IntRange(0, 4).Draw(rt, "queue"),
		}
	}
	m := &model{limits: limits(), turns: map[int64]int{}}
	s := admission.New(m.limits)
	var mu sync.Mutex // guards ends: several may end at once
	ends := make(map[*modelRequest]string)
	pick := func(state string) *modelRequest {
		var found []*modelRequest
		for _, r := range m.asked {
			if r.state == state {
				found = append(found, r)
			}
		}
		if len(found) == 0 {
			rt.Skip("none " + state)
		}
		return rapid.SampledFrom(found).Draw(rt, state)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"ask": func(rt *rapid.T) {
			r := &modelRequest{
				name: fmt.Sprint("r", len(m.asked)), project: rapid.Int64Range(1, 4).Draw(rt, "project"), awaited: rapid.Bool().Draw(rt, "awaited"),
				class: rapid.SampledFrom(classes).Draw(rt, "class"), free: rapid.Bool().Draw(rt, "uncounted"),
				until: time.Now().Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "patience"))*time.Minute + time.Duration(len(m.asked))),
			}
			ctx, cancel := context.WithCancel(context.Background())
			r.cancel = cancel
			becomes := make(chan struct{})
			r.await = func() { close(becomes) }
			if r.awaited {
				r.await()
			}
			go func() {
				var err error
				r.place, err = s.Enter(ctx, admission.Request{Project: r.project, Awaited: becomes, Wait: time.Until(r.until), Class: r.class, Uncounted: r.free})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					ends[r] = "holds"
				case errors.Is(err, admission.ErrQueueFull):
					ends[r] = "full"
				case errors.Is(err, admission.ErrTooLong):
					ends[r] = "too long"
				case errors.Is(err, context.Canceled):
					ends[r] = "gone"
				}
			}()
			synctest.Wait()
			m.ask(r)
		},
		"leave": func(rt *rapid.T) {
			r := pick("holds")
			r.place.Leave()
			if rapid.Bool().Draw(rt, "twice") {
				r.place.Leave()
			}
			mu.Lock()
			r.state, ends[r] = "left", "left"
			mu.Unlock()
			m.serve()
		},
		"go away": func(*rapid.T) {
			r := pick("waits")
			r.cancel()
			r.state = "gone"
		},
		"await": func(*rapid.T) {
			r := pick("waits")
			if r.awaited {
				return
			}
			r.await()
			r.awaited = true
			m.queue(r)
			m.serve()
		},
		"set limits": func(*rapid.T) {
			m.limits = limits()
			s.SetLimits(m.limits)
			m.serve()
		},
		"time passes": func(rt *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 10).Draw(rt, "minutes")) * time.Minute)
			for _, r := range m.asked {
				if r.state == "waits" && !time.Now().Before(r.until) {
					r.state = "too long"
				}
			}
		},
		"": func(rt *rapid.T) {
			synctest.Wait()
			want, got := map[string]string{}, map[string]string{}
			for _, r := range m.asked {
				want[r.name] = r.state
				got[r.name] = "waits"
				if end, ok := ends[r]; ok {
					got[r.name] = end
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("with %+v (-model +scheduler):\n%s", m.limits, diff)
			}
			s.Each(func(project int64, running, waiting int) {
				if want := [2]int{m.count(project, "holds"), m.count(project, "waits")}; want != [2]int{running, waiting} {
					rt.Fatalf("project %d: %d run and %d wait, want %v", project, running, waiting, want)
				}
			})
		},
	})
	for _, r := range m.asked { // or the bubble would not end
		r.cancel()
	}
	synctest.Wait()
	for _, r := range m.asked {
		if r.place != nil {
			r.place.Leave()
		}
	}
	s.Each(func(project int64, running, waiting int) {
		if running != 0 || waiting != 0 {
			rt.Fatalf("at the end %d queries of project %d run and %d wait", running, project, waiting)
		}
	})
}
