package clickhouse

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// plain marks the bytes that stand for themselves in a JSON string of the engine: it escapes what JSON must
// escape, and leaves slashes, DEL and everything beyond ASCII alone.
var plain = func() (table [utf8.RuneSelf]bool) {
	for c := range table {
		table[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return table
}()

// appendString writes s as the engine writes a JSON string. A run of bytes that are no UTF-8 becomes one U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start, replaced := 0, -1
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, s[start:i]...)
			if replaced != i {
				b = append(b, "\uFFFD"...)
			}
			start, replaced = i+1, i+1
		case r == '\u2028' || r == '\u2029': // line ends in JavaScript
			b = append(b, s[start:i]...)
			b = append(b, '\\', 'u', '2', '0', '2', hexDigits[r&0xF])
			start = i + size
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

// appendFloat writes f as the engine does: the shortest digits that read back to f, plain up to 21 digits before
// the point and 6 zeros behind it, NaN and infinities as null, and zero without a sign where the engine drops it.
func appendFloat(b []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	abs := math.Abs(f)
	if abs == 0 {
		if math.Signbit(f) {
			b = append(b, '-')
		}
		return append(b, '0')
	}
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, bits)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'e', -1, bits)
	// Go writes two digits of exponent and a plus sign, the engine neither.
	for i := start; i < len(b); i++ {
		if b[i] != 'e' {
			continue
		}
		exponent := b[i+1:]
		n := 0
		if exponent[0] == '-' {
			n = 1
		}
		digits := exponent[1:]
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		n += copy(exponent[n:], digits)
		return b[:i+1+n]
	}
	return b
}
