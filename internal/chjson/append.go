// Package chjson writes JSON as ClickHouse does.
package chjson

import "unicode/utf8"

const hexDigits = "0123456789ABCDEF"

// plain marks the ASCII characters that ClickHouse does not escape in a JSON string: all but those that JSON must escape, so slashes and DEL are not
// escaped. Beyond ASCII, it escapes only U+2028 and U+2029.
var plain = func() (table [utf8.RuneSelf]bool) {
	for c := range table {
		table[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return table
}()

// AppendString appends s as a JSON string. A run of bytes that are not UTF-8 becomes one U+FFFD.
func AppendString(b []byte, s string) []byte {
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
