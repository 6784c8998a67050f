// Package panics turns panics into errors.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is the error of something that panicked.
type Error struct {
	Value any    // the value passed to panic
	Stack []byte // the stack of the panic
}

// Error returns a message with the panic's value, without the stack.
func (e *Error) Error() string { return fmt.Sprintf("BUG: a panic: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Try does something. If that panics, the error is an *Error.
func Try(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{Value: value, Stack: debug.Stack()}
		}
	}()
	return do()
}
