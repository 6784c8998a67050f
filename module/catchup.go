package module

import (
	"context"
	"sync"
	"time"
)

// catchUp reads what other servers wrote to the registry, on behalf of servers whose requests refer to it: one read at a time for any number of
// requests. Requests wait only briefly, and not at all while the registry is known to be away.
type catchUp struct {
	refresh func(context.Context) error
	// revision returns the revision known here.
	revision func() uint64

	mu      sync.Mutex
	reading chan struct{} // closed when the current read has ended; nil if there is none
	away    bool          // the current read takes too long, or the last one failed
}

const (
	// catchUpWait is the longest that a request waits. After that the asking server computes the result itself.
	catchUpWait = 100 * time.Millisecond
	// catchUpTimeout is the longest that the registry may take.
	catchUpTimeout = 5 * time.Second
)

// to reports whether a revision is known here, after reading the registry if it was not.
func (c *catchUp) to(ctx context.Context, revision uint64) bool {
	if c.revision() >= revision {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	for own := false; !own; {
		var read chan struct{}
		if read, own = c.begin(); read == nil {
			break
		}
		select {
		case <-read:
		case <-ctx.Done():
			c.giveUp(ctx, read)
			own = true
		}
		if c.revision() >= revision {
			return true
		}
	}
	return c.revision() >= revision
}

// begin returns the channel of the current read, and whether that began just now: an older one may have begun before the revision was written. The
// channel is nil if the registry is known to be away; a read is begun nevertheless, for later requests.
func (c *catchUp) begin() (reading chan struct{}, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	away := c.away
	if c.reading == nil {
		c.reading, own = make(chan struct{}), true
		go c.read(c.reading)
	}
	if away {
		return nil, own
	}
	return c.reading, own
}

func (c *catchUp) read(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpTimeout)
	defer cancel()
	err := c.refresh(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.away = nil, err != nil
	close(done)
}

// giveUp records that the current read takes too long, unless the caller itself went away.
func (c *catchUp) giveUp(ctx context.Context, reading chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == reading && context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // the cause of this context itself
		c.away = true
	}
}
