package insight_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// heavy is an item of a MiB. It counts how often one is encoded.
type heavy struct{ encoded *int }

func (h heavy) MarshalJSON() ([]byte, error) {
	*h.encoded++
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = '1'
	}
	return text, nil
}

// TestEncodeIsBounded: no more is encoded than results may have.
func TestEncodeIsBounded(t *testing.T) {
	t.Parallel()
	encoded := 0
	items := make([]heavy, 1000)
	for i := range items {
		items[i].encoded = &encoded
	}
	if out, err := insight.Encode(slices.Values(items)); !errors.Is(err, insight.ErrTooLarge) || out != nil || encoded > insight.MaxResults>>20 {
		t.Errorf("encoding a GB encodes %d items, %d bytes, %v", encoded, len(out), err)
	}
	if out, err := insight.Encode(slices.Values(items[:63])); err != nil || len(out) != 1+63<<20+63 {
		t.Errorf("encoding 63 MiB = %d bytes, %v", len(out), err)
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for _, items := range [][]any{{}, {1}, {"a&b", nil, map[string]any{"b": 1, "a": []int{}}}} {
		want, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := insight.Encode(slices.Values(items)); err != nil || string(got) != string(want) {
			t.Errorf("Encode(%v) = %s, %v; want %s", items, got, err, want)
		}
	}
}
