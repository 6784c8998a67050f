package ingest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// ahead reads the next batch of an import while the last one is being written.
type ahead struct {
	in      Reader
	project int64
	most    int // records of a batch
	repeats repeats
	full    chan *batch // closed after the last one
	empty   chan *batch
	stopped atomic.Bool
	failed  string // the reader's panic and its stack; empty if there was none
}

// readAhead starts reading. The caller takes batches from full and returns them to empty until full is closed.
func readAhead(project int64, in Reader, most int) *ahead {
	const batches = 2
	a := &ahead{in: in, project: project, most: most, full: make(chan *batch), empty: make(chan *batch, batches)}
	for range batches {
		a.empty <- &batch{}
	}
	go a.read()
	return a
}

func (a *ahead) read() {
	defer close(a.full)
	defer func() {
		if p := recover(); p != nil {
			a.failed = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	for !a.stopped.Load() {
		b := <-a.empty
		b.reset()
		a.fill(b)
		a.full <- b
		if b.end != nil {
			return
		}
	}
}

// fill reads a batch.
func (a *ahead) fill(b *batch) {
	for !b.isFull(a.most) && !a.stopped.Load() {
		r, err := a.in.Read()
		var bad *record.Error
		switch {
		case err == nil:
			b.add(r, &a.repeats, a.project)
		case errors.As(err, &bad):
			b.bad = append(b.bad, bad)
		default:
			b.end = err
			return
		}
	}
}

// stop stops the reading and waits for its end.
func (a *ahead) stop() {
	a.stopped.Store(true)
	for b := range a.full {
		a.empty <- b
	}
}
