package execution

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// TestLargeAnswer: the answer of an insight is bounded as rows are.
func TestLargeAnswer(t *testing.T) {
	for name, shape := range map[string]func(iter.Seq[[]byte]) (*insight.Answer, error){
		"made": func(iter.Seq[[]byte]) (*insight.Answer, error) {
			return &insight.Answer{Results: make([]byte, MaxResultBytes+1)}, nil
		},
		"refused": func(iter.Seq[[]byte]) (*insight.Answer, error) {
			return nil, fmt.Errorf("encoding: %w", insight.ErrTooLarge)
		},
	} {
		if _, err := new(Computation).shape(&compiler.Compiled{Shape: shape}, new(cache.Result)); !errors.Is(err, cache.ErrTooLarge) {
			t.Errorf("an answer that is too large, %s: %v", name, err)
		}
	}
}

// TestUntil: an answer says itself until when it changes, if that is not the end of its range.
func TestUntil(t *testing.T) {
	node, err := compiler.Parse([]byte(`{"kind": "LifecycleQuery", "series": [{"event": "a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, late := range []time.Time{{}, noon.Add(72 * time.Hour)} {
		compiled := &compiler.Compiled{Shape: func(iter.Seq[[]byte]) (*insight.Answer, error) {
			return &insight.Answer{Range: &insight.Span{From: noon, To: noon.Add(time.Hour)}, Until: late}, nil
		}}
		want := late
		if late.IsZero() {
			want = noon.Add(time.Hour)
		}
		answer, err := (&Computation{query: &Query{Node: node}}).shape(compiled, new(cache.Result))
		if err != nil || !answer.until.Equal(want) {
			t.Errorf("an answer that is final after %v: %v, %v", late, answer, err)
		}
	}
}
