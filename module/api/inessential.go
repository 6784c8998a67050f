package api

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// inessentialWait is the longest that an answer waits for what it can do without.
const inessentialWait = time.Second

// Inessential reads from the registry's store what an answer can do without. It is false when the store is unavailable, or takes too long to answer.
func Inessential[T any](ctx context.Context, read func(context.Context) (T, error)) (found T, ok bool, err error) {
	limited, cancel := context.WithTimeout(ctx, inessentialWait)
	defer cancel()
	found, err = read(limited)
	if errors.Is(err, registry.ErrUnavailable) || err != nil && limited.Err() != nil && ctx.Err() == nil {
		return found, false, nil
	}
	return found, err == nil, err
}
