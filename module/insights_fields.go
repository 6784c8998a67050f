package module

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// readInsight reads the writable fields of an insight. Like the peer it takes no notice of others: clients send back what
// they were given. The query is checked before anything else.
func (rq *request) readInsight(isNew bool) (registry.InsightFields, error) {
	var f registry.InsightFields
	fields, err := rq.readObject()
	if err != nil {
		return f, err
	}
	if f.Query, err = rq.savedQuery(fields, isNew); err != nil {
		return f, err
	}
	f.NoQueryScope = !rq.mayQuery() && holdsHogQL(fields["query"])
	r := fieldReader{fields: fields}
	f.Name, f.DerivedName, f.Description = r.textOrNull("name"), r.textOrNull("derived_name"), r.textOrNull("description")
	f.Filters = r.object("filters", "Filters must be a dictionary")
	f.Order = r.integerOrNull("order")
	f.Deleted, f.Favorited, f.Saved = r.flag("deleted"), r.flag("favorited"), r.flag("saved")
	f.Tags = r.texts("tags")
	f.Dashboards = r.integers("dashboards")
	r.textOrNull(folderField)
	return f, r.err
}

// folderField names the folder of the peer's project tree that something new is put into. There is no such tree here: the
// name is checked and not kept, and no answer of either shows it.
const folderField = "_create_in_folder"

// savedQuery reads and checks the query of an insight: contract section 4.3. It is kept as it was sent, but for callers who
// say that they are PostHog's MCP server: their bare queries are put into the node that shows them.
func (rq *request) savedQuery(fields map[string]json.RawMessage, isNew bool) (registry.Field[json.RawMessage], error) {
	var none registry.Field[json.RawMessage]
	fromMCP := rq.input().FromMCP()
	raw, given := fields["query"]
	switch {
	case !given && isNew && fromMCP:
		return none, api.Invalid("query", "required", "This field is required.")
	case !given:
		return none, nil
	case api.IsNull(raw):
		return registry.To[json.RawMessage](nil), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return none, api.Invalid("query", "invalid_input", "Query must be a valid JSON object")
	}
	if len(members) == 0 {
		return registry.To[json.RawMessage](nil), nil
	}
	node, err := compiler.Parse(raw)
	if err != nil {
		return none, err // a mistake of the request, told as it is
	}
	var kind string
	if err := json.Unmarshal(members["kind"], &kind); err != nil {
		return none, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	if !compiler.KindOf(node).HasRows() {
		return none, api.Invalid("query", "invalid_input", "Unsupported query kind: %s", node.Kind())
	}
	if wrapper := compiler.KindOf(node).Wrapper; fromMCP && kind == node.Kind() && wrapper != "" {
		raw = wrapQuery(wrapper, raw)
	}
	return registry.To(raw), nil
}

// wrapQuery puts a bare query into the node that shows it.
func wrapQuery(wrapper string, raw json.RawMessage) json.RawMessage {
	return jsontext.Append(nil, struct {
		Kind   string          `json:"kind"`
		Source json.RawMessage `json:"source"`
	}{wrapper, raw})
}

// fieldReader reads the fields of a request, in the words of the peer's serializers. The first mistake stays.
type fieldReader struct {
	fields map[string]json.RawMessage
	prefix string // of the names of fields in mistakes, such as tiles.0.
	err    error
}

func (r *fieldReader) fail(name, code, words string) {
	if r.err == nil {
		r.err = api.Invalid(r.prefix+name, code, "%s", words)
	}
}

// take gives a field that is there and no mistake yet; null is a mistake unless it may be one.
func (r *fieldReader) take(name string, mayBeNull bool) (raw json.RawMessage, ok bool) {
	raw, ok = r.fields[name]
	if !ok || r.err != nil {
		return nil, false
	}
	if api.IsNull(raw) && !mayBeNull {
		r.fail(name, "null", "This field may not be null.")
		return nil, false
	}
	return raw, true
}

func read[T any](r *fieldReader, name string, mayBeNull bool, words string) registry.Field[T] {
	raw, ok := r.take(name, mayBeNull)
	if !ok {
		return registry.Field[T]{}
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		r.fail(name, "invalid_input", words)
		return registry.Field[T]{}
	}
	return registry.To(v)
}

func (r *fieldReader) text(name string) registry.Field[string] {
	return read[string](r, name, false, "Not a valid string.")
}

func (r *fieldReader) textOrNull(name string) registry.Field[*string] {
	return read[*string](r, name, true, "Not a valid string.")
}

func (r *fieldReader) flag(name string) registry.Field[bool] {
	return read[bool](r, name, false, "Must be a valid boolean.")
}

func (r *fieldReader) flagOrNull(name string) registry.Field[*bool] {
	return read[*bool](r, name, true, "Must be a valid boolean.")
}

func (r *fieldReader) integerOrNull(name string) registry.Field[*int] {
	return read[*int](r, name, true, "A valid integer is required.")
}

// object reads a JSON object; null stands for an empty one.
func (r *fieldReader) object(name, words string) registry.Field[json.RawMessage] {
	raw, ok := r.take(name, true)
	switch {
	case !ok:
		return registry.Field[json.RawMessage]{}
	case api.IsNull(raw):
		return registry.To(json.RawMessage(`{}`))
	case bytes.TrimSpace(raw)[0] != '{':
		r.fail(name, "invalid_input", words)
		return registry.Field[json.RawMessage]{}
	}
	return registry.To(raw)
}

// list reads the items of a list.
func (r *fieldReader) list(name string) ([]json.RawMessage, bool) {
	raw, ok := r.take(name, false)
	if !ok {
		return nil, false
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		r.fail(name, "not_a_list", fmt.Sprintf("Expected a list of items but got type %q.", pythonType(raw)))
		return nil, false
	}
	return items, true
}

// pythonType names the type of a JSON value as the peer does.
func pythonType(raw json.RawMessage) string {
	switch bytes.TrimSpace(raw)[0] {
	case '{':
		return "dict"
	case '"':
		return "str"
	case 't', 'f':
		return "bool"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "float"
	}
	return "int"
}

func (r *fieldReader) texts(name string) registry.Field[[]string] {
	items, ok := r.list(name)
	if !ok {
		return registry.Field[[]string]{}
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if api.IsNull(item) || json.Unmarshal(item, &texts[i]) != nil {
			r.fail(name+"__"+strconv.Itoa(i), "invalid_input", "Not a valid string.")
		}
	}
	return registry.To(texts)
}

func (r *fieldReader) integers(name string) registry.Field[[]int64] {
	items, ok := r.list(name)
	if !ok {
		return registry.Field[[]int64]{}
	}
	numbers := make([]int64, len(items))
	for i, item := range items {
		if api.IsNull(item) || json.Unmarshal(item, &numbers[i]) != nil {
			r.fail(name+"__"+strconv.Itoa(i), "invalid_input", "A valid integer is required.")
		}
	}
	return registry.To(numbers)
}

func (rq *request) jsonParam(name string, into any) (bool, error) {
	return rq.input().JSONParam(name, into)
}
