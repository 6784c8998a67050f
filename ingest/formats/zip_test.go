package formats_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// zipOf is a ZIP file with a list of files of so many entries, and an end that tells their number to readers of large files.
func zipOf(entries int, said uint64) string {
	const entrySize = 46
	entry := append([]byte("PK\x01\x02"), make([]byte, entrySize-4)...)
	list := bytes.Repeat(entry, entries)
	b := append([]byte("PK\x03\x04"), make([]byte, 26)...)
	start := len(b)
	b = append(b, list...)
	large := len(b)
	b = append(b, "PK\x06\x06"...)
	b = append(b, make([]byte, 20)...)
	for _, n := range []uint64{said, said, uint64(len(list)), uint64(start)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, "PK\x06\x07\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, uint64(large))
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = append(b, "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff"...)
	b = append(b, bytes.Repeat([]byte{0xff}, 8)...)
	return string(append(b, 0, 0))
}

// TestManyFilesInZIP are lists of files that take more memory than they should, whatever number they say.
func TestManyFilesInZIP(t *testing.T) {
	tests := []struct {
		name, in string
	}{
		{"a long list", zipOf(200_000, 200_000)},
		{"a long list that says it is short", zipOf(200_000, 200_000%65536)},
		{"a short list that says it is long", zipOf(1, 1<<40+1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := read(t, strings.NewReader(tt.in), formats.Options{})
			if len(got) != 1 || !strings.Contains(got[0], "the ZIP file has too many files; it can have 50000, with a list of 8 MiB") {
				t.Errorf("%.300q", got)
			}
		})
	}
	if got, _ := read(t, strings.NewReader(zipOf(3, 3)), formats.Options{}); len(got) > 0 {
		t.Errorf("a list of three files without names: %q", got)
	}
}
