//go:build !linux && !darwin

package embedded

import (
	"context"
	"errors"
	"runtime"

	"go.uber.org/zap"
)

// Engine is the embedded engine, which this system does not have.
type Engine struct{}

var errSystem = errors.New("there is no embedded engine for " + runtime.GOOS + ": point clickhouse at a server")

// Start always fails here: the embedded engine runs on Linux and macOS.
func Start(context.Context, Config, *zap.Logger) (*Engine, error) { return nil, errSystem }

// DSN is empty.
func (e *Engine) DSN() string { return "" }

// PID is 0.
func (e *Engine) PID() int { return 0 }

// Stats is how the engine is: never up.
type Stats struct {
	Up       bool
	Restarts uint64
	Resident int64
}

// Stats is zero.
func (e *Engine) Stats() Stats { return Stats{} }

// Close does nothing.
func (e *Engine) Close() error { return nil }

// ChildMain always fails here.
func ChildMain([]string) error { return errSystem }

// MaySetPriorities reports whether the engine may set the priorities of threads.
func MaySetPriorities() bool { return false }
