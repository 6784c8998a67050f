package ingest

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/s2"
)

// FuzzIntent reads batches that may be damaged: they give an error, or the blocks that were written.
func FuzzIntent(f *testing.F) {
	blocks := []block{
		{table: "events", columns: []string{"a", "b", "c", "d", "e", "f", "g"}, rows: []row{
			{key: "k", values: []any{"text", uuid.UUID{1, 2}, time.UnixMicro(-5).UTC(), int8(-1), uint8(200), int64(-7), uint64(1 << 63)}},
			{key: "", values: []any{"", uuid.UUID{}, time.Unix(0, 0).UTC(), int8(0), uint8(0), int64(0), uint64(0)}},
		}},
		{table: "person", columns: []string{"a"}, rows: []row{}},
	}
	want := intent{blocks, newRefusals()}
	want.refused.add("one", "too long")
	want.refused.add("two", "")
	want.refused.changed = false
	whole := want.encode()
	if got, err := decodeIntent(whole); err != nil || !reflect.DeepEqual(got, want) {
		f.Fatalf("got %v, %v", got, err)
	}
	e := encoder{}
	e.blocks(blocks)
	first := append([]byte{firstVersion}, s2.Encode(nil, e.out)...)
	if got, err := decodeIntent(first); err != nil || !reflect.DeepEqual(got.blocks, blocks) || len(got.refused.keys) > 0 {
		f.Fatalf("of the first version: got %v, %v", got, err)
	}
	f.Add(first)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte{})
	f.Add([]byte{intentVersion})
	f.Fuzz(func(t *testing.T, batch []byte) {
		got, err := decodeIntent(batch)
		if err != nil {
			return
		}
		if len(got.blocks) == 0 {
			got.blocks = nil
		}
		again, err := decodeIntent(got.encode())
		if len(again.blocks) == 0 {
			again.blocks = nil
		}
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("got %v, then %v, %v", got, again, err)
		}
	})
}
