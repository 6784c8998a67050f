package module

import (
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// reportLoad logs failures that callers are not told of: a panic, with its stack, and a failed background refresh. A refresh that a limit refused is
// only counted.
func (a *App) reportLoad(key cache.Key, err error) {
	if crash, ok := errors.AsType[*panics.Error](err); ok {
		a.logger.Error("computing a result panicked", zap.Stringer("key", key), zap.Error(err), zap.ByteString("stack", crash.Stack))
	} else if !execution.IsRefusal(err) {
		a.logger.Warn("a background refresh failed", zap.Stringer("key", key), api.Logged(err))
	}
}

// reportRun logs the failure of a background run that is not its caller's fault.
func (a *App) reportRun(key cache.Key, err error) {
	if failure := api.ErrorOf(err); failure.Status >= http.StatusInternalServerError {
		fields := []zap.Field{zap.Int("status", failure.Status), zap.String("code", failure.Code), zap.Stringer("key", key), api.Logged(failure.Cause)}
		if crash, ok := errors.AsType[*panics.Error](err); ok {
			fields = append(fields, zap.ByteString("stack", crash.Stack))
		}
		a.logger.Error("a background run failed", fields...)
	}
}

// reportTable logs that a run could not read the table of its version, and ran the query instead.
func (a *App) reportTable(q *execution.Query, err error) {
	a.logger.Warn("the table of a materialized endpoint cannot be read; its query ran instead", zap.Int64("project", q.Key.Project()),
		zap.String("endpoint", q.Endpoint.Name), zap.Int("version", q.Version.Number), api.Logged(err))
}

// reportPieces logs that an answer could not be put together from buckets of time, and was computed in one piece.
func (a *App) reportPieces(q *execution.Query, err error) {
	a.logger.Warn("an answer cannot be put together from buckets of time; its query ran as a whole", zap.Int64("project", q.Key.Project()),
		zap.String("kind", q.Node.Kind()), api.Logged(err))
}
