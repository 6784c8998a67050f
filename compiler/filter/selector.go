package filter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// selectorPart is one element of a CSS selector.
type selectorPart struct {
	tests []string // regular expressions over an element as written in elements_chain; all must match
	child bool     // it is a child of the next part, not just a descendant
}

// The bounds of a selector: its length in bytes, and its number of elements.
const (
	maxSelector      = 2048
	maxSelectorParts = 32
)

// readSelector parses a CSS selector: names, classes, ids, attributes and positions of elements, as descendants or children of one another. The
// innermost element comes first, as in elements_chain. wrong says what is wrong; empty if nothing is.
func readSelector(text string) (parts []selectorPart, wrong string) {
	switch {
	case len(text) > maxSelector:
		return nil, fmt.Sprintf("it has more than %d bytes", maxSelector)
	case !utf8.ValidString(text):
		return nil, "it is not UTF-8"
	}
	r := selectorReader{rest: strings.TrimSpace(text)}
	for child := false; r.wrong == ""; child = r.combinator() {
		parts = append(parts, selectorPart{tests: r.element(), child: child})
		if len(parts) > maxSelectorParts {
			r.fail(fmt.Sprintf("it names more than %d elements", maxSelectorParts))
		}
		if r.rest == "" {
			break
		}
	}
	slices.Reverse(parts)
	return parts, r.wrong
}

type selectorReader struct{ rest, wrong string }

func (r *selectorReader) fail(words string) {
	if r.wrong == "" {
		r.wrong = words
	}
}

// take consumes a prefix.
func (r *selectorReader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	if ok {
		r.rest = rest
	}
	return ok
}

const selectorBlanks = " \t\r\n\f"

func (r *selectorReader) blanks() { r.rest = strings.TrimLeft(r.rest, selectorBlanks) }

// combinator reads the space between two elements. It reports whether the second is a child of the first.
func (r *selectorReader) combinator() (child bool) {
	r.blanks()
	if child = r.take(">"); child {
		r.blanks()
	}
	return child
}

// element reads one element, and returns the tests that it must pass.
func (r *selectorReader) element() (tests []string) {
	before := r.rest
	if !r.take("*") {
		if name := r.name(); name != "" {
			tests = append(tests, tagIs(name))
		}
	}
	for r.wrong == "" && r.rest != "" && strings.IndexByte(selectorBlanks+">", r.rest[0]) < 0 {
		switch {
		case r.take("."):
			tests = append(tests, `^[^"]*\.`+regexp.QuoteMeta(r.need("a class"))+`(?:[.:]|$)`)
		case r.take("#"):
			tests = append(tests, attributeIs("attr_id", r.need("an id")))
		case r.take("["):
			tests = append(tests, r.attribute())
		case r.take(":nth-child("):
			tests = append(tests, attributeIs("nth-child", r.place()))
		case r.take(":nth-of-type("):
			tests = append(tests, attributeIs("nth-of-type", r.place()))
		default:
			_, size := utf8.DecodeRuneInString(r.rest)
			r.fail(fmt.Sprintf("%q is not supported there", r.rest[:size]))
		}
	}
	if r.rest == before {
		r.fail("an element is missing")
	}
	return tests
}

// name reads a name. A backslash makes the next character literal.
func (r *selectorReader) name() string {
	var out strings.Builder
	for r.rest != "" && strings.IndexByte(selectorBlanks+`>.#[]:*^$+~,()="'`, r.rest[0]) < 0 {
		if r.take(`\`) && r.rest == "" {
			r.fail(`it ends with \`)
			break
		}
		_, size := utf8.DecodeRuneInString(r.rest)
		out.WriteString(r.rest[:size])
		r.rest = r.rest[size:]
	}
	return out.String()
}

func (r *selectorReader) need(what string) string {
	name := r.name()
	if name == "" {
		r.fail("the name of " + what + " is missing")
	}
	return name
}

// place reads the number of a child, up to the closing parenthesis.
func (r *selectorReader) place() string {
	end := strings.IndexByte(r.rest, ')')
	if end <= 0 || strings.Trim(r.rest[:end], "0123456789") != "" {
		r.fail("the place of a child is not a number")
		return ""
	}
	number := r.rest[:end]
	r.rest = r.rest[end+1:]
	return number
}

// attribute reads the text in brackets: the name of an attribute, and the condition on its value.
func (r *selectorReader) attribute() string {
	key := r.need("an attribute")
	switch key {
	case "id":
		key = "attr_id"
	case "attr_id", "href", "text", "nth-child", "nth-of-type": // as elements_chain has them
	default:
		key = "attr__" + key
	}
	start := attributeKey(key)
	if r.take("]") {
		return start
	}
	form := ""
	for _, form = range []string{"=", "^=", "$=", "*="} {
		if r.take(form) {
			break
		}
		form = ""
	}
	if form == "" {
		r.fail("an attribute is compared with =, ^=, $= or *=")
		return ""
	}
	value := regexp.QuoteMeta(strings.ReplaceAll(r.value(), `"`, `\"`))
	if !r.take("]") {
		r.fail("a ] is missing")
	}
	switch form {
	case "^=":
		return start + value
	case "$=":
		return start + inQuotes + value + `"`
	case "*=":
		return start + inQuotes + value
	}
	return start + value + `"`
}

// value reads a value, with or without quotes.
func (r *selectorReader) value() string {
	if r.rest == "" || r.rest[0] != '"' && r.rest[0] != '\'' {
		return r.need("a value")
	}
	quote := r.rest[0]
	var out strings.Builder
	for i := 1; i < len(r.rest); i++ {
		switch {
		case r.rest[i] == '\\' && i+1 < len(r.rest):
			i++
			out.WriteByte(r.rest[i])
		case r.rest[i] == quote:
			r.rest = r.rest[i+1:]
			return out.String()
		default:
			out.WriteByte(r.rest[i])
		}
	}
	r.fail("a closing quote is missing")
	return ""
}

// inQuotes matches part of a value in elements_chain, where quotes are escaped.
const inQuotes = `(?:\\.|[^"\\])*`

// attributeKey matches the start of an attribute. Quotes inside values are escaped, so no value looks like one.
func attributeKey(key string) string { return `[:"]` + regexp.QuoteMeta(key) + `="` }

func attributeIs(key, value string) string { return attributeKey(key) + regexp.QuoteMeta(value) + `"` }

// tagIs matches an element by name; HTML names are in lower case.
func tagIs(name string) string { return `^` + regexp.QuoteMeta(strings.ToLower(name)) + `(?:[.:]|$)` }
