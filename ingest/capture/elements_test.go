package capture_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

func TestElements(t *testing.T) {
	long := strings.Repeat("x", 3000)
	tests := []struct{ name, properties, want, rest string }{
		{"a chain", `{"$elements_chain":"a:text=\"x\\\"y\"","b":1}`, `a:text="x\"y"`, `{"b":1}`},
		{"a chain before a list", `{"$elements":[{"tag_name":"p"}],"$elements_chain":"a"}`, `a`, `{}`},
		{"an empty chain, and a list", `{"$elements_chain":"","$elements":[{"tag_name":"p"}]}`, `p:nth-child="0"nth-of-type="0"`, `{}`},
		{"an empty list", `{"$elements":[]}`, "", `{}`},
		{"no list", `{"$elements":"x"}`, "", `{}`},
		{
			"all of it",
			`{"x":1,"$elements":[{"tag_name":"a","$el_text":"Say \"hi\"","attr__href":"/x?a=\"","attr__id":"go","attr__class":"z  b\" a","nth_child":2,"nth_of_type":"1","attr__data-x":5,"attr__Alt":true,"other":1},{"tag_name":"body","attr__class":["m","k"],"attr__none":null},7]}`,
			`a.a.b.z:attr__Alt="true"attr__class="z  b\" a"attr__data-x="5"attr__href="/x?a=\""attr__id="go"attr_id="go"href="/x?a=\""nth-child="2"nth-of-type="1"text="Say \"hi\"";` +
				`body.k.m:attr__class="m,k"nth-child="0"nth-of-type="0"`,
			`{"x":1}`,
		},
		{"no tag", `{"$elements":[{}]}`, `:nth-child="0"nth-of-type="0"`, `{}`},
		{
			"cut", `{"$elements":[{"$el_text":"` + long + `","attr__href":"` + long + `"}]}`,
			`:attr__href="` + long + `"href="` + long[:2048] + `"nth-child="0"nth-of-type="0"text="` + long[:400] + `"`, `{}`,
		},
		{
			"order of the keys", `{"$elements":[{"attr__b":"","attr__a_":"","attr__a-":"","attr__a":"","attr__A":"","attr__a1":"","attr__aa":""}]}`,
			`:attr__a=""attr__A=""attr__a_=""attr__a-=""attr__a1=""attr__aa=""attr__b=""nth-child="0"nth-of-type="0"`, `{}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			batch, err := capture.Decode(&capture.Request{Body: []byte(one(`,"properties":` + tt.properties)), Now: now})
			if err != nil {
				t.Fatal(err)
			}
			r, err := new(record.Parser).Parse(batch.Lines)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.want, tt.rest}, []string{r.Elements, r.Properties.JSON()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzElements renders any list.
func FuzzElements(f *testing.F) {
	f.Add(`[{"tag_name":"a","attr__class":["x",1],"nth_child":{"a":1}},[],null,{"attr__class":7,"$el_text":[null,{"a":[]}]}]`)
	f.Fuzz(func(t *testing.T, list string) {
		if !json.Valid([]byte(list)) {
			return
		}
		batch, err := capture.Decode(&capture.Request{Body: []byte(one(`,"properties":{"$elements":` + list + "}")), Now: now})
		if err != nil {
			return
		}
		if _, err := new(record.Parser).Parse(batch.Lines); err != nil {
			t.Fatalf("%s: %v", batch.Lines, err)
		}
	})
}
