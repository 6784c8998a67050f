package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// Memory limits the memory of all requests being read. Usual and large requests have separate parts of it, so that a few large ones only make each other
// wait. It is not that of [memory.Pool], which is shared fairly between projects: whose events they are may be known only once they have been read.
type Memory struct {
	small, large *semaphore.Weighted
	lent         atomic.Int64
}

// DefaultMemory is how much memory requests share, in bytes: enough for one of the largest size and a thousand usual ones.
const DefaultMemory = 512 << 20

const (
	smallRequest = 1 << 20 // the most that a request takes from the part for usual requests, in bytes
	// memoryPatience is how long a request waits for memory.
	memoryPatience = 2 * time.Second
	memoryWait     = 2 * time.Second // how long its client is told to wait before the next attempt
)

// NewMemory returns a Memory of this size. A quarter of it is for usual requests.
func NewMemory(bytes int64) *Memory {
	return &Memory{small: semaphore.NewWeighted(bytes / 4), large: semaphore.NewWeighted(bytes - bytes/4)}
}

// Lent returns how many bytes are lent now.
func (m *Memory) Lent() int64 { return m.lent.Load() }

// lend starts the loan of a request.
func (m *Memory) lend(ctx context.Context) *loan { return &loan{ctx: ctx, from: m} }

// loan is the memory lent to one request.
type loan struct {
	ctx          context.Context // the context of the request
	from         *Memory
	total        int
	small, large int64 // how much was taken from each part
}

// Take lends bytes to the request, or refuses it if they do not become available in time.
func (l *loan) Take(bytes int) error {
	l.total += bytes
	return l.settle()
}

// Return returns some of the memory.
func (l *loan) Return(bytes int) {
	l.total -= bytes
	_ = l.settle() // returning never waits
}

// settle acquires or releases memory until it matches the total.
func (l *loan) settle() error {
	small := int64(min(l.total, smallRequest))
	if err := l.move(l.from.small, &l.small, small); err != nil {
		return err
	}
	return l.move(l.from.large, &l.large, int64(l.total)-small)
}

func (l *loan) move(part *semaphore.Weighted, has *int64, needs int64) error {
	more := needs - *has
	switch {
	case more == 0:
		return nil
	case more < 0:
		part.Release(-more)
	case !part.TryAcquire(more):
		if err := l.wait(part, more); err != nil {
			return err
		}
	}
	*has = needs
	l.from.lent.Add(more)
	return nil
}

func (l *loan) wait(part *semaphore.Weighted, more int64) error {
	ctx, cancel := context.WithTimeout(l.ctx, memoryPatience)
	defer cancel()
	if part.Acquire(ctx, more) == nil {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	return api.Unavailable("server_busy", "The server is busy with other requests. Nothing of this one was kept: send it again later.", memoryWait, errNoMemory)
}

var errNoMemory = errors.New("too much memory is lent to other requests that bring events")

// collectedRequest is the size, in bytes, above which the memory of a request is collected as soon as it ends.
const collectedRequest = 32 << 20

// giveBack ends the loan. It collects the memory of a large request first: otherwise the heap would hold it together with that of the next one.
func (l *loan) giveBack() {
	if l.large > collectedRequest {
		runtime.GC()
	}
	l.total = 0
	_ = l.settle() // returning cannot fail
}

// readAll reads a body, but stops one byte beyond most. expect is its announced size, -1 if unknown. If what has arrived took longer than
// [memory.Longest], the error is os.ErrDeadlineExceeded: others need the memory.
func (l *loan) readAll(in io.Reader, expect, most int) ([]byte, error) {
	const atFirst = 16 << 10 // a client that announces more has to send this much first
	size := atFirst
	if expect >= 0 {
		size = min(expect+1, atFirst)
	}
	if err := l.Take(size); err != nil {
		return nil, err
	}
	began := time.Now()
	body := make([]byte, 0, size)
	for len(body) <= most {
		if len(body) == cap(body) {
			size := min(2*cap(body), most+1)
			if expect >= cap(body) {
				size = min(size, expect+1)
			}
			if err := l.Take(size); err != nil {
				return nil, err
			}
			old := body
			body = append(make([]byte, 0, size), old...)
			l.Return(cap(old))
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if time.Since(began) > memory.Longest(len(body)) {
			return nil, os.ErrDeadlineExceeded
		}
	}
	return body, nil
}
