package execution

import (
	"context"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// IsRefusal reports whether an error is a refusal by a limit.
func IsRefusal(err error) bool {
	_, refused := refusedBy(err)
	return refused
}

// StaleIsBetter reports whether ClickHouse failed to run a query that is not wrong, so that an older result is better than the error. That includes a query
// that took too long or too much memory: how much of both there is depends on what else runs. It does not include refusals by a limit.
func StaleIsBetter(err error) bool {
	known, ok := errors.AsType[*clickhouse.Error](err)
	if !ok {
		return false
	}
	switch known.Kind {
	case clickhouse.Unavailable, clickhouse.Busy, clickhouse.Timeout, clickhouse.Memory, clickhouse.Internal:
		return true
	case clickhouse.UserError, clickhouse.Unrunnable, clickhouse.TooSlow, clickhouse.TooLarge:
	}
	return false
}

// MayPass reports whether computing a cohort or a table, or checking an alert, failed through no fault of its own, so that it is tried again soon. Unlike
// for [StaleIsBetter], a query that takes too long or too much memory is at fault: it would occupy ClickHouse again and again, so the failure is recorded
// for its author.
func MayPass(err error) bool {
	if errors.As(err, new(*OutageError)) || IsRefusal(err) || errors.Is(err, context.Canceled) {
		return true
	}
	known, ok := errors.AsType[*clickhouse.Error](err)
	return ok && (known.Kind == clickhouse.Unavailable || known.Kind == clickhouse.Busy)
}

// Reason returns what ClickHouse or the compiler says about why a query failed, in words that its author may see: of several mistakes, the first. It
// reports false for other errors.
func Reason(err error) (string, bool) {
	if known, ok := errors.AsType[*clickhouse.Error](err); ok {
		return known.Message, true
	}
	if all := compiler.Mistakes(err); len(all) > 0 {
		return all[0].Detail, true
	}
	return "", false
}

// OutageError is the failure of something else that work needs, such as the registry. It says nothing about the work itself.
type OutageError struct{ Err error }

// Error returns the text of the failure.
func (o *OutageError) Error() string { return o.Err.Error() }

// Unwrap returns the failure.
func (o *OutageError) Unwrap() error { return o.Err }
