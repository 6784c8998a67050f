package backoff

import (
	"context"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// OutageError is the failure of something that a computation needs. It says nothing about the computation itself.
type OutageError struct{ Err error }

// Error returns the text of the failure.
func (o *OutageError) Error() string { return o.Err.Error() }

// Unwrap returns the failure.
func (o *OutageError) Unwrap() error { return o.Err }

// IsOutage reports whether an error is not the computation's fault, so that it may succeed later. A query that takes too long or too much memory is
// itself at fault.
func IsOutage(err error) bool {
	if errors.As(err, new(*OutageError)) || execution.IsRefusal(err) || errors.Is(err, context.Canceled) {
		return true
	}
	known, ok := errors.AsType[*clickhouse.Error](err)
	return ok && (known.Kind == clickhouse.Unavailable || known.Kind == clickhouse.Busy)
}
