package module

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// rereadEvery is the shortest time between two reads of the registry because of unknown tokens.
	rereadEvery = 100 * time.Millisecond
	// rereadFor is how long such a read may take.
	rereadFor = 5 * time.Second
	// rereadWaiting is how many requests with unknown tokens wait for a read. Further ones are told to come again later.
	rereadWaiting = 64
)

// projectOfToken returns the project of a capture token. Another server may have just created the token, so an unknown one is looked up again after
// reading the registry: SDKs discard events that are refused because of their token.
func projectOfToken(ctx context.Context, r *registry.Registry, rereads *rereads, token string) (project int64, ok bool, err error) {
	if project, ok = r.Snapshot().ProjectOfCaptureToken(token); ok || !strings.HasPrefix(token, registry.CaptureTokenPrefix) {
		return project, ok, nil
	}
	if rereads.unknown.has(token, time.Now()) {
		return 0, false, nil
	}
	if err := rereads.wait(ctx, r.Refresh); err != nil {
		return 0, false, fmt.Errorf("looking for a new token: %w", err)
	}
	if project, ok = r.Snapshot().ProjectOfCaptureToken(token); !ok {
		rereads.unknown.add(token, time.Now())
	}
	return project, ok, nil
}

// unknownTokens are tokens that were just looked up and that no project has: a busy site with a token that was revoked must not keep others from being looked
// up.
type unknownTokens struct {
	mu     sync.Mutex
	tokens map[string]bool
	since  time.Time
}

const (
	unknownFor  = 2 * time.Second // the longest time that a token counts as unknown
	mostUnknown = 1000
	longToken   = 100 // bytes; longer ones are not remembered
)

func (u *unknownTokens) has(token string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tokens[token] && now.Sub(u.since) < unknownFor
}

func (u *unknownTokens) add(token string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.since) >= unknownFor || len(u.tokens) >= mostUnknown {
		u.tokens, u.since = map[string]bool{}, now
	}
	if len(token) <= longToken {
		u.tokens[token] = true
	}
}

// rereads lets callers that ask at about the same time share one read of the registry, so that any number of unknown tokens costs only a few reads
// per second.
type rereads struct {
	mu    sync.Mutex
	next  *reread // not begun yet; nil if nobody waits
	began time.Time

	unknown unknownTokens
}

type reread struct {
	waiting int
	done    chan struct{} // closed when it has ended
	err     error
}

// wait returns after a read that began after the call. If too many callers are waiting, it returns [capture.ErrCrowded] at once.
func (s *rereads) wait(ctx context.Context, read func(context.Context) error) error {
	r := s.join(read)
	if r == nil {
		return capture.ErrCrowded
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *rereads) join(read func(context.Context) error) *reread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &reread{done: make(chan struct{})}
		go s.run(s.next, read, time.Until(s.began.Add(rereadEvery)))
	}
	if s.next.waiting == rereadWaiting {
		return nil
	}
	s.next.waiting++
	return s.next
}

func (s *rereads) run(r *reread, read func(context.Context) error, after time.Duration) {
	time.Sleep(after)
	s.mu.Lock()
	s.next, s.began = nil, time.Now()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), rereadFor)
	defer cancel()
	r.err = read(ctx)
	close(r.done)
}
