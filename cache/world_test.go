package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

var (
	errOutage  = errors.New("connection refused")
	errMistake = errors.New("unknown column")
	errFull    = errors.New("too many queries")
)

// limits of the worlds below.
const (
	stale          = time.Minute
	refreshTimeout = 15 * time.Second
	refreshRetry   = 2 * time.Second
)

// world is a cache with a database in which every load waits until the test says how it ends.
type world struct {
	c *cache.Cache

	mu       sync.Mutex
	letters  map[cache.Key]string // A, B, … in order of first use
	loads    []*load              // in order of start
	reported []string
}

// load is a load that has started. Its name, such as A1 for the first one of the first key, is its entry's Meta.
type load struct {
	name    string
	key     cache.Key
	ctx     context.Context
	began   time.Time
	outcome chan outcome
	ended   bool
}

type outcome uint8

const (
	succeed  outcome = iota
	fail             // with errOutage
	refuse           // with errMistake
	turnAway         // with errFull
	crash
	vanish // ends the goroutine
)

// budget is the size of a world's cache.
const budget = 1 << 20

// newWorld must be called in a synctest bubble. A goroutine left at the end of the bubble fails the test.
func newWorld(tb interface {
	Fatalf(format string, args ...any)
	Cleanup(f func())
},
) *world {
	w := &world{letters: make(map[cache.Key]string)}
	c, err := cache.New(cache.Config{
		MaxBytes:       budget,
		Stale:          stale,
		RefreshTimeout: refreshTimeout,
		RefreshRetry:   refreshRetry,
		IsOutage: func(err error) bool {
			return errors.Is(err, errOutage) || errors.Is(err, context.DeadlineExceeded)
		},
		IsRefusal: func(err error) bool { return errors.Is(err, errFull) },
		Report: func(_ cache.Key, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reported = append(w.reported, err.Error())
		},
	})
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	w.c = c
	tb.Cleanup(c.Close)
	return w
}

// letter returns the letter of a key.
func (w *world) letter(key cache.Key) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.letters[key] == "" {
		w.letters[key] = string(rune('A' + len(w.letters)))
	}
	return w.letters[key]
}

func (w *world) begin(ctx context.Context, key cache.Key) *load {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 1
	for _, l := range w.loads {
		if l.key == key {
			n++
		}
	}
	l := &load{name: w.letters[key] + strconv.Itoa(n), key: key, ctx: ctx, began: time.Now(), outcome: make(chan outcome)}
	w.loads = append(w.loads, l)
	return l
}

func (w *world) load(key cache.Key) cache.Load {
	return func(ctx context.Context) (*cache.Entry, error) {
		l := w.begin(ctx, key)
		defer func() {
			w.mu.Lock()
			l.ended = true
			w.mu.Unlock()
		}()
		select {
		case o := <-l.outcome:
			switch o {
			case fail:
				return nil, fmt.Errorf("load %s: %w", l.name, errOutage)
			case refuse:
				return nil, fmt.Errorf("load %s: %w", l.name, errMistake)
			case turnAway:
				return nil, fmt.Errorf("load %s: %w", l.name, errFull)
			case crash:
				panic("load " + l.name)
			case vanish:
				runtime.Goexit()
			case succeed:
			}
			return cache.NewEntry(new(cache.Result), l.began, l.name, 0), nil
		case <-ctx.Done():
			return nil, fmt.Errorf("load %s: %w", l.name, ctx.Err())
		}
	}
}

// end ends a running load and waits until its effects are complete.
func (w *world) end(name string, o outcome) {
	w.mu.Lock()
	i := slices.IndexFunc(w.loads, func(l *load) bool { return l.name == name })
	l := w.loads[i]
	w.mu.Unlock()
	l.outcome <- o
	synctest.Wait()
}

// live returns the names of the running loads, in order.
func (w *world) live() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, l := range w.loads {
		if !l.ended {
			names = append(names, l.name)
		}
	}
	slices.Sort(names)
	return names
}

// caller is one call of Do in its own goroutine.
type caller struct {
	cancel context.CancelFunc
	done   bool
	answer cache.Answer
	err    error
}

// call starts a call and waits until it has an answer or blocks.
func (w *world) call(key cache.Key, p cache.Policy) *caller {
	w.letter(key)
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel}
	go func() {
		defer cancel()
		c.answer, c.err = w.c.Do(ctx, key, p, w.load(key))
		c.done = true
	}()
	synctest.Wait()
	return c
}

// leave cancels the call's context.
func (c *caller) leave() {
	c.cancel()
	synctest.Wait()
}

// String returns the caller's answer, error or state.
func (c *caller) String() string {
	switch {
	case !c.done:
		return "waits"
	case c.err != nil:
		return c.err.Error()
	}
	text := fmt.Sprintf("load %s, %s, age %s, fresh for %s", c.answer.Entry.Meta, c.answer.Status, c.answer.Age, c.answer.FreshFor)
	if c.answer.Failure != nil {
		text += ", " + c.answer.Failure.Error()
	}
	return text
}

func key(project int64, filter string) cache.Key {
	return cache.KeyParts{Project: project, RowFilter: filter, Endpoint: "e", Version: 1, Zone: "UTC"}.Key()
}
