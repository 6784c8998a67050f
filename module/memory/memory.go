// Package memory bounds how much memory the large requests and responses of all projects take together. Clients may send and read slowly and have many
// connections, so the number of running requests does not bound it. No project can take more than half of what the others leave.
package memory

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

const (
	// Large is the size from which a request or a response counts, in bytes.
	Large = 256 << 10
	// Default is how much memory large requests and responses share, in bytes: that of eight responses of the largest size.
	Default = 512 << 20

	patience = 5 * time.Second // how long a loan waits for memory

	grace   = 30 * time.Second // how long any body may take
	slowest = 16 << 10         // how many bytes of it extend that by a second
	longest = 15 * time.Minute // the longest that a Deadline leaves
)

// ErrNone is returned if no memory was free in time.
var ErrNone = errors.New("too much memory is lent to other large requests and responses")

// Longest returns how long a body of that many bytes may take to arrive or to be sent: a client that is slower keeps memory from others.
func Longest(bytes int) time.Duration { return grace + time.Duration(bytes/slowest)*time.Second }

// Deadline returns when a body of that many bytes must have been received or sent: after [Longest], but within a quarter of an hour.
func Deadline(now time.Time, bytes int) time.Time { return now.Add(min(Longest(bytes), longest)) }

// Pool is the memory that is lent. Its methods may be called concurrently.
type Pool struct {
	size int64

	mu       sync.Mutex // guards the rest
	lent     int64
	projects map[int64]int64     // bytes, by project
	bodies   map[*byte]*response // by the first byte
	returned chan struct{}       // closed and replaced when memory comes back
}

// response is the body of a response that is being sent.
type response struct {
	project, bytes int64
	clients        int
}

// NewPool returns a pool of that many bytes.
func NewPool(bytes int64) *Pool {
	return &Pool{size: bytes, projects: map[int64]int64{}, bodies: map[*byte]*response{}, returned: make(chan struct{})}
}

// Lent returns how many bytes are lent now.
func (p *Pool) Lent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lent
}

// lend lends bytes to a project if it may have them: at most half of what the others leave, so that there is always some left for one more. The caller holds mu.
func (p *Pool) lend(project, bytes int64) bool {
	own := p.projects[project]
	if own+bytes > (p.size-p.lent+own)/2 {
		return false
	}
	p.keep(project, bytes)
	return true
}

func (p *Pool) keep(project, bytes int64) {
	p.lent += bytes
	if bytes > 0 {
		p.projects[project] += bytes
	}
}

// takeBack is the reverse of lend. The caller holds mu, and calls tell.
func (p *Pool) takeBack(project, bytes int64) {
	p.lent -= bytes
	if p.projects[project] -= bytes; p.projects[project] == 0 {
		delete(p.projects, project)
	}
}

// tell wakes those who wait for memory. The caller holds mu.
func (p *Pool) tell() {
	close(p.returned)
	p.returned = make(chan struct{})
}

// try calls lend until it reports true, each time after memory came back.
func (p *Pool) try(ctx context.Context, lend func() bool) error {
	var late <-chan time.Time
	for {
		p.mu.Lock()
		done, returned := lend(), p.returned
		p.mu.Unlock()
		if done {
			return nil
		}
		if late == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-returned:
		case <-late:
			return ErrNone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Loan is the memory that is lent to one request of a project. A nil Loan has all the memory it wants. Take may be called concurrently; the other methods are
// called by the goroutine that answers the request.
type Loan struct {
	Pool    *Pool
	Project int64 // 0 for callers that are not known

	bytes int64
	body  []byte // that Hold was called with; nil for none
}

// Belong makes the loan that of a project, unless it has lent anything already: the callers of requests are known after some of a body may have been read.
func (l *Loan) Belong(project int64) {
	if l.bytes == 0 {
		l.Project = project
	}
}

// Most returns the most bytes that Take can ever lend: those that a project gets while nothing else is lent. Asking for more would always fail.
func (l *Loan) Most() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return l.Pool.size / 2
}

// Take lends more bytes. It waits for them if it has to. The error is ErrNone, or the cause of ctx.
func (l *Loan) Take(ctx context.Context, bytes int64) error {
	if l == nil {
		return nil
	}
	return l.Pool.try(ctx, func() bool {
		if !l.Pool.lend(l.Project, bytes) {
			return false
		}
		l.bytes += bytes
		return true
	})
}

// Hold takes the bytes of a response's body, which is not empty, in place of what was taken before. A body that is being sent to several clients counts once.
// It is called once. The error is that of Take.
func (l *Loan) Hold(ctx context.Context, body []byte) error {
	if l == nil {
		return nil
	}
	first, bytes := &body[0], int64(len(body))
	return l.Pool.try(ctx, func() bool {
		before := l.bytes
		l.Pool.takeBack(l.Project, before)
		known := l.Pool.bodies[first]
		if known == nil {
			if !l.Pool.lend(l.Project, bytes) {
				l.Pool.keep(l.Project, before)
				return false
			}
			known = &response{project: l.Project, bytes: bytes}
			l.Pool.bodies[first] = known
		}
		known.clients++
		l.body, l.bytes = body, 0
		l.Pool.tell()
		return true
	})
}

// Return returns everything.
func (l *Loan) Return() {
	if l == nil || l.bytes == 0 && l.body == nil {
		return
	}
	l.Pool.mu.Lock()
	defer l.Pool.mu.Unlock()
	defer l.Pool.tell()
	l.Pool.takeBack(l.Project, l.bytes)
	l.bytes = 0
	if l.body == nil {
		return
	}
	first := &l.body[0]
	known := l.Pool.bodies[first]
	if known.clients--; known.clients == 0 {
		delete(l.Pool.bodies, first)
		l.Pool.takeBack(known.project, known.bytes)
	}
	l.body = nil
}
