package people

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestElements(t *testing.T) {
	tests := []struct {
		name, chain string
		want        []element
	}{
		{"none", "", []element{}},
		{
			"two", `a.big.link:attr__class="big link"href="/x;y"nth-child="2"nth-of-type="1"text="say \"hi\"; go";div:attr_id="box"`,
			[]element{
				{
					TagName: new("a"), AttrClass: []string{"big", "link"}, Href: new("/x;y"), NthChild: new(2), NthOfType: new(1), Text: new(`say "hi"; go`),
					Attributes: map[string]string{"attr__class": "big link"},
				},
				{TagName: new("div"), AttrID: new("box"), Attributes: map[string]string{}, Order: 1},
			},
		},
		{"a tag alone", "body", []element{{TagName: new("body"), Attributes: map[string]string{}}}},
		{"a number that is none", `p:nth-child="x"`, []element{{TagName: new("p"), Attributes: map[string]string{}}}},
		{"a value without its end", `p:text="x`, []element{{TagName: new("p"), Text: new("x"), Attributes: map[string]string{}}}},
		{"a key without a value", `p:odd;q`, []element{
			{TagName: new("p"), Attributes: map[string]string{"odd": ""}}, {TagName: new("q"), Attributes: map[string]string{}, Order: 1},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, elements(tt.chain)); diff != "" {
				t.Errorf("elements(%q) (-want +got):\n%s", tt.chain, diff)
			}
		})
	}
}

func FuzzElements(f *testing.F) {
	f.Add(`a.b.c:href="/x"nth-child="1"text="say \"hi\"";div`)
	f.Add(`;;:=";a`)
	f.Fuzz(func(t *testing.T, chain string) {
		for i, e := range elements(chain) {
			if e.Order != i {
				t.Fatalf("element %d has the order %d", i, e.Order)
			}
		}
	})
}

// TestElementsOfStrangers takes chains apart that are made to take long, or much room.
func TestElementsOfStrangers(t *testing.T) {
	if got := len(elements(strings.Repeat(";", maxChain))); got != maxElements {
		t.Errorf("a chain of empty elements has %d", got)
	}
	if got := elements(strings.Repeat(";", maxChain+1)); len(got) != 0 {
		t.Errorf("a chain that is too long has %d", len(got))
	}
	if got := len(elements(strings.Repeat(":a;", maxChain/3))); got != maxElements {
		t.Errorf("a chain of attributes without values has %d", got)
	}
}
