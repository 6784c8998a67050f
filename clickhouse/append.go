package clickhouse

import (
	"math"
	"strconv"
)

// appendFloat appends f as the engine writes it: the shortest digits that read back as f, without an exponent from 1e-6 to below 1e21. NaN and
// infinities are null, and a negative zero is -0.
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
