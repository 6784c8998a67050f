package module

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// TestReportLoad: a panic is logged with its stack.
func TestReportLoad(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	app := &App{logger: zap.New(core)}
	app.reportLoad(cache.Key{}, &panics.Error{Value: "no such bucket", Stack: []byte("here")})
	app.reportLoad(cache.Key{}, errors.New("the server is gone"))
	app.reportLoad(cache.Key{}, &execution.LimitError{Detail: "no"})
	var got []string
	for _, entry := range logged.All() {
		stack, _ := entry.ContextMap()["stack"].(string)
		got = append(got, strings.TrimSpace(entry.Message+" "+stack))
	}
	if want := "computing a result panicked here, a background refresh failed"; strings.Join(got, ", ") != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}
