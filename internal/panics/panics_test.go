package panics_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
)

func TestTry(t *testing.T) {
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		if err := panics.Try(func() error { return want }); !errors.Is(err, want) {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
	crash, ok := errors.AsType[*panics.Error](panics.Try(func() error { panic("broken") }))
	if !ok || crash.Value != "broken" || crash.Error() != "BUG: a panic: broken" || !strings.Contains(string(crash.Stack), "TestTry") {
		t.Errorf("the panic is %+v", crash)
	}
	if err := panics.Try(func() error { panic(failed) }); !errors.Is(err, failed) {
		t.Errorf("%v does not wrap %v", err, failed)
	}
}
