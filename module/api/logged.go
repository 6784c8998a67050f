package api

import (
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// Logged is the field "error" of a log line. The words of ClickHouse are left out: they may quote a row or the value of a variable.
func Logged(err error) zap.Field {
	if _, ok := errors.AsType[*clickhouse.Error](err); ok {
		return clickhouse.Logged(err)
	}
	return zap.Error(err)
}
