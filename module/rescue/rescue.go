// Package rescue turns panics in the background into errors, so that what one tenant wrote cannot end the process for all.
package rescue

import (
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// PanicError is the error of work that panicked.
type PanicError struct{ Value any }

// Error returns a message with the panic's value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("BUG: work in the background panicked: %v", e.Value)
}

// Do does some work. If it panics, Do logs that with the stack and the fields, and returns a *PanicError.
func Do(log *zap.Logger, do func() error, fields ...zap.Field) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
			log.Error("work in the background panicked", append(fields, zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))...)
		}
	}()
	return do()
}
