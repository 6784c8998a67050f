package endpointfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader reads YAML nodes and collects all mistakes.
type reader struct {
	path     string
	mistakes []error
}

// maxDepth is how deep lists and objects may be nested.
const maxDepth = 64

func (r *reader) wrong(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, &Error{Path: r.path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// object reads a mapping that may only have the given fields; null fields count as missing.
func (r *reader) object(node *yaml.Node, what string, allowed ...string) map[string]*yaml.Node {
	fields := make(map[string]*yaml.Node)
	if node.Kind != yaml.MappingNode {
		r.wrong(node.Line, "%s is a list of fields such as name: value", what)
		return fields
	}
	r.pairs(node, func(key string, line int, value *yaml.Node) {
		switch {
		case !slices.Contains(allowed, key):
			r.wrong(line, "%s has no field %s", what, key)
		case value.ShortTag() != "!!null" || key == "value":
			fields[key] = value
		}
	})
	return fields
}

// pairs calls each for the fields of a mapping, and refuses keys that are not text or occur twice.
func (r *reader) pairs(node *yaml.Node, each func(key string, line int, value *yaml.Node)) {
	seen := make(map[string]bool, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.wrong(key.Line, "the name of a field is a text, not %q", key.Value)
		case seen[key.Value]:
			r.wrong(key.Line, "%s stands here twice", key.Value)
		default:
			seen[key.Value] = true
			if r.plain(value) {
				each(key.Value, key.Line, value)
			}
		}
	}
}

// plain refuses references and tags, which no file needs and which would make it hard to read.
func (r *reader) plain(node *yaml.Node) bool {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		r.wrong(node.Line, "anchors and references (& and *) are not supported")
	case node.Style&yaml.TaggedStyle != 0:
		r.wrong(node.Line, "tags such as %s are not supported", node.Tag)
	default:
		return true
	}
	return false
}

func (r *reader) text(fields map[string]*yaml.Node, name string) string {
	node := fields[name]
	if node == nil {
		return ""
	}
	text, ok := textOf(node)
	if !ok {
		r.wrong(node.Line, "%s is a text; put it into quotation marks", name)
	}
	return text
}

// textOf returns the text of a scalar. What looks like a time counts as text.
func textOf(node *yaml.Node) (string, bool) {
	tag := node.ShortTag()
	return node.Value, node.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!timestamp")
}

func (r *reader) texts(fields map[string]*yaml.Node, name string) []string {
	node := fields[name]
	if node == nil {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		r.wrong(node.Line, "%s is a list", name)
		return nil
	}
	texts := []string{}
	for _, item := range node.Content {
		if !r.plain(item) {
			continue
		}
		text, ok := textOf(item)
		if !ok {
			r.wrong(item.Line, "%s is a list of texts; put each into quotation marks", name)
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *reader) boolean(fields map[string]*yaml.Node, name string, out *bool) {
	node := fields[name]
	if node == nil {
		return
	}
	if node.ShortTag() != "!!bool" || node.Decode(out) != nil {
		r.wrong(node.Line, "%s is true or false", name)
	}
}

func (r *reader) integer(node *yaml.Node, name string) (n int, ok bool) {
	if node.ShortTag() != "!!int" || node.Decode(&n) != nil {
		r.wrong(node.Line, "%s is a whole number, not %q", name, node.Value)
		return 0, false
	}
	return n, true
}

// json reads any value as JSON; nil if the node is missing or invalid.
func (r *reader) json(node *yaml.Node) json.RawMessage {
	if node == nil {
		return nil
	}
	before := len(r.mistakes)
	out := r.appendJSON(nil, node, 0)
	if len(r.mistakes) > before {
		return nil
	}
	return out
}

func (r *reader) appendJSON(dst []byte, node *yaml.Node, depth int) []byte {
	if depth > maxDepth {
		r.wrong(node.Line, "this stands too deep")
		return dst
	}
	if !r.plain(node) {
		return dst
	}
	if node.Kind == yaml.MappingNode {
		dst = append(dst, '{')
		r.pairs(node, func(key string, _ int, value *yaml.Node) {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(dst, encode(key)...), ':')
			dst = r.appendJSON(dst, value, depth+1)
		})
		return append(dst, '}')
	}
	if node.Kind == yaml.SequenceNode {
		dst = append(dst, '[')
		for i, item := range node.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.appendJSON(dst, item, depth+1)
		}
		return append(dst, ']')
	}
	return r.appendScalar(dst, node)
}

// appendScalar appends a scalar. A number that is valid JSON keeps its digits.
func (r *reader) appendScalar(dst []byte, node *yaml.Node) []byte {
	tag := node.ShortTag()
	switch tag {
	case "!!null":
		return append(dst, "null"...)
	case "!!str", "!!timestamp":
		return append(dst, encode(node.Value)...)
	case "!!bool":
		return append(dst, strings.ToLower(node.Value)...)
	case "!!int", "!!float":
		if json.Valid([]byte(node.Value)) {
			return append(dst, node.Value...)
		}
		var value any
		if err := node.Decode(&value); err == nil {
			if f, ok := value.(float64); !ok || !math.IsInf(f, 0) && !math.IsNaN(f) {
				return append(dst, encode(value)...)
			}
		}
	}
	r.wrong(node.Line, "%q is not a value that JSON has", node.Value)
	return dst
}

// encode returns v as JSON; v is a string, a number, or a map of strings.
func encode(v any) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("BUG: encoding a value of a file: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
