package eventcode_test

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/eventcode"
)

// hostile are names that would end a literal or a comment, are not identifiers, or are equal as identifiers.
var hostile = []string{
	"", " ", `"`, `'`, "`", "*/", "/*", "//", `"""`, `'''`, `\`, `\"`, `\u0022`, "a\nb", "a\r\nb", "\u2028", "\u2029", "\x00", "\x7f", "${x}", "#{x}", "%s %[1]d", "</script>",
	"class", "type", "func", "1st", "日本", "éa", "😀", "٣", "\u0301x", "a b", "a-b", "aB", "a_b", "A b", "AB", "a b capture", "with", "a with b", "x capture", "xCapture", "X",
	"x2", "option", "__proto__", "constructor", "\xff", strings.Repeat("long ", 40), strings.Repeat("long ", 41),
}

// hostileEvents returns events with these names, whose properties have these names too.
func hostileEvents(names []string) []eventcode.Event {
	var properties []eventcode.Property
	for i, name := range names {
		properties = append(properties, eventcode.Property{Name: name, Type: eventcode.Type(i % 7)})
	}
	var events []eventcode.Event
	for i, name := range names {
		e := eventcode.Event{Name: name}
		if i%3 != 0 {
			e.Properties = properties
		}
		events = append(events, e)
	}
	return eventcode.Sorted(events)
}

// eachOnce returns events with these names; the first has properties with all of them.
func eachOnce(names []string) []eventcode.Event {
	events := make([]eventcode.Event, len(names))
	for i, name := range names {
		events[i].Name = name
		events[0].Properties = append(events[0].Properties, eventcode.Property{Name: name, Type: eventcode.Type(i % 7)})
	}
	return events
}

func write(t *testing.T, language string, events []eventcode.Event) string {
	t.Helper()
	for _, l := range eventcode.Languages {
		if l.Name == language {
			code, err := l.Write(events)
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
	}
	t.Fatalf("there is no %s", language)
	return ""
}

var ordered = []eventcode.Event{
	{Name: "signed up", Properties: []eventcode.Property{{"plan", eventcode.String}}},
	{Name: "ordered", Properties: []eventcode.Property{
		{"items", eventcode.Array}, {"amount", eventcode.Numeric}, {"first order", eventcode.Boolean}, {"at", eventcode.DateTime}, {"address", eventcode.Object}, {"note", eventcode.Any},
	}},
	{Name: "$pageview"},
}

// TestCode compares the code for each language with golden files.
func TestCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		language, file string
		events         []eventcode.Event
	}{
		{"typescript", "events.ts", ordered},
		{"golang", "events.go.txt", ordered},
		{"python", "events.py", ordered},
		{"typescript", "hostile.ts", eachOnce(hostile)},
		{"typescript", "none.ts", nil}, // for tests/clients, which has a compiler
	} {
		got := write(t, tt.language, eventcode.Sorted(tt.events))
		file := "testdata/" + tt.file
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got); UPDATE=1 writes it:\n%s", tt.file, diff)
		}
	}
}

// TestHash: the hash depends on the code, not on the order of the definitions, and changes whenever any of it does.
func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(language string, events ...eventcode.Event) string {
		return eventcode.Hash(write(t, language, eventcode.Sorted(events)))
	}
	seen := map[string]bool{}
	for _, l := range eventcode.Languages {
		whole := hash(l.Name, ordered...)
		if other := hash(l.Name, ordered[2], ordered[0], ordered[1]); other != whole || len(whole) != 32 {
			t.Errorf("%s: %s in another order is %s", l.Name, whole, other)
		}
		seen[whole], seen[hash(l.Name)], seen[hash(l.Name, ordered[1:]...)] = true, true, true
		seen[hash(l.Name, eventcode.Event{Name: "signed up", Properties: []eventcode.Property{{"plan", eventcode.Any}}}, ordered[1], ordered[2])] = true
	}
	if len(seen) != 4*len(eventcode.Languages) {
		t.Errorf("there are %d hashes of different code", len(seen))
	}
}

// sdk replaces posthog-go.
const sdk = `package posthog
type Properties map[string]any
func NewProperties() Properties { return nil }
type Capture struct { DistinctId, Event string; Properties Properties }
`

type importing struct {
	types.Importer

	sdk *types.Package
}

func (i importing) Import(path string) (*types.Package, error) {
	if path == "github.com/posthog/posthog-go" {
		return i.sdk, nil
	}
	return i.Importer.Import(path)
}

