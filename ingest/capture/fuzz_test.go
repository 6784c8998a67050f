package capture_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// checkLines checks that each line of a batch is an event that can be stored.
func checkLines(t *testing.T, batch *capture.Batch) {
	t.Helper()
	n := 0
	for text := range bytes.Lines(batch.Lines) {
		n++
		r, err := new(record.Parser).Parse(text)
		if err != nil || r.Kind != record.Event || !r.HasUUID {
			t.Fatalf("line %d is %s: %v", n, text, err)
		}
	}
	if n != batch.Events {
		t.Fatalf("%d lines are counted as %d", n, batch.Events)
	}
}

// FuzzDecode reads any request. It is refused, or its lines read back.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		one(""), "[" + one("") + "," + one(`,"timestamp":"x"`) + "]", `{"api_key":"` + token + `","batch":[` + one("") + `],"sent_at":"2024-06-01T12:00:00Z"}`,
		"data=%7B%7D&compression=lz64", "eyJhIjoxfQ==", `{"batch":[{"a":[[[[]]]]},1]}`, `{"token":"x","properties":{"$set":{"a":1}},"$set":{"b":{}}}`,
	} {
		f.Add([]byte(body), "", "", "", "")
		f.Add([]byte(body), "application/x-www-form-urlencoded", "", "gzip", "")
		f.Add(gzipped(f, []byte(body)), "", body, "lz64", "gzip")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType, data, compression, encoding string) {
		batch, err := capture.Decode(&capture.Request{
			Body: body, ContentType: contentType, Data: data, Compression: compression, ContentEncoding: encoding, Token: token, IP: "::1", SentAt: "1717246805000",
			Now: now, Limits: capture.Limits{Event: 64 << 10, Batch: 1 << 20},
		})
		if err != nil {
			if got := refusal(err); strings.HasPrefix(got, "no refusal") {
				t.Fatal(got)
			}
			return
		}
		checkLines(t, batch)
	})
}

// FuzzLZ decompresses any input, which yields no more than allowed.
func FuzzLZ(f *testing.F) {
	for _, seed := range lzTexts {
		f.Add([]byte(compressLZ(seed)))
	}
	f.Add([]byte("N4Igp==="))
	f.Fuzz(func(t *testing.T, body []byte) {
		const most = 1 << 20
		text, err := capture.Text(&capture.Request{Body: body, Compression: "lz64", Limits: capture.Limits{Batch: most}})
		if err == nil && len(text) > most {
			t.Fatalf("%d bytes", len(text))
		}
		if err != nil && strings.HasPrefix(refusal(err), "no refusal") {
			t.Fatal(err)
		}
	})
}

// FuzzLZRoundTrip decompresses what was compressed.
func FuzzLZRoundTrip(f *testing.F) {
	for _, seed := range lzTexts {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		got, err := capture.Text(&capture.Request{Body: []byte(compressLZ(text)), Compression: "lz64"})
		if looksEncoded(text) {
			return // it is decoded once more
		}
		if err != nil || string(got) != text {
			t.Fatalf("%q comes back as %q: %v", text, got, err)
		}
	})
}

func looksEncoded(text string) bool {
	return text != "" && len(text)%4 == 0 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == ""
}
