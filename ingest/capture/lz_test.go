package capture_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
)

var lzTexts = []string{
	"", "a", "{}", `{"event":"é"}`, strings.Repeat("a", 301), strings.Repeat("{😀東京} ", 50), string(typical(3)), "\u0000\u0001\u00ff\u0100",
}

// TestLZ reads what lz-string 1.5.0 wrote.
func TestLZ(t *testing.T) {
	tests := []struct{ in, want string }{
		{lzJSON, `{"event": "squeezed", "distinct_id": "z1", "timestamp": "2024-03-04T15:31:00Z", "properties": {"k": "v\u00edctor", "list": [1, 2, 3]}}`},
	}
	for _, tt := range tests {
		got, err := capture.Text(&capture.Request{Body: []byte(tt.in), Compression: "lz64"})
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, want %s: %v", got, tt.want, err)
		}
	}
	for _, text := range lzTexts {
		got, err := capture.Text(&capture.Request{Body: []byte(compressLZ(text)), Compression: "lz64"})
		if err != nil || string(got) != text {
			t.Errorf("%.100q comes back as %.100q: %v", text, got, err)
		}
	}
}

// lzJSON is compressToBase64 of a text.
const lzJSON = "N4IgpgbmB2AuIC4AEIDOBHArmMAvMAJiADQoECWqs50AxrAPrlHIi4CMJK1AtmFQEMeAB0QoATAAZxAFgC0kgMwKZAFXYBWBIvYJJkgFpcQwgE4B7YWFPV+Y0AGsxICAB1M+wvXOnjAG0p4ZABtdlJxUkUAXQBfGKA="

// compressLZ writes a text as lz-string's compressToBase64 does: it knows each character and each phrase by a code, and codes get wider
// when there are more.
func compressLZ(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out []byte
	var value, filled int
	bit := func(b int) {
		value = value<<1 | b
		if filled++; filled == 6 {
			out = append(out, alphabet[value])
			value, filled = 0, 0
		}
	}
	bits := func(n, width int) {
		for range width {
			bit(n & 1)
			n >>= 1
		}
	}
	width, room := 2, 2
	grown := func() {
		if room--; room == 0 {
			room = 1 << width
			width++
		}
	}
	codes, fresh := map[string]int{}, map[string]bool{}
	next := 3
	write := func(phrase string) {
		if !fresh[phrase] {
			bits(codes[phrase], width)
			grown()
			return
		}
		unit := int([]rune(phrase)[0]) - 0x10000
		if unit < 256 {
			bits(0, width)
			bits(unit, 8)
		} else {
			bits(1, width)
			bits(unit, 16)
		}
		grown()
		delete(fresh, phrase)
		grown()
	}
	phrase := ""
	for _, unit := range utf16.Encode([]rune(text)) {
		c := string(rune(unit) + 0x10000) // so that halves of pairs are characters too
		if _, ok := codes[c]; !ok {
			codes[c] = next
			next++
			fresh[c] = true
		}
		if _, ok := codes[phrase+c]; ok {
			phrase += c
			continue
		}
		write(phrase)
		codes[phrase+c] = next
		next++
		phrase = c
	}
	if phrase != "" {
		write(phrase)
	}
	bits(2, width)
	for bit(0); filled != 0; bit(0) {
	}
	return string(out) + strings.Repeat("=", (4-len(out)%4)%4)
}
