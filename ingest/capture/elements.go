package capture

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const (
	maxElementText = 400  // characters
	maxElementLink = 2048 // characters
)

// elements takes the elements chain out of the properties, or renders it from their list of elements: contract capture.md, section 7.
func (d *decoder) elements() string {
	chain, list := d.properties.Get(elementsChain), d.properties.Get(elements)
	if chain == nil && list == nil {
		return ""
	}
	text := ""
	switch {
	case len(chain) > 2 && chain[0] == '"':
		text, _ = chain.Text()
	case len(list) > 0 && list[0] == '[':
		text = renderElements(list)
	}
	// Deleted in place: the memory of the properties is used again.
	d.properties = slices.DeleteFunc(d.properties, func(m record.Member) bool { return m.Key == elementsChain || m.Key == elements })
	return text
}

// renderElements writes a list of elements as a chain.
func renderElements(list record.Value) string {
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return ""
	}
	var chain strings.Builder
	first := true
	for _, item := range items {
		if item[0] != '{' {
			continue
		}
		if !first {
			chain.WriteByte(';')
		}
		first = false
		renderElement(&chain, record.Value(item).Object())
	}
	return chain.String()
}

// attribute is one of the pairs of an element.
type attribute struct{ key, value string }

func renderElement(chain *strings.Builder, element record.Object) {
	chain.WriteString(plainText(element.Get("tag_name")))
	for _, class := range classesOf(element.Get("attr__class")) {
		chain.WriteByte('.')
		chain.WriteString(class)
	}
	attributes := []attribute{
		{"nth-child", orZero(element.Get("nth_child"))},
		{"nth-of-type", orZero(element.Get("nth_of_type"))},
	}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, attribute{key, value})
		}
	}
	add("text", cut(plainText(element.Get("$el_text")), maxElementText))
	add("href", cut(plainText(element.Get("attr__href")), maxElementLink))
	add("attr_id", plainText(element.Get("attr__id")))
	for _, m := range element {
		if strings.HasPrefix(m.Key, "attr__") && !m.Value.IsNull() {
			attributes = append(attributes, attribute{m.Key, plainText(m.Value)})
		}
	}
	slices.SortStableFunc(attributes, func(a, b attribute) int { return compareKeys(a.key, b.key) })
	chain.WriteByte(':')
	for _, a := range attributes {
		chain.WriteString(escapeQuotes(a.key))
		chain.WriteString(`="`)
		chain.WriteString(escapeQuotes(a.value))
		chain.WriteByte('"')
	}
}

func escapeQuotes(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }

// plainText is a value as JavaScript converts it to a string; empty for none.
func plainText(v record.Value) string {
	if v == nil || v.IsNull() {
		return ""
	}
	if text, ok := v.Text(); ok {
		return text
	}
	var list []any
	if v[0] != '[' || json.Unmarshal(v, &list) != nil {
		return string(v)
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

func orZero(v record.Value) string {
	if text := plainText(v); text != "" {
		return text
	}
	return "0"
}

// classesOf returns the sorted classes of an element, given as a list or as a text separated by blanks.
func classesOf(v record.Value) []string {
	var classes []string
	if len(v) > 0 && v[0] == '[' {
		if json.Unmarshal(v, &classes) != nil {
			return nil
		}
	} else {
		classes = strings.Split(plainText(v), " ")
	}
	kept := classes[:0]
	for _, class := range classes {
		if class = strings.ReplaceAll(class, `"`, ""); class != "" {
			kept = append(kept, class)
		}
	}
	slices.Sort(kept)
	return kept
}

// compareKeys orders keys like a browser's localeCompare: punctuation before digits before letters; case decides last.
func compareKeys(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := weight(a[i]), weight(b[i]); x != y {
			return x - y
		}
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return -strings.Compare(a, b) // lower case first
}

func weight(c byte) int {
	switch {
	case c == '_':
		return 1
	case c == '-':
		return 2
	case c >= 'A' && c <= 'Z':
		return int(c) + 'a' - 'A'
	case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= utf8.RuneSelf:
		return int(c)
	}
	return 3
}
