// Package elements reads element chains: the page elements that an event is about, as sent by autocapture and stored in the column
// elements_chain.
package elements

import (
	"iter"
	"strconv"
	"strings"
	"unicode"
)

// The bounds of a chain that is parsed. Pages nest a few dozen elements, but anybody can send events.
const (
	maxChain    = 64 << 10 // bytes
	maxElements = 500
)

// Element is an element of a page, as the API shows it.
type Element struct {
	Text       *string           `json:"text"`
	TagName    *string           `json:"tag_name"`
	Class      []string          `json:"attr_class"`
	Href       *string           `json:"href"`
	ID         *string           `json:"attr_id"`
	NthChild   *int              `json:"nth_child"`
	NthOfType  *int              `json:"nth_of_type"`
	Attributes map[string]string `json:"attributes"`
	Order      int               `json:"order"`
}

// Of reads a chain of elements, innermost first: name.class:key="value"key="value", with semicolons between the elements. Text that does not
// match is skipped, and so are elements after the first 500. A chain of more than 64 KiB has no elements.
func Of(chain string) []Element {
	out := []Element{}
	if len(chain) > maxChain {
		return out
	}
	for text := range splitChain(chain) {
		if len(out) == maxElements {
			break
		}
		out = append(out, elementOf(text, len(out)))
	}
	return out
}

// splitChain splits a chain at semicolons and spaces outside of quotes.
func splitChain(chain string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		cut := func(end int) bool { return end <= start || yield(chain[start:end]) }
		for i := 0; i < len(chain); i++ {
			switch c := chain[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case !quoted && (c == ';' || c < 0x80 && unicode.IsSpace(rune(c))):
				if !cut(i) {
					return
				}
				start = i + 1
			}
		}
		cut(len(chain))
	}
}

func elementOf(text string, order int) Element {
	out := Element{Attributes: map[string]string{}, Order: order}
	head, attributes := splitElement(text)
	if head != "" {
		name, classes, classed := strings.Cut(head, ".")
		out.TagName = &name
		if classed {
			out.Class = strings.FieldsFunc(classes, func(r rune) bool { return r == '.' })
		}
	}
	for attributes != "" {
		var key, value string
		var ok bool
		if key, value, attributes, ok = attribute(attributes); ok {
			out.set(key, value)
		}
	}
	return out
}

// splitElement splits an element into its name and classes, and its attributes. A class may contain colons, so the attributes begin after the first
// colon that is followed by a name and an equals sign.
func splitElement(text string) (head, attributes string) {
	for from := 0; ; {
		colon := strings.IndexByte(text[from:], ':')
		if colon < 0 {
			return text, ""
		}
		colon += from
		rest := text[colon+1:]
		name := strings.TrimLeftFunc(rest, func(r rune) bool {
			return r == '-' || r == '_' || r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r))
		})
		if strings.HasPrefix(name, "=") {
			return text[:colon], rest
		}
		from = colon + 1
	}
}

// attribute reads the first attribute. Its value ends at a quote without a backslash before it; ok is false if there is none.
func attribute(text string) (key, value, rest string, ok bool) {
	key, rest, ok = strings.Cut(text, `="`)
	if !ok {
		return "", "", "", false
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return key, rest[:i], rest[i+1:], true
		}
	}
	return "", "", "", false
}

func (e *Element) set(key, value string) {
	switch key {
	case "text":
		e.Text = &value
	case "href":
		e.Href = &value
	case "attr_id":
		e.ID = &value
	case "nth-child":
		e.NthChild = whole(value)
	case "nth-of-type":
		e.NthOfType = whole(value)
	case "":
	default:
		e.Attributes[key] = value
	}
}

func whole(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}
