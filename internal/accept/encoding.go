// Package accept parses the Accept-Encoding header.
package accept

import "strings"

// Full is the maximum weight, and the weight of an encoding without one.
const Full = 1000

// NextEncoding takes the first element off an Accept-Encoding header. It returns the coding, which may be "*", its weight from 0 to Full, and the rest of
// the header. It skips malformed elements; the coding is empty when none is left. It does not allocate.
func NextEncoding(header string) (coding string, weight int, rest string) {
	for header != "" {
		var element string
		element, header, _ = strings.Cut(header, ",")
		name, parameter, weighted := strings.Cut(element, ";")
		weight, ok := Full, true
		if weighted {
			weight, ok = parseWeight(trimSpace(parameter))
		}
		if name = trimSpace(name); ok && name != "" {
			return name, weight, header
		}
	}
	return "", 0, ""
}

// Weight returns the weight of a coding in an Accept-Encoding header; 0 when it is not accepted.
func Weight(header, coding string) int {
	const unsaid = -1
	own, others := unsaid, unsaid
	for name, weight, rest := NextEncoding(header); name != ""; name, weight, rest = NextEncoding(rest) {
		switch {
		case name == "*":
			others = weight
		case strings.EqualFold(name, coding):
			own = weight
		}
	}
	if own == unsaid {
		own = others
	}
	return max(0, own)
}

// parseWeight reads "q=0.5" as 500.
func parseWeight(parameter string) (thousandths int, ok bool) {
	name, value, _ := strings.Cut(parameter, "=")
	if name = trimSpace(name); name != "q" && name != "Q" {
		return 0, false
	}
	value = trimSpace(value)
	if value == "" || value[0] != '0' && value[0] != '1' {
		return 0, false
	}
	thousandths = Full * int(value[0]-'0')
	if value = value[1:]; value == "" {
		return thousandths, true
	}
	if value[0] != '.' || len(value) > 4 {
		return 0, false
	}
	for i, unit := 1, Full/10; i < len(value); i, unit = i+1, unit/10 {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		thousandths += unit * int(value[i]-'0')
	}
	return thousandths, thousandths <= Full
}

func trimSpace(s string) string { return strings.Trim(s, " \t") }
