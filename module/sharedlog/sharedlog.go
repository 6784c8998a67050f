// Package sharedlog has loggers for what outlives a config. Caddy closes the logs of a config that a reload replaced, and their levels no longer apply; so
// these loggers write to the logs of the newest config that runs.
package sharedlog

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Log writes to the logs of the newest of the configs that have joined it and not left. Its methods are safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	joined []*zapcore.Core
	newest atomic.Pointer[zapcore.Core] // the last one stays when all have left
}

// Join adds a config with its logger, and returns the logger to use instead. The config leaves once.
func (l *Log) Join(own *zap.Logger) (logger *zap.Logger, leave func()) {
	its := own.Core()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined = append(l.joined, &its)
	l.newest.Store(&its)
	logger = own.WithOptions(zap.WrapCore(func(zapcore.Core) zapcore.Core { return &core{log: l} }))
	return logger, func() { l.leave(&its) }
}

func (l *Log) leave(its *zapcore.Core) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined = slices.DeleteFunc(l.joined, func(c *zapcore.Core) bool { return c == its })
	if n := len(l.joined); n > 0 {
		l.newest.Store(l.joined[n-1])
	}
}

// core passes entries on to the newest core.
type core struct {
	log    *Log
	fields []zapcore.Field
}

func (c *core) newest() zapcore.Core { return *c.log.newest.Load() }

// Enabled implements zapcore.LevelEnabler.
func (c *core) Enabled(level zapcore.Level) bool { return c.newest().Enabled(level) }

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core. The newest core writes the entry itself, so that its own checks apply, such as sampling.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	newest := c.newest()
	if !newest.Enabled(entry.Level) {
		return checked
	}
	if len(c.fields) > 0 {
		newest = newest.With(c.fields)
	}
	return newest.Check(entry, checked)
}

// Write implements zapcore.Core, for entries that were not checked.
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.newest().Write(entry, slices.Concat(c.fields, fields))
}

// Sync implements zapcore.Core.
func (c *core) Sync() error { return c.newest().Sync() }
