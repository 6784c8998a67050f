package people

import (
	"strconv"
	"strings"
)

// element is an element of a page that an event is about, in JSON.
type element struct {
	Text       *string           `json:"text"`
	TagName    *string           `json:"tag_name"`
	AttrClass  []string          `json:"attr_class"`
	Href       *string           `json:"href"`
	AttrID     *string           `json:"attr_id"`
	NthChild   *int              `json:"nth_child"`
	NthOfType  *int              `json:"nth_of_type"`
	Attributes map[string]string `json:"attributes"`
	Order      int               `json:"order"`
}

// Bounds of a chain that is taken apart. Pages nest a few dozen elements, and anybody can send events.
const (
	maxChain    = 64 << 10
	maxElements = 500
)

// elements takes the chain of an event apart: elements with a semicolon between them, each a tag, its classes after points, and its
// attributes after a colon, such as a.link.big:href="/x"nth-child="1". What is not in this form is passed over, and so is a chain beyond maxChain.
func elements(chain string) []element {
	list := []element{}
	if len(chain) > maxChain {
		return list
	}
	for chain != "" && len(list) < maxElements {
		var one element
		one, chain = cutElement(chain)
		one.Order = len(list)
		list = append(list, one)
	}
	return list
}

func cutElement(chain string) (one element, rest string) {
	end := strings.IndexAny(chain, ":;")
	if end < 0 {
		end = len(chain)
	}
	head := chain[:end]
	tag, classes, _ := strings.Cut(head, ".")
	if tag != "" {
		one.TagName = &tag
	}
	for class := range strings.SplitSeq(classes, ".") {
		if class != "" {
			one.AttrClass = append(one.AttrClass, class)
		}
	}
	one.Attributes, rest = map[string]string{}, chain[end:]
	rest = strings.TrimPrefix(rest, ":")
	for rest != "" {
		if after, ended := strings.CutPrefix(rest, ";"); ended {
			return one, after
		}
		var key, value string
		key, value, rest = cutAttribute(rest)
		one.set(key, value)
	}
	return one, ""
}

// cutAttribute reads key="value", where a quote in the value has a backslash before it. Without quotes all up to the next element is the key.
func cutAttribute(text string) (key, value, rest string) {
	head, _, _ := strings.Cut(text, ";")
	at := strings.Index(head, `="`)
	if at < 0 {
		return head, "", text[len(head):]
	}
	key, text = text[:at], text[at+2:]
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			plain.WriteByte('"')
		case text[i] == '"':
			return key, plain.String(), text[i+1:]
		default:
			plain.WriteByte(text[i])
		}
	}
	return key, plain.String(), ""
}

func (e *element) set(key, value string) {
	switch key {
	case "text":
		e.Text = &value
	case "href":
		e.Href = &value
	case "attr_id":
		e.AttrID = &value
	case "nth-child":
		e.NthChild = number(value)
	case "nth-of-type":
		e.NthOfType = number(value)
	default:
		e.Attributes[key] = value
	}
}

func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}