// TestGoCompiles type-checks the code, in which all names must be distinct.
func TestGoCompiles(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	stub, err := parser.ParseFile(set, "sdk.go", sdk, 0)
	if err != nil {
		t.Fatal(err)
	}
	from := importing{Importer: importer.ForCompiler(set, "source", nil)}
	if from.sdk, err = new(types.Config).Check("posthog", set, []*ast.File{stub}, nil); err != nil {
		t.Fatal(err)
	}
	for name, events := range map[string][]eventcode.Event{"none": nil, "some": ordered, "hostile": hostileEvents(hostile)} {
		file, err := parser.ParseFile(set, name+".go", write(t, "golang", events), parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := (&types.Config{Importer: from}).Check("typed", set, []*ast.File{file}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pythonCheck runs the code with a module that replaces the SDK, and captures each event with all its properties.
const pythonCheck = `
import json, sys, types
captured = []
posthog = types.ModuleType("posthog")
posthog.capture = lambda **given: captured.append(given) or "id"
sys.modules["posthog"] = posthog
code, events = json.load(sys.stdin)
typed = {}
exec(compile(code, "typed.py", "exec"), typed)
for event in events:
    assert typed["capture"](event, distinct_id="ann", properties={"a": 1}) == "id"
assert captured == [{"event": e, "distinct_id": "ann", "properties": {"a": 1}} for e in events]
kinds = [v for k, v in typed.items() if k.endswith("Properties")]
print(json.dumps([len(kinds), sorted({name for kind in kinds for name in kind.__annotations__})]))
`

// TestPythonRuns runs the code.
func TestPythonRuns(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs python3")
		}
		t.Log("there is no python3")
		return
	}
	valid := hostile[:len(hostile)-3] // JSON can't contain invalid UTF-8
	for name, events := range map[string][]eventcode.Event{"none": nil, "one": ordered[:1], "some": ordered, "hostile": hostileEvents(valid)} {
		all, withProperties, properties := []string{}, 0, map[string]bool{}
		for _, e := range events {
			all = append(all, e.Name)
			if len(e.Properties) > 0 {
				withProperties++
			}
			for _, p := range e.Properties {
				properties[p.Name] = true
			}
		}
		input, err := json.Marshal([]any{write(t, "python", events), all})
		if err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "python3", "-c", pythonCheck)
		run.Stdin = strings.NewReader(string(input))
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		var got struct {
			kinds int
			names []string
		}
		if err := json.Unmarshal(out, &[]any{&got.kinds, &got.names}); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		found := map[string]bool{}
		for _, name := range got.names {
			found[name] = true
		}
		if diff := cmp.Diff(properties, found); got.kinds != withProperties || diff != "" {
			t.Errorf("%s: %d types of properties, want %d; names (-want +got):\n%s", name, got.kinds, withProperties, diff)
		}
	}
}

// FuzzNames: whatever the names, the code has as many lines as with plain names, names appear in ASCII, and reading them back gives all names; the Go
// parser accepts the code and finds no identifier twice.
func FuzzNames(f *testing.F) {
	for i := 0; i+1 < len(hostile); i++ {
		f.Add(hostile[i], hostile[i+1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		first, second = strings.ToValidUTF8(first, "?"), strings.ToValidUTF8(second, "?")
		if first == second || len(first)+len(second) > 1000 {
			return
		}
		events := func(a, b string) []eventcode.Event {
			p := []eventcode.Property{{a, eventcode.String}, {b, eventcode.DateTime}}
			return []eventcode.Event{{a, p}, {b, p}, {"c", nil}}
		}
		given, plain := events(first, second), events("a", "b")
		for _, l := range eventcode.Languages {
			code := write(t, l.Name, given)
			if got, want := strings.Count(code, "\n"), strings.Count(write(t, l.Name, plain), "\n"); got != want || strings.ContainsAny(code, "\r\x00\u2028\u2029") {
				t.Fatalf("%s has %d lines, want %d:\n%s", l.Name, got, want, code)
			}
		}
		for line := range strings.SplitSeq(write(t, "typescript", given), "\n") {
			if !strings.HasPrefix(line, `    "`) && !strings.HasPrefix(line, `        "`) {
				continue
			}
			var name string
			if err := json.NewDecoder(strings.NewReader(line)).Decode(&name); err != nil || name != first && name != second && name != "c" {
				t.Errorf("TypeScript has the name %q: %v: %s", name, err, line)
			}
		}
		file, err := parser.ParseFile(token.NewFileSet(), "typed.go", write(t, "golang", given), parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		seen, literals := map[string]bool{}, map[string]bool{}
		for _, d := range file.Decls {
			name := ""
			switch d := d.(type) {
			case *ast.FuncDecl:
				name = d.Name.Name
			case *ast.GenDecl:
				if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
					name = spec.Name.Name
				}
			}
			if name != "" && seen[name] {
				t.Errorf("Go has %s twice", name)
			}
			seen[name] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok {
				literals[text.Value] = true
			}
			return true
		})
		if len(literals) > 7 { // three names, and imports
			t.Errorf("Go has the literals %v", literals)
		}
	})
}
