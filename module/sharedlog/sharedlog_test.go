package sharedlog_test

import (
	"fmt"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/module/sharedlog"
)

// TestNewest: a logger that one config made writes to the logs of the newest one, at its level, with its own name and fields.
func TestNewest(t *testing.T) {
	var log sharedlog.Log
	first, old := observer.New(zap.InfoLevel)
	second, recent := observer.New(zap.DebugLevel)
	logger, leaveFirst := log.Join(zap.New(first).Named("analytics"))
	kept := logger.Named("engine").With(zap.Int("pid", 7))
	lazy := logger.WithLazy(zap.Int("pid", 8))
	expect := func(when string, logs *observer.ObservedLogs, want string) {
		t.Helper()
		got := ""
		for _, e := range logs.TakeAll() {
			got += fmt.Sprintln(e.Level, e.LoggerName, e.Message, e.ContextMap())
		}
		if got != want {
			t.Errorf("%s it logs %q, want %q", when, got, want)
		}
	}

	kept.Info("one", zap.Bool("ok", true))
	kept.Debug("below the level")
	expect("alone", old, "info analytics.engine one map[ok:true pid:7]\n")

	_, leaveSecond := log.Join(zap.New(second).Named("analytics"))
	kept.Debug("two")
	lazy.Info("three")
	if err := kept.Core().Write(zapcore.Entry{Level: zap.ErrorLevel, Message: "four"}, []zapcore.Field{zap.Bool("ok", false)}); err != nil {
		t.Error(err)
	}
	expect("after a reload", recent, "debug analytics.engine two map[pid:7]\ninfo analytics three map[pid:8]\nerror  four map[ok:false pid:7]\n")
	expect("after a reload", old, "")

	leaveSecond() // the new config was refused
	kept.Info("five")
	expect("after a refused config", old, "info analytics.engine five map[pid:7]\n")
	expect("after a refused config", recent, "")

	_, leaveThird := log.Join(zap.New(second).Named("analytics"))
	leaveFirst()
	kept.Info("six")
	expect("after the old config", recent, "info analytics.engine six map[pid:7]\n")
	leaveThird()
	kept.Info("seven")
	expect("while the last one ends", recent, "info analytics.engine seven map[pid:7]\n")
	expect("at the end", old, "")
}

// TestConcurrently: entries are written while configs come and go, each to one log.
func TestConcurrently(t *testing.T) {
	var log sharedlog.Log
	logs, seen := observer.New(zap.InfoLevel)
	logger, leave := log.Join(zap.New(logs))
	defer leave()
	const each = 1000
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range each {
				logger.With(zap.Int("n", 1)).Info("entry")
			}
		})
		all.Go(func() {
			for range each {
				_, leave := log.Join(zap.New(logs))
				leave()
			}
		})
	}
	all.Wait()
	if got := seen.Len(); got != 4*each {
		t.Errorf("%d entries of %d were written", got, 4*each)
	}
}
