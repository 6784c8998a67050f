// Package shorten cuts long texts for messages, logs and records.
package shorten

import "strings"

// Text returns a text of at most most bytes as it is, and the beginning of a longer one, followed by an ellipsis.
func Text(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Cut(text, most) + "…"
}

// Cut returns a text of at most most bytes as it is, and otherwise its first bytes, without half a character at the end or anything else that is not UTF-8.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
