package filter_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// chain is what the engine extracts from elements_chain: a link in a box in a section.
var chain = []string{
	`a.btn.small:attr__data-attr="save"attr_id="go"href="/a;b"nth-child="2"text="say \"hi\""`, `div.box.md:flex:nth-child="1"`, `section`,
	`div.outer`, `body:attr__style="display: flex"`,
}

// elementFilter returns the condition of a filter on elements.
func elementFilter(key, operator string, value any) (hogql.Expr, error) {
	return filter.Condition(filter.Property{Type: "element", Key: key, Operator: operator, Value: value}, filter.Subject{Table: "e"})
}

func TestElementFilters(t *testing.T) {
	t.Parallel()
	const elements = `extractAll(e.elements_chain, '(?:[^;"]|"(?:\\\\.|[^"\\\\])*")+')`
	a, div := `match(element, '^a(?:[.:]|$)')`, `match(element, '^div(?:[.:]|$)')`
	tests := []struct {
		name, key, operator string
		value               any
		want                string
	}{
		{"a name", "tag_name", "exact", "A", "arrayExists(element -> " + a + ", " + elements + ")"},
		{
			"none of two names", "tag_name", "is_not",
			[]any{"a", "div"},
			"NOT (arrayExists(element -> " + a + ", " + elements + ") OR arrayExists(element -> " + div + ", " + elements + "))",
		},
		{
			"a child", "selector", "exact", "div > a",
			"has(arrayMap((element, inside) -> " + div + " AND inside > 0, " + elements + ", arrayPopBack(arrayPushFront(arrayMap(element -> " + a + ", " + elements + "), 0))), 1)",
		},
		{
			"somewhere inside", "selector", "", "div *",
			"has(arrayMap((element, inside) -> " + div + " AND inside > 0, " + elements + ", arrayPopBack(arrayPushFront(arrayCumSum(arrayMap(element -> true, " + elements + ")), 0))), 1)",
		},
		{"a text", "text", "icontains", "buy", "arrayExists(text -> toString(text) ILIKE '%buy%', e.elements_chain_texts)"},
		{"without a text", "text", "not_regex", []any{"^b", "c"}, "NOT arrayExists(text -> toString(text) =~ '^b' OR toString(text) =~ 'c', e.elements_chain_texts)"},
		{"no text", "text", "is_not_set", nil, "NOT notEmpty(e.elements_chain_texts)"},
		{"a link", "href", "exact", "/a", "toString(e.elements_chain_href) = '/a'"},
		{"any link", "href", "is_set", nil, "notEmpty(e.elements_chain_href)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := elementFilter(tt.key, tt.operator, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, hogql.PrintExpr(got)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectors matches selectors of one element against a chain; the engine's regular expressions have the syntax of Go's.
func TestSelectors(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"a": "0", "div": "1 3", "A": "0", "*": "0 1 2 3 4", ".btn": "0", ".bt": "", ".box": "1", "div.box": "1", ".small.btn": "0", `.md\:flex`: "1",
		"#go": "0", "#g": "", "a:nth-child(2)": "0", ":nth-child(1)": "1", "[href]": "0", "[href='/a;b']": "0", "[href=\"/a\"]": "", "[href^='/a']": "0",
		"[href$=';b']": "0", "[href*=';']": "0", "[data-attr=save]": "0", "[id=go]": "0", `[text='say "hi"']`: "0", `[text="say \"hi\""]`: "0", `[text$='"']`: "0",
		"body[style*='flex']": "4", "[style]": "4", "[missing]": "",
	} {
		e, err := elementFilter("selector", "exact", selector)
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var found []string
		for i, element := range chain {
			if matchesAll(e, element) {
				found = append(found, string(rune('0'+i)))
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s finds %q, want %q", selector, got, want)
		}
	}
}

// matchesAll reports whether an element passes the tests of a condition.
func matchesAll(e hogql.Expr, element string) bool {
	all := true
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if call, ok := e.(*hogql.Call); ok && call.Name == "match" {
			pattern, _ := call.Args[1].(*hogql.Const)
			text, _ := pattern.Value.(string)
			all = all && regexp.MustCompile(text).MatchString(element)
		}
		return true
	})
	return all
}

func TestElementMistakes(t *testing.T) {
	t.Parallel()
	invalid := func(why string) string { return "The selector of a property filter is invalid: " + why }
	for _, tt := range []struct{ key, operator, value, want string }{
		{"selector", "icontains", "a", "The property filter on 'selector' has operator 'icontains', which is not supported with its value"},
		{"tag_name", "not_regex", "a", "The property filter on 'tag_name' has operator 'not_regex', which is not supported with its value"},
		{"text", "between", "a", "The property filter on 'text' has operator 'between', which is not supported with its value"},
		{"class", "exact", "a", "Filters of type 'element' look at tag_name, text, href or selector, not at 'class'"},
		{"selector", "exact", " ", invalid("an element is missing")},
		{"selector", "exact", "a >", invalid("an element is missing")},
		{"selector", "exact", "> a", invalid("an element is missing")},
		{"selector", "exact", "a + b", invalid(`"+" is not supported there`)},
		{"selector", "exact", "a, b", invalid(`"," is not supported there`)},
		{"selector", "exact", "a:hover", invalid(`":" is not supported there`)},
		{"selector", "exact", "a:nth-child(2n)", invalid("the place of a child is not a number")},
		{"selector", "exact", "a.", invalid("the name of a class is missing")},
		{"selector", "exact", "[a=]", invalid("the name of a value is missing")},
		{"selector", "exact", "[a~=b]", invalid("an attribute is compared with =, ^=, $= or *=")},
		{"selector", "exact", "[a=b", invalid("a ] is missing")},
		{"selector", "exact", "[a='b]", invalid("a closing quote is missing")},
		{"selector", "exact", `a\`, invalid(`it ends with \`)},
		{"selector", "exact", strings.Repeat("a ", 33), invalid("it names more than 32 elements")},
		{"selector", "exact", strings.Repeat("a", 2049), invalid("it has more than 2048 bytes")},
	} {
		_, err := elementFilter(tt.key, tt.operator, tt.value)
		if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
			t.Errorf("%s %s %s (-want +got):\n%s", tt.key, tt.operator, tt.value, diff)
		}
	}
	if _, err := filter.Condition(filter.Property{Type: "element", Key: "text", Value: "a"}, filter.Subject{People: true}); errText(err) != "People cannot be filtered by properties of type 'element': use person or hogql" {
		t.Errorf("over people: %v", err)
	}
}

// FuzzSelector: everything accepted as a selector compiles, and its condition is HogQL.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"div > a.btn", "#go [href^='/a\\'']", `.md\:flex * :nth-child(3)`, "[a*=\"é\"]", "[\xff]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, selector string) {
		e, err := elementFilter("selector", "exact", selector)
		if err != nil {
			return
		}
		matchesAll(e, chain[0])
		if _, err := hogql.ParseExpr(hogql.PrintExpr(e)); err != nil {
			t.Errorf("%q: %v", selector, err)
		}
	})
}
