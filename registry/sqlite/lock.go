package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// locks are the locks of a store: one file each, in a folder beside the registry. A file holds the name of the store that held its lock
// last. SQLite's own locks would do for this only if a write transaction were kept open.
type locks struct {
	dir   string
	store string // another name for each store that was opened
	mu    sync.Mutex
	held  map[string]chan struct{} // by name; holds a value while a goroutine of this process has the lock
}

func newLocks(registry string) *locks {
	return &locks{dir: registry + "-locks", store: uuid.NewString(), held: make(map[string]chan struct{})}
}

// lockRetry is how often to try a lock that another process has.
const lockRetry = 10 * time.Millisecond

// Lock implements registry.Store.
func (s *Store) Lock(ctx context.Context, name string) (others bool, release func(), err error) {
	if others, release, err = s.locks.take(ctx, name); err != nil {
		return false, nil, fmt.Errorf("taking the lock %s: %w", name, err)
	}
	return others, release, nil
}

func (l *locks) take(ctx context.Context, name string) (others bool, release func(), err error) {
	turn := l.turn(name)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return false, nil, context.Cause(ctx)
	}
	others, unlock, err := l.lockFile(ctx, filepath.Join(l.dir, name))
	if err != nil {
		<-turn
		return false, nil, err
	}
	return others, func() {
		unlock()
		<-turn
	}, nil
}

// turn returns what the goroutines of this process take turns with.
func (l *locks) turn(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := l.held[name]
	if turn == nil {
		turn = make(chan struct{}, 1)
		l.held[name] = turn
	}
	return turn
}

// lockFile waits for the lock of a file, which the system releases when the process ends.
func (l *locks) lockFile(ctx context.Context, path string) (others bool, unlock func(), err error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return false, nil, err
	}
	file := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	if ok, err := file.TryLockContext(ctx, lockRetry); !ok {
		return false, nil, errors.Join(err, file.Close())
	}
	last, err := os.ReadFile(path) //nolint:gosec // beside the registry
	others = string(last) != l.store
	if err == nil && others {
		err = os.WriteFile(path, []byte(l.store), 0o600)
	}
	if err != nil {
		return false, nil, errors.Join(err, file.Close())
	}
	return others, func() { _ = file.Close() }, nil
}
