package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const event = `{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`

// outcome says what a reader yields: the line of each record, the mistakes, and the end.
func outcome(tb testing.TB, in io.Reader) string {
	tb.Helper()
	var got []string
	for r := formats.New(in, formats.Options{Format: formats.NDJSON}); ; {
		read, err := r.Read()
		var bad *record.Error
		switch {
		case err == nil:
			got = append(got, fmt.Sprint(read.Line))
		case errors.As(err, &bad):
			got = append(got, bad.Error())
		default:
			if _, again := r.Read(); again == nil || again.Error() != err.Error() {
				tb.Errorf("%v after the end, which was %v", again, err)
			}
			return strings.Join(append(got, err.Error()), "; ")
		}
	}
}

func TestNDJSON(t *testing.T) {
	packed := gzipped(t, event+"\n"+event)
	tests := []struct{ name, in, want string }{
		{"nothing", "", "EOF"},
		{"lines", event + "\n" + event + "\n", "1; 2; EOF"},
		{"no newline at the end", event + "\n" + event, "1; 2; EOF"},
		{"empty lines are counted", "\n \r\n" + event + "\r\n\n" + event, "3; 5; EOF"},
		{"a bad line", event + "\n[]\n" + event, "1; line 2: it is not a JSON object; 3; EOF"},
		{"a long line", event + "\n" + strings.Repeat("x", 34<<20) + "\n" + event, "1; line 2: the line is longer than 33 MiB; 3; EOF"},
		{"a line that capture may have written", strings.Replace(event, `"x"`, `"x","properties":{"a":"`+strings.Repeat("x", 32<<20)+`"}`, 1), "1; EOF"},
		{"a long line at the end", strings.Repeat("x", 34<<20), "line 1: the line is longer than 33 MiB; EOF"},
		{"gzip", packed, "1; 2; EOF"},
		{"gzip that ends too early", packed[:len(packed)-9], "1; reading line 2 of the import: the compressed data ends too early, as if the file were cut off: unexpected EOF"},
		{"no gzip after all", "\x1f\x8b and more than ten bytes", "reading the import: gzip: invalid header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, outcome(t, strings.NewReader(tt.in))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzNDJSON reads any bytes: there is an end, and gzip changes nothing.
func FuzzNDJSON(f *testing.F) {
	for _, seed := range []string{event, event + "\n\n[]\n", "\x1f\x8b\x08", gzipped(f, event), "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := outcome(t, bytes.NewReader(text))
		if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
			return
		}
		if packed := outcome(t, strings.NewReader(gzipped(t, string(text)))); packed != got {
			t.Errorf("%q yields %s, packed %s", text, got, packed)
		}
	})
}
