package clickhouse

import "bytes"

// The scanners start at an index in JSON and return the index after what they scanned, or -1 if it does not end. They rely on
// the engine to write well-formed JSON, except that brackets or quotes may be missing at the end.

// valueEnd scans one value: a string, a list or object with its contents, or a word.
func valueEnd(json []byte, at int) int {
	if at < 0 || at >= len(json) {
		return -1
	}
	switch json[at] {
	case '"':
		return stringEnd(json, at)
	case '[', '{':
		return nestedEnd(json, at)
	case ']', '}', ',', ':':
		return -1
	}
	return wordEnd(json, at)
}

func nestedEnd(json []byte, at int) int {
	for depth := 0; at >= 0 && at < len(json); {
		switch json[at] {
		case '"':
			at = stringEnd(json, at)
		case '[', '{':
			depth++
			at++
		case ']', '}':
			depth--
			at++
			if depth == 0 {
				return at
			}
		case ',', ':':
			at++
		default:
			at = wordEnd(json, at)
		}
	}
	return -1
}

// wordEnd scans a number, true, false or null.
func wordEnd(json []byte, at int) int {
	for at++; at < len(json) && !structural[json[at]]; at++ {
	}
	return at
}

// structural are the bytes that end a number or word.
var structural = [256]bool{',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true}

func stringEnd(json []byte, at int) int {
	for from := at + 1; ; {
		length := bytes.IndexByte(json[from:], '"')
		if length < 0 {
			return -1
		}
		quote := from + length
		escapes := 0
		for i := quote - 1; i > at && json[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}

// listEnd scans the items between two brackets, each with item.
func listEnd(json []byte, at int, left, right byte, item func(i, at int) int) int {
	at = skip(json, at, left)
	if end := skip(json, at, right); end >= 0 {
		return end
	}
	for i := 0; at >= 0; i++ {
		at = item(i, at)
		if end := skip(json, at, right); end >= 0 {
			return end
		}
		at = skip(json, at, ',')
	}
	return -1
}

// skip scans the byte c.
func skip(json []byte, at int, c byte) int {
	if at < 0 || at >= len(json) || json[at] != c {
		return -1
	}
	return at + 1
}
