package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// locks are the locks of a store, and the data kept for their holders: files in a folder beside the registry. The file of a lock holds the name of its last
// holder. SQLite's own locks would work for this only if a write transaction were kept open, and kept data in the registry would be in the way of writes.
type locks struct {
	dir  string
	mu   sync.Mutex
	held map[string]chan struct{} // by name; holds a value while a goroutine of this process has the lock
}

func newLocks(registry string) *locks {
	return &locks{dir: registry + "-locks", held: make(map[string]chan struct{})}
}

// lockRetry is how often to try a lock that another process has.
const lockRetry = 10 * time.Millisecond

// Lock implements registry.Store.
func (s *Store) Lock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	turn := s.locks.turn(name)
	select {
	case turn <- struct{}{}:
		others, release, err = s.locks.take(turn, name, holder, func(file *flock.Flock) (bool, error) { return file.TryLockContext(ctx, lockRetry) })
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return others, release, taking(name, err)
}

// TryLock implements registry.Store.
func (s *Store) TryLock(_ context.Context, name, holder string) (others bool, release func(), err error) {
	turn := s.locks.turn(name)
	select {
	case turn <- struct{}{}:
		others, release, err = s.locks.take(turn, name, holder, (*flock.Flock).TryLock)
	default:
		err = registry.ErrHeld
	}
	return others, release, taking(name, err)
}

func taking(name string, err error) error {
	if err != nil {
		return fmt.Errorf("taking the lock %s: %w", name, err)
	}
	return nil
}

// take takes the lock of a file for a caller whose turn it is.
func (l *locks) take(turn <-chan struct{}, name, holder string, try func(*flock.Flock) (bool, error)) (others bool, release func(), err error) {
	others, unlock, err := l.lockFile(filepath.Join(l.dir, name+".lock"), holder, try)
	if err != nil {
		<-turn
		return false, nil, err
	}
	return others, func() {
		unlock()
		<-turn
	}, nil
}

// turn returns the channel by which the goroutines of this process take turns.
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

// lockFile takes the lock of a file, which the system releases when the process ends.
func (l *locks) lockFile(path, holder string, try func(*flock.Flock) (bool, error)) (others bool, unlock func(), err error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return false, nil, err
	}
	file := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	switch ok, err := try(file); {
	case err != nil:
		return false, nil, errors.Join(err, file.Close())
	case !ok:
		return false, nil, errors.Join(registry.ErrHeld, file.Close())
	}
	last, err := os.ReadFile(path) //nolint:gosec // beside the registry
	others = string(last) != holder
	if err == nil && others {
		err = os.WriteFile(path, []byte(holder), 0o600)
	}
	if err != nil {
		return false, nil, errors.Join(err, file.Close())
	}
	return others, func() { _ = file.Close() }, nil
}

// Keep implements registry.Store.
func (s *Store) Keep(_ context.Context, name string, data []byte) error {
	if err := s.locks.keep(filepath.Join(s.locks.dir, name+keptSuffix), data); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return nil
}

func (l *locks) keep(path string, data []byte) error {
	if len(data) == 0 {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, bytes.NewReader(data))
}

// Kept implements registry.Store.
func (s *Store) Kept(_ context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(s.locks.dir, name+keptSuffix)) //nolint:gosec // beside the registry
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading what is kept as %s: %w", name, err)
	}
	return data, nil
}
