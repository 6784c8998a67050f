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
)

// Memory is what the requests that are read at the same time share. Usual requests and large ones have parts of their own, so that a
// few large ones keep nobody waiting but each other.
type Memory struct {
	small, large *semaphore.Weighted
	lent         atomic.Int64
}

// DefaultMemory is how much memory requests share, in bytes: enough for one that is as large as may be, and a thousand usual ones.
const DefaultMemory = 512 << 20

const (
	smallRequest = 1 << 20 // what a request takes of the part for usual ones, in bytes
	// A request that finds no memory waits for so long.
	memoryPatience = 2 * time.Second
	memoryWait     = 2 * time.Second // after that clients wait before they send it again
)

// NewMemory is so many bytes, a quarter of them for usual requests.
func NewMemory(bytes int64) *Memory {
	return &Memory{small: semaphore.NewWeighted(bytes / 4), large: semaphore.NewWeighted(bytes - bytes/4)}
}

// Lent is how many bytes are lent now.
func (m *Memory) Lent() int64 { return m.lent.Load() }

// lend begins to count the memory of a request.
func (m *Memory) lend(ctx context.Context) *lease { return &lease{ctx: ctx, from: m} }

// lease is the memory of one request.
type lease struct {
	ctx          context.Context //nolint:containedctx // it is that of the request
	from         *Memory
	total        int
	small, large int64 // what was taken of each part
}

// Take lends bytes to the request, or refuses it when there are none for a while.
func (l *lease) Take(bytes int) error {
	l.total += bytes
	return l.settle()
}

// Return takes some of the memory back.
func (l *lease) Return(bytes int) {
	l.total -= bytes
	_ = l.settle() // what is given back is not waited for
}

// settle takes or gives back what the total has come to need.
func (l *lease) settle() error {
	small := int64(min(l.total, smallRequest))
	if err := l.move(l.from.small, &l.small, small); err != nil {
		return err
	}
	return l.move(l.from.large, &l.large, int64(l.total)-small)
}

func (l *lease) move(part *semaphore.Weighted, has *int64, needs int64) error {
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

func (l *lease) wait(part *semaphore.Weighted, more int64) error {
	ctx, cancel := context.WithTimeout(l.ctx, memoryPatience)
	defer cancel()
	if part.Acquire(ctx, more) == nil {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the client went away
	}
	return api.Unavailable("server_busy", "The server is busy with other requests. Nothing of this one was kept: send it again later.", memoryWait, errNoMemory)
}

var errNoMemory = errors.New("too much memory is lent to other requests that bring events")

// The memory of larger requests is collected as soon as they end, in bytes.
const collectedRequest = 32 << 20

// giveBack ends the lease. What a large request had is collected first: the heap would hold it together with what the next one takes.
func (l *lease) giveBack() {
	if l.large > collectedRequest {
		runtime.GC()
	}
	l.total = 0
	_ = l.settle() // giving back cannot fail
}

// A body that brings fewer than slowestBody bytes a second is given up after bodyTime, since memory is lent to it that others need. What it brings
// at that rate or faster gives it more time.
const (
	bodyTime    = 30 * time.Second
	slowestBody = 16 << 10
)

// readAll reads all of a body, but for what is more than one byte beyond the most. expect is how large it is said to be; -1 when that is
// not said. The error of a body that comes too slowly is os.ErrDeadlineExceeded.
func (l *lease) readAll(in io.Reader, expect, most int) ([]byte, error) {
	const atFirst = 16 << 10 // who says that more will come has to send this much first
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
			return nil, err //nolint:wrapcheck // the caller says what it was
		}
		if time.Since(began) > bodyTime+time.Duration(len(body)/slowestBody)*time.Second {
			return nil, os.ErrDeadlineExceeded
		}
	}
	return body, nil
}
