package endpointfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// Marshal writes a file, without defaults. It returns an error if Parse would not read the same back.
func Marshal(f *File) ([]byte, error) {
	text, err := f.marshal(false)
	if err != nil {
		return nil, err
	}
	if again, err := Parse(f.Path, text); err == nil && again.Same(f) {
		return text, nil
	}
	// For text that a block does not preserve, such as one with spaces at the end of a line.
	if text, err = f.marshal(true); err != nil {
		return nil, err
	}
	again, err := Parse(f.Path, text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("writing the endpoint %s: %w", f.Name, err)
	case !again.Same(f):
		return nil, fmt.Errorf("writing the endpoint %s: it reads back as another one", f.Name)
	}
	return text, nil
}

// Same reports whether two files have the same content.
func (f *File) Same(as *File) bool {
	return f.Name == as.Name && f.Description == as.Description && sameJSON(f.Query, as.Query) && f.Freshness == as.Freshness &&
		f.Active == as.Active && f.RateLimit == as.RateLimit && f.Materialized == as.Materialized && maps.Equal(f.Buckets, as.Buckets) &&
		slices.Equal(f.Tags, as.Tags) && slices.Equal(f.OptionalBreakdowns, as.OptionalBreakdowns) &&
		slices.EqualFunc(f.byName(), as.byName(), func(a, b Variable) bool {
			return a.Name == b.Name && a.same(&b) && sameJSON(a.Value, b.Value)
		})
}

func (f *File) byName() []Variable {
	return slices.SortedFunc(slices.Values(f.Variables), func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
}

// marshal writes a file. Text of several lines becomes a block unless quoted is set.
func (f *File) marshal(quoted bool) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, value *yaml.Node) { root.Content = append(root.Content, textNode(name, false), value) }
	put("name", textNode(f.Name, false))
	if f.Description != "" {
		put("description", textNode(f.Description, quoted))
	}
	hogql, isText, err := hogqlText(f.Query)
	if err != nil {
		return nil, fmt.Errorf("writing the query of endpoint %s: %w", f.Name, err)
	}
	if isText {
		put("query", textNode(hogql, quoted))
	} else {
		node, err := jsonNode(f.Query, quoted)
		if err != nil {
			return nil, fmt.Errorf("writing the query of endpoint %s: %w", f.Name, err)
		}
		put("query_definition", node)
	}
	if len(f.Variables) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range f.Variables {
			node, err := f.Variables[i].node(quoted)
			if err != nil {
				return nil, fmt.Errorf("writing the variable %s of endpoint %s: %w", f.Variables[i].Name, f.Name, err)
			}
			list.Content = append(list.Content, node)
		}
		put("variables", list)
	}
	if f.Freshness != defaultFreshness {
		put("data_freshness_seconds", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(int(f.Freshness.Seconds()))})
	}
	if f.Materialized {
		put("is_materialized", boolNode(true))
	}
	if len(f.Buckets) > 0 {
		put("bucket_overrides", mapNode(f.Buckets, quoted))
	}
	if !f.Active {
		put("is_active", boolNode(false))
	}
	if len(f.Tags) > 0 {
		put("tags", listNode(f.Tags, quoted))
	}
	if !f.RateLimit.IsZero() {
		put("rate_limit", textNode(f.RateLimit.String(), false))
	}
	if len(f.OptionalBreakdowns) > 0 {
		put("optional_breakdown_properties", listNode(f.OptionalBreakdowns, quoted))
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
		return nil, fmt.Errorf("writing the endpoint %s: %w", f.Name, err)
	}
	return out.Bytes(), nil
}

// hogqlText returns the text of a HogQLQuery that has nothing but its text.
func hogqlText(raw json.RawMessage) (string, bool, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", false, err
	}
	var name string
	_ = json.Unmarshal(fields["kind"], &name) // the node was parsed before
	if kind := compiler.KindNamed(name); kind == nil || !kind.HogQL || len(fields) != 2 {
		return "", false, nil
	}
	var text string
	err := json.Unmarshal(fields["query"], &text)
	return text, true, err
}

func (v *Variable) node(quoted bool) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, value *yaml.Node) { node.Content = append(node.Content, textNode(name, false), value) }
	put("name", textNode(v.Name, quoted))
	put("type", textNode(string(v.Type), false))
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"default", v.Default}, {"values", v.Values}, {"value", v.Value}} {
		if part.raw == nil {
			continue
		}
		value, err := jsonNode(part.raw, quoted)
		if err != nil {
			return nil, err
		}
		put(part.name, value)
	}
	if v.Multi {
		put("is_multi", boolNode(true))
	}
	return node, nil
}

func textNode(text string, quoted bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case quoted:
		node.Style = yaml.DoubleQuotedStyle
	case strings.Contains(text, "\n"):
		node.Style = yaml.LiteralStyle
	}
	return node
}

func boolNode(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

func mapNode(texts map[string]string, quoted bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		name := textNode(key, quoted)
		if name.Style == yaml.LiteralStyle { // not allowed in flow style
			name.Style = yaml.DoubleQuotedStyle
		}
		node.Content = append(node.Content, name, textNode(texts[key], quoted))
	}
	return node
}

func listNode(texts []string, quoted bool) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range texts {
		item := textNode(text, quoted)
		if item.Style == yaml.LiteralStyle { // not allowed in flow style
			item.Style = yaml.DoubleQuotedStyle
		}
		list.Content = append(list.Content, item)
	}
	return list
}

// jsonNode converts JSON to YAML, keeping the order of fields.
func jsonNode(raw json.RawMessage, quoted bool) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	node, err := tokenNode(decoder, quoted)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return node, nil
}

func tokenNode(decoder *json.Decoder, quoted bool) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		if token == '{' {
			node.Kind = yaml.MappingNode
		}
		for decoder.More() { // keys are tokens like strings
			child, err := tokenNode(decoder, quoted)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err := decoder.Token() // the closing bracket
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		return node, err
	case string:
		return textNode(token, quoted), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: token.String()}, nil
	case bool:
		return boolNode(token), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
