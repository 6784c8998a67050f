//go:build !linux && !darwin

package embedded

import (
	"context"
	"errors"
	"runtime"

	"go.uber.org/zap"
)

// Engine is the embedded engine, which does not exist on this system.
type Engine struct{}

var errSystem = errors.New("there is no embedded engine for " + runtime.GOOS + "; set clickhouse to a ClickHouse server")

// Start always returns an error: the embedded engine only runs on Linux and macOS.
func Start(context.Context, Config, *zap.Logger) (*Engine, error) { return nil, errSystem }

// DSN returns an empty string.
func (e *Engine) DSN() string { return "" }

// Version returns an empty string.
func (e *Engine) Version() string { return "" }

// PID returns 0.
func (e *Engine) PID() int { return 0 }

// Stats is the state of the engine: never up.
type Stats struct {
	Up       bool
	Restarts uint64
	Resident int64
}

// Stats returns the zero value.
func (e *Engine) Stats() Stats { return Stats{} }

// Close does nothing.
func (e *Engine) Close() error { return nil }

// ChildMain always returns an error.
func ChildMain([]string) error { return errSystem }

// MaySetPriorities reports whether the engine may set the priorities of threads.
func MaySetPriorities() bool { return false }
