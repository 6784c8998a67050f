package cache_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

func TestTry(t *testing.T) {
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		if err := cache.Try(func() error { return want }); !errors.Is(err, want) {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
	crash, ok := errors.AsType[*cache.PanicError](cache.Try(func() error { panic("broken") }))
	if !ok || crash.Value != "broken" || !strings.Contains(string(crash.Stack), "TestTry") {
		t.Errorf("the panic is %+v", crash)
	}
}
