// Package rescue turns panics in the background into errors, so that what one tenant wrote cannot end the process for all.
package rescue

import (
	"errors"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
)

// Do does some work. If it panics, Do logs that with the stack and the fields, and returns a *panics.Error.
func Do(log *zap.Logger, do func() error, fields ...zap.Field) (err error) {
	panicked := panics.Try(func() error {
		err = do()
		return nil
	})
	if crash, ok := errors.AsType[*panics.Error](panicked); ok {
		log.Error("work in the background panicked", append(fields, zap.Any("panic", crash.Value), zap.ByteString("stack", crash.Stack))...)
		return crash
	}
	return err
}
