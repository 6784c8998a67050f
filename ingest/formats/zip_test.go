package formats_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// zipOf returns a ZIP file with a list of entries files, and an end record for large files that claims the number said.
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

// TestManyFilesInZIP reads lists of files that take more memory than they should, whatever number they claim.
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

// TestOverlap: files in a ZIP file that share their bytes.
func TestOverlap(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for range 2 {
		f, err := w.Create("a.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in := b.Bytes()
	// The second in the list is where the first is, and they have the same name and text.
	second := bytes.LastIndex(in, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(in[second+42:], 0)
	got, _ := read(t, bytes.NewReader(in), formats.Options{})
	if len(got) != 1 || !strings.Contains(got[0], "files in it overlap") {
		t.Errorf("%q", got)
	}
}

// TestFilesTogether: each file in a ZIP file is in proportion, but all together are not.
func TestFilesTogether(t *testing.T) {
	blank := strings.Repeat(strings.Repeat(" ", 1<<20-1)+"\n", 100)
	inner := zipped(t, "a.json", line+blank, "b.json", line+blank, "c.json", line+blank)
	got, _ := read(t, strings.NewReader(gzipped(t, inner)), formats.Options{Format: formats.NDJSON})
	if len(got) == 0 || !strings.Contains(got[len(got)-1], "c.json in the ZIP file: reading line") ||
		!strings.Contains(got[len(got)-1], "decompresses to more than 500 times its size") {
		t.Errorf("%.500q", got)
	}
}

// TestStopped: a file without records can be stopped.
func TestStopped(t *testing.T) {
	asked, stopped := 0, errors.New("stopped")
	options := formats.Options{Format: formats.NDJSON, Stopped: func() error {
		if asked++; asked > 3 {
			return stopped
		}
		return nil
	}}
	got, _ := read(t, strings.NewReader(gzipped(t, strings.Repeat(" \n", 1<<20))), options)
	if len(got) != 1 || !strings.Contains(got[0], "stopped") {
		t.Errorf("%.500q", got)
	}
}
