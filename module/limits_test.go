package module

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestRate(t *testing.T) {
	l := newLimiter(10, Rate{Queries: 2, Per: time.Minute})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key, other := &registry.Key{ID: "a", Project: 1}, &registry.Key{ID: "b", Project: 1}
	admit := func(k *registry.Key, at time.Time) error {
		release, err := l.admit(t.Context(), k, at, l.wait)
		if err == nil {
			release()
		}
		return err
	}
	for range 2 {
		if err := admit(key, now); err != nil {
			t.Fatalf("within the rate: %v", err)
		}
	}
	err := admit(key, now)
	var refused *rateError
	if !errors.As(err, &refused) || refused.key != "a" {
		t.Fatalf("above the rate: %v", err)
	}
	answer := toAPIError(err, "")
	if answer.Status != 429 || answer.RetryAfter != 30*time.Second || answer.Detail != "Request was throttled. Expected available in 30 seconds." {
		t.Errorf("above the rate: %d, retry after %s: %s", answer.Status, answer.RetryAfter, answer.Detail)
	}
	if err := admit(other, now); err != nil {
		t.Errorf("another key shares the rate: %v", err)
	}
	if err := admit(key, now.Add(29*time.Second)); err == nil {
		t.Error("a place too early")
	}
	if err := admit(key, now.Add(31*time.Second)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, Rate{Queries: 1000, Per: time.Second})
		key, other := &registry.Key{ID: "a", Project: 1}, &registry.Key{ID: "b", Project: 2}
		release, err := l.admit(t.Context(), key, time.Now(), l.wait)
		if err != nil {
			t.Fatal(err)
		}
		if free, err := l.admit(t.Context(), other, time.Now(), l.wait); err != nil {
			t.Errorf("a project takes another's place: %v", err)
		} else {
			free()
		}
		results := make(chan error, queueFactor+1)
		for range queueFactor {
			go func() {
				free, err := l.admit(t.Context(), key, time.Now(), l.wait)
				if err == nil {
					free()
				}
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := l.admit(t.Context(), key, time.Now(), l.wait); toAPIError(err, "").Status != 429 {
			t.Errorf("beyond the queue: %v", err)
		}
		release()
		for range queueFactor {
			if err := <-results; err != nil {
				t.Errorf("in the queue: %v", err)
			}
		}
	})
}

func TestConcurrencyWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, Rate{Queries: 1000, Per: time.Second})
		key := &registry.Key{ID: "a", Project: 1}
		if _, err := l.admit(t.Context(), key, time.Now(), l.wait); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := l.admit(t.Context(), key, time.Now(), l.wait)
		if waited := time.Since(began); toAPIError(err, "").Status != 429 || waited != 30*time.Second {
			t.Errorf("after %s: %v", waited, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.admit(gone, key, time.Now(), l.wait); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went away gets %v", err)
		}
	})
}
