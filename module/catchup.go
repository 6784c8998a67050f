package module

import (
	"context"
	"sync"
	"time"
)

// catchUp reads what other servers wrote to the registry, for servers whose questions are about it: once at a time, however many ask. They wait for
// a moment, and not at all while the registry is known to be away.
type catchUp struct {
	refresh func(context.Context) error
	// revision is that of what is known here.
	revision func() uint64

	mu      sync.Mutex
	reading chan struct{} // closed when what is being read is there; nil when nothing is
	away    bool          // what is being read takes too long, or could not be read
}

const (
	// catchUpWait is the longest that a question waits. Its server computes the result by itself then.
	catchUpWait = 100 * time.Millisecond
	// catchUpTimeout is the longest that the registry may take.
	catchUpTimeout = 5 * time.Second
)

// to reports whether a revision is known here, having read the registry if it was not.
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

// begin returns the channel of what is being read, and whether that began now: otherwise it may be from before what is asked for. It is nil if the
// registry is known to be away; that is tried again for later questions.
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

// giveUp notes that what is being read takes too long, unless it is the caller who went away.
func (c *catchUp) giveUp(ctx context.Context, reading chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == reading && context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // the cause of this very context
		c.away = true
	}
}
