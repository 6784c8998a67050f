package ingest

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

// FuzzIntent reads batches that may be damaged: they give an error, or the blocks that were written.
func FuzzIntent(f *testing.F) {
	blocks := []block{
		{"events", []string{"a", "b", "c", "d", "e", "f", "g"}, []row{
			{key: "k", values: []any{"text", uuid.UUID{1, 2}, time.UnixMicro(-5).UTC(), int8(-1), uint8(200), int64(-7), uint64(1 << 63)}},
			{key: "", values: []any{"", uuid.UUID{}, time.Unix(0, 0).UTC(), int8(0), uint8(0), int64(0), uint64(0)}},
		}},
		{"person", []string{"a"}, []row{}},
	}
	whole := encodeBlocks(blocks)
	got, err := decodeBlocks(whole)
	if err != nil || !reflect.DeepEqual(got, blocks) {
		f.Fatalf("got %v, %v", got, err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte{})
	f.Add([]byte{intentVersion})
	f.Fuzz(func(t *testing.T, batch []byte) {
		got, err := decodeBlocks(batch)
		if err != nil {
			return
		}
		again, err := decodeBlocks(encodeBlocks(got))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("got %v, then %v, %v", got, again, err)
		}
	})
}
