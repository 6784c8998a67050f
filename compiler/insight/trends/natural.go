package trends

import (
	"cmp"
	"strings"
)

// natural compares texts as people sort them: it ignores case and compares runs of digits as numbers, so that "v9" comes before "V10". It
// returns 0 for texts that differ only in case or leading zeros.
func natural(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" || b != "" {
		var x, y string
		x, a = cut(a, false)
		y, b = cut(b, false)
		if order := cmp.Compare(x, y); order != 0 {
			return order
		}
		x, a = cut(a, true)
		y, b = cut(b, true)
		if x == "" || y == "" { // a text ends here
			return cmp.Compare(len(x), len(y))
		}
		m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if order := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); order != 0 {
			return order
		}
	}
	return 0
}

// cut splits a text after its leading digits, or after everything before the first digit.
func cut(text string, digits bool) (front, rest string) {
	n := 0
	for n < len(text) && isDigit(text[n]) == digits {
		n++
	}
	return text[:n], text[n:]
}
