package elements_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/elements"
)

func TestOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, chain, want string }{
		{"nothing", "", `[]`},
		{
			"a link in a box", `a.btn.big:attr_id="go"href="/movie"nth-child="1"nth-of-type="2"text="Pay; now";div:nth-child="0"`,
			`[{"text":"Pay; now","tag_name":"a","attr_class":["btn","big"],"href":"/movie","attr_id":"go","nth_child":1,"nth_of_type":2,"attributes":{},"order":0},
			{"text":null,"tag_name":"div","attr_class":null,"href":null,"attr_id":null,"nth_child":0,"nth_of_type":null,"attributes":{},"order":1}]`,
		},
		{
			"other attributes, and a class with a colon", `button.sm:flex.x:attr__data-a="b\"c"text="d"`,
			`[{"text":"d","tag_name":"button","attr_class":["sm:flex","x"],"href":null,"attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{"attr__data-a":"b\\\"c"},"order":0}]`,
		},
		{
			"an invalid number, and half an attribute", `p:nth-child="x"text="no end`,
			`[{"text":null,"tag_name":"p","attr_class":null,"href":null,"attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":0}]`,
		},
		{
			"a quote and a semicolon in a text", `a:href="/x;y"text="say \"hi\"; go";body`,
			`[{"text":"say \\\"hi\\\"; go","tag_name":"a","attr_class":null,"href":"/x;y","attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":0},
			{"text":null,"tag_name":"body","attr_class":null,"href":null,"attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":1}]`,
		},
		{
			"a name alone", `span`,
			`[{"text":null,"tag_name":"span","attr_class":null,"href":null,"attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":0}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(elements.Of(tt.chain))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.NewReplacer("\n", "", "\t", "").Replace(tt.want)
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("elements (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStrangers parses chains that are designed to take much time or space.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, chain string
		want        int
	}{
		{"many elements", strings.Repeat("a;", 32<<10), 500},
		{"nothing but semicolons", strings.Repeat(";", 64<<10), 0},
		{"too long", strings.Repeat("a;", 32<<10) + "a", 0},
		{"many attributes without values", strings.Repeat(":a", 32<<10), 1},
		{"many halves of attributes", strings.Repeat(`a="`, 20<<10), 1},
	} {
		if got := len(elements.Of(tt.chain)); got != tt.want {
			t.Errorf("%s: %d elements, want %d", tt.name, got, tt.want)
		}
	}
}

// FuzzOf checks that any text parses as a chain of elements, which are numbered and no longer than the text.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{`a.b:c="d"`, `a:b="c\"d";e`, `:="`, `"`, `\`, "a b;;c", `a:b:c="x"`, `p:text="é"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, chain string) {
		if !utf8.ValidString(chain) {
			return
		}
		size := 0
		for i, e := range elements.Of(chain) {
			if e.Order != i {
				t.Errorf("element %d has the number %d", i, e.Order)
			}
			size++
			for _, text := range []*string{e.Text, e.TagName, e.Href, e.ID} {
				if text != nil {
					size += len(*text)
				}
			}
		}
		if size > 2*len(chain) {
			t.Errorf("%q has elements of %d bytes", chain, size)
		}
	})
}
