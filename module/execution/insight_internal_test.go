package execution

import (
	"errors"
	"iter"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// TestLargeAnswer: the answer of an insight is bounded as rows are.
func TestLargeAnswer(t *testing.T) {
	compiled := &compiler.Compiled{Shape: func(iter.Seq[[]byte]) (*insight.Answer, error) {
		return &insight.Answer{Results: make([]byte, MaxResultBytes+1)}, nil
	}}
	if _, err := new(Computation).shape(compiled, new(cache.Result)); !errors.Is(err, cache.ErrTooLarge) {
		t.Errorf("an answer that is too large: %v", err)
	}
}
