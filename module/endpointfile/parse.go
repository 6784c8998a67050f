package endpointfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// defaultFreshness is the freshness if the file gives none.
const defaultFreshness = registry.DefaultFreshness * time.Second

// Parse reads one file: its YAML, its fields, and the syntax of its query. It does not check what only a registry or ClickHouse can know. The error
// joins all mistakes; each is an *Error.
func Parse(path string, text []byte) (*File, error) {
	r := &reader{path: path}
	f := &File{Path: path, Freshness: defaultFreshness, Active: true, at: map[string]int{}}
	if root := r.document(text); root != nil {
		r.file(f, root)
	}
	if err := errors.Join(r.mistakes...); err != nil {
		return nil, err
	}
	return f, nil
}

// syntaxLine matches the line number in an error message of the YAML library.
var syntaxLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// document reads the single YAML document of a file; nil if it can't be read.
func (r *reader) document(text []byte) *yaml.Node {
	if len(text) > maxSource {
		r.wrong(0, "the file is larger than %d bytes", maxSource)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.wrong(0, "the file is empty")
		return nil
	case err != nil:
		line, words := syntaxError(err)
		r.wrong(line, "%s", words)
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.wrong(more.Line, "a file holds one endpoint; put each into a file of its own")
		return nil
	}
	switch {
	case len(doc.Content) != 1:
		r.wrong(0, "the file is empty")
	case doc.Content[0].Kind != yaml.MappingNode:
		r.wrong(doc.Content[0].Line, "an endpoint is a list of fields such as name: value")
	default:
		return doc.Content[0]
	}
	return nil
}

// syntaxError splits an error message of the YAML library. Its scanner counts lines from 1 and omits the first; its parser, whose messages begin with
// what it expected, counts from 0.
func syntaxError(err error) (line int, text string) {
	found := syntaxLine.FindStringSubmatch(err.Error())
	text = strings.TrimPrefix(err.Error(), found[0])
	line, _ = strconv.Atoi(found[1]) // empty for the first line
	if strings.HasPrefix(text, "did not find expected") || line == 0 {
		line++
	}
	return line, text
}

// file reads the fields of an endpoint.
func (r *reader) file(f *File, root *yaml.Node) {
	fields := r.object(root, "an endpoint", "name", "description", "query", "query_definition", "variables", "data_freshness_seconds", "materialization",
		"is_materialized", "bucket_overrides", "is_active", "tags", "optional_breakdown_properties", "rate_limit")
	for name, value := range fields {
		f.at[name] = value.Line
	}
	if fields["name"] == nil {
		r.wrong(root.Line, "name is missing")
	} else if f.Name = r.text(fields, "name"); !registry.ValidEndpointName(f.Name) {
		r.wrong(f.at["name"], "%q is not a valid endpoint name: it begins with a letter and has letters, digits, - and _, at most 128", f.Name)
	}
	f.Description = r.text(fields, "description")
	r.boolean(fields, "is_active", &f.Active)
	f.Tags, f.OptionalBreakdowns = r.texts(fields, "tags"), r.texts(fields, "optional_breakdown_properties")
	r.boolean(fields, "is_materialized", &f.Materialized)
	r.buckets(f, fields["bucket_overrides"])
	r.freshness(f, fields)
	if f.Materialized && !f.Active {
		r.wrong(f.at["is_active"], "an endpoint that is not active cannot be materialized")
	}
	r.rate(f, fields)
	r.variables(f, fields["variables"])
	r.query(f, fields, root.Line)
}

// schedules are the words for a freshness in files of PostHog's tool.
var schedules = map[string]time.Duration{
	"15min": 15 * time.Minute, "30min": 30 * time.Minute, "1hour": time.Hour, "6hour": 6 * time.Hour, "12hour": 12 * time.Hour,
	"24hour": 24 * time.Hour, "7day": 7 * 24 * time.Hour,
}

func (r *reader) freshness(f *File, fields map[string]*yaml.Node) {
	if node := fields["data_freshness_seconds"]; node != nil {
		seconds, ok := r.integer(node, "data_freshness_seconds")
		if ok && (seconds < registry.MinFreshness || seconds > registry.MaxFreshness) {
			r.wrong(node.Line, "data_freshness_seconds is between %d and %d, not %d", registry.MinFreshness, registry.MaxFreshness, seconds)
		}
		f.Freshness = time.Duration(seconds) * time.Second
	}
	node := fields["materialization"]
	if node == nil {
		return
	}
	materialization := r.object(node, "materialization", "enabled", "schedule")
	if enabled := materialization["enabled"]; enabled != nil {
		said, before := fields["is_materialized"] != nil, f.Materialized
		r.boolean(materialization, "enabled", &f.Materialized)
		if said && f.Materialized != before {
			r.wrong(enabled.Line, "enabled and is_materialized say different things; leave one of them out")
		}
	}
	schedule := materialization["schedule"]
	if schedule == nil {
		return
	}
	every, ok := schedules[r.text(materialization, "schedule")]
	switch {
	case !ok:
		r.wrong(schedule.Line, "schedule is one of 15min, 30min, 1hour, 6hour, 12hour, 24hour and 7day, not %q", schedule.Value)
	case fields["data_freshness_seconds"] != nil && every != f.Freshness:
		r.wrong(schedule.Line, "schedule and data_freshness_seconds say different things; leave one of them out")
	}
	f.Freshness = every
}

