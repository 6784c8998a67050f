package api

import (
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// Logged returns the field "error" of a log line. It leaves out the messages of ClickHouse, which may quote a row or the value of a variable.
func Logged(err error) zap.Field {
	if _, ok := errors.AsType[*clickhouse.Error](err); ok {
		return clickhouse.Logged(err)
	}
	return zap.Error(err)
}
