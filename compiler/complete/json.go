package complete

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// All yields every suggestion, functions last.
func (c *Completion) All() iter.Seq[Suggestion] {
	return func(yield func(Suggestion) bool) {
		for _, s := range c.Suggestions {
			if !yield(s) {
				return
			}
		}
		if c.Functions == nil {
			return
		}
		for _, s := range c.Functions.List {
			if !yield(s) {
				return
			}
		}
	}
}

// AppendJSON appends the API's answer. The functions, which are many, are encoded only once for all answers.
func (c *Completion) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"suggestions":[`...)
	dst = appendAll(dst, c.Suggestions)
	if c.Functions != nil {
		if len(c.Suggestions) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c.Functions.json...)
	}
	dst = append(dst, `],"incomplete_list":`...)
	if c.Incomplete {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	return append(dst, `,"timings":[]}`...)
}

// appendAll appends suggestions, separated by commas.
func appendAll(dst []byte, list []Suggestion) []byte {
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"label":`...), s.Label)
		dst = appendText(append(dst, `,"insertText":`...), s.Insert)
		dst = appendText(append(dst, `,"kind":`...), string(s.Kind))
		dst = appendOptional(append(dst, `,"detail":`...), s.Detail)
		dst = append(dst, `,"documentation":null,"sortText":`...)
		dst = append(appendOptional(dst, s.Sort), '}')
	}
	return dst
}

// appendOptional appends a text, or null if it is empty.
func appendOptional(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, text)
}

// appendText appends a text as JSON. Most need no escaping.
func appendText(dst []byte, text string) []byte {
	if strings.IndexFunc(text, isEscaped) < 0 {
		return append(append(append(dst, '"'), text...), '"')
	}
	raw, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: a text cannot be written as JSON: %v", err))
	}
	return append(dst, raw...)
}

// isEscaped reports whether JSON may escape a character.
func isEscaped(r rune) bool {
	return r < ' ' || r >= 0x7f || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}