// buckets reads the bucket lengths of a materialized version's columns.
func (r *reader) buckets(f *File, node *yaml.Node) {
	if node == nil {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.wrong(node.Line, "bucket_overrides is a list of columns such as timestamp: hour")
		return
	}
	f.Buckets = make(map[string]string, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		column, length := node.Content[i], node.Content[i+1]
		if !slices.Contains(materialize.BucketNames, length.Value) {
			r.wrong(length.Line, "a bucket is one of %s, not %q", strings.Join(materialize.BucketNames, ", "), length.Value)
		}
		if _, twice := f.Buckets[column.Value]; twice {
			r.wrong(column.Line, "the column %s has two buckets", column.Value)
		}
		f.Buckets[column.Value] = length.Value
	}
}

func (r *reader) rate(f *File, fields map[string]*yaml.Node) {
	node := fields["rate_limit"]
	if node == nil {
		return
	}
	var err error
	if f.RateLimit, err = registry.ParseRate(node.Value); err != nil {
		r.wrong(node.Line, "rate_limit: %s", err)
	}
}

// types are the names of variable types, including those of PostHog's tool.
var types = map[string]registry.VariableType{
	"String": registry.VariableString, "Number": registry.VariableNumber, "Boolean": registry.VariableBoolean, "List": registry.VariableList,
	"Date": registry.VariableDate, "string": registry.VariableString, "number": registry.VariableNumber, "integer": registry.VariableNumber,
	"boolean": registry.VariableBoolean, "array": registry.VariableList, "list": registry.VariableList, "date": registry.VariableDate,
}

func (r *reader) variables(f *File, node *yaml.Node) {
	if node == nil {
		return
	}
	if node.Kind != yaml.SequenceNode {
		r.wrong(node.Line, "variables is a list")
		return
	}
	seen := make(map[string]bool)
	for _, item := range node.Content {
		fields := r.object(item, "a variable", "name", "type", "default", "values", "is_multi", "value")
		v := Variable{Name: r.text(fields, "name"), Line: item.Line}
		switch {
		case v.Name == "":
			r.wrong(item.Line, "a variable needs a name")
		case registry.CodeName(v.Name) != v.Name:
			r.wrong(fields["name"].Line, "%q is not a valid variable name: it has lower-case letters, digits and _, as in {variables.%s}", v.Name, registry.CodeName(v.Name))
		case seen[v.Name]:
			r.wrong(item.Line, "the variable %s stands here twice", v.Name)
		}
		seen[v.Name] = true
		typ := r.text(fields, "type")
		v.Type = types[typ]
		if v.Type == "" {
			r.wrong(item.Line, "the type of a variable is String, Number, Boolean, List or Date, not %q", typ)
		}
		r.boolean(fields, "is_multi", &v.Multi)
		v.Default = notNull(r.json(fields["default"]))
		v.Values = notNull(r.json(fields["values"]))
		v.Value = r.json(fields["value"])
		if v.Values != nil && (fields["values"].Kind != yaml.SequenceNode || v.Type != registry.VariableList) {
			r.wrong(fields["values"].Line, "values is a list, of a variable of type List")
		}
		f.Variables = append(f.Variables, v)
	}
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// query reads the query, a HogQL text or a node, and checks its syntax.
func (r *reader) query(f *File, fields map[string]*yaml.Node, line int) {
	text, definition := fields["query"], fields["query_definition"]
	if text != nil && text.Kind == yaml.MappingNode && definition == nil {
		text, definition = nil, text
	}
	switch {
	case text != nil && definition != nil:
		r.wrong(definition.Line, "query and query_definition say the same; leave one of them out")
		return
	case text != nil:
		hogql := r.text(fields, "query")
		f.text = textPlace{line: text.Line}
		if text.Style&yaml.LiteralStyle != 0 {
			f.text = textPlace{line: text.Line + 1, block: true}
		}
		f.Query = encode(map[string]string{"kind": new(query.HogQL).Kind(), "query": hogql})
	case definition != nil:
		if f.Query = r.json(definition); f.Query == nil {
			return
		}
		for i := 0; definition.Kind == yaml.MappingNode && i+1 < len(definition.Content); i += 2 {
			if key := definition.Content[i]; key.Value == "variables" {
				r.wrong(key.Line, "variables stand beside the query in a file, with their definitions")
				return
			}
		}
	default:
		r.wrong(line, "query is missing: a HogQL text, or query_definition for an insight")
		return
	}
	r.syntax(f)
}

// syntax parses the query as the server will.
func (r *reader) syntax(f *File) {
	node, err := compiler.Parse(f.Query)
	if err == nil {
		switch kind := compiler.KindOf(node); {
		case kind.HogQL:
			_, err = compiler.Variables(node.Text())
		case !kind.Endpoint:
			r.mistakes = append(r.mistakes, f.QueryMistake(0, "an endpoint cannot run a query of kind "+node.Kind()))
		}
	}
	if err == nil {
		return
	}
	all := compiler.Mistakes(err)
	if len(all) == 0 {
		r.mistakes = append(r.mistakes, f.QueryMistake(0, err.Error()))
	}
	for _, mistake := range all {
		r.mistakes = append(r.mistakes, f.Place(mistake, node))
	}
}

// Place returns a mistake of the query with its position in the file. node may be nil.
func (f *File) Place(mistake *diag.Error, node query.Node) *Error {
	if node == nil || mistake.Span.IsZero() {
		text := mistake.Detail
		if mistake.Attr != "" {
			text = mistake.Attr + ": " + text
		}
		return f.QueryMistake(0, text)
	}
	return f.QueryMistake(diag.Locate(node.Text(), mistake.Span.Start).Line, mistake.Detail)
}
