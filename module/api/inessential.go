package api

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// inessentialWait is how long a response waits for optional data.
const inessentialWait = time.Second

// Inessential reads optional data from the registry's store. ok is false if the store is unavailable or takes too long to answer.
func Inessential[T any](ctx context.Context, read func(context.Context) (T, error)) (found T, ok bool, err error) {
	limited, cancel := context.WithTimeout(ctx, inessentialWait)
	defer cancel()
	found, err = read(limited)
	if errors.Is(err, registry.ErrUnavailable) || err != nil && limited.Err() != nil && ctx.Err() == nil {
		return found, false, nil
	}
	return found, err == nil, err
}
