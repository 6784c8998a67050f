package rescue_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
)

func TestDo(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	log, failed := zap.New(core), errors.New("failed")
	for _, want := range []error{nil, failed} {
		if err := rescue.Do(log, func() error { return want }); !errors.Is(err, want) || logs.Len() > 0 {
			t.Errorf("the error is %v, want %v; %d entries are logged", err, want, logs.Len())
		}
	}
	var list []int
	err := rescue.Do(log, func() error { list[0] = 1; return nil }, zap.Int64("project", 7))
	if _, ok := errors.AsType[*panics.Error](err); !ok || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("the error is %v", err)
	}
	entries := logs.All()
	if len(entries) != 1 {
		t.Fatalf("%d entries are logged", len(entries))
	}
	fields := entries[0].ContextMap()
	if stack, ok := fields["stack"].(string); !ok || !strings.Contains(stack, "TestDo") || fields["project"] != int64(7) {
		t.Errorf("logged with %v", fields)
	}
}
