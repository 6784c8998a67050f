package embedded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		format string
		pieces []string
		want   string
	}{
		{"TSV", []string{"a\n", "a\n"}, "a\na\n"},
		{"TSVWithNames", []string{"a\tb\n1\t2\n", "a\tb\n3\t4\n", "a\tb\n"}, "a\tb\n1\t2\n3\t4\n"},
		{"JSONCompactEachRowWithNamesAndTypes", []string{"[\"a\"]\n[\"Int8\"]\n[1]\n", "[\"a\"]\n[\"Int8\"]\n[2]\n"}, "[\"a\"]\n[\"Int8\"]\n[1]\n[2]\n"},
		{"CSVWithNames", []string{"\"a\"\"\n\"\n1\n", "\"a\"\"\n\"\n\"a\"\n"}, "\"a\"\"\n\"\n1\n\"a\"\n"},
		{"RowBinaryWithNames", []string{"\x02\x01a\x02bcX", "\x02\x01a\x02bcY"}, "\x02\x01a\x02bcXY"},
		{"RowBinaryWithNamesAndTypes", []string{"\x01\x01a\x04Int8X", "\x01\x01a\x04Int8Y"}, "\x01\x01a\x04Int8XY"},
		{"ArrowStream", []string{
			"\xff\xff\xff\xff\x02\x00\x00\x00abX" + string(arrowEnd), "\xff\xff\xff\xff\x02\x00\x00\x00abY" + string(arrowEnd),
		}, "\xff\xff\xff\xff\x02\x00\x00\x00abXY" + string(arrowEnd)},
		{"ArrowStream", nil, ""},
	} {
		t.Run(tt.format, func(t *testing.T) {
			format, ok := streamable(tt.format)
			if !ok {
				t.Fatal("the format is not streamed")
			}
			j := joiner{format: format}
			var got strings.Builder
			for _, piece := range tt.pieces {
				got.Write(j.join([]byte(piece)))
			}
			got.Write(j.end())
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("joined (-want +got):\n%s", diff)
			}
		})
	}
	for _, format := range []string{"JSON", "Parquet", "Null", "Values", "TSVRawWithNames", "", "nonsense"} {
		if _, ok := streamable(format); ok {
			t.Errorf("%s is streamed", format)
		}
	}
}

func FuzzHeaderSize(f *testing.F) {
	f.Add("a\nb\n", 2)
	f.Add("\x02\x01a\x02bc", 1)
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 2)
	f.Fuzz(func(t *testing.T, piece string, lines int) {
		for _, header := range []headerKind{headerNone, headerLines, headerCSV, headerBinary, headerArrow} {
			n := rowFormat{header, 1 + lines&1}.headerSize([]byte(piece))
			if n < 0 || n > len(piece) {
				t.Errorf("the header of %q is %d bytes long", piece, n)
			}
		}
	})
}
