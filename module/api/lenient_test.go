package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manyKinds are fields of all types used in writes.
type manyKinds struct {
	Bool    bool
	MayBool *bool
	Int     int64
	MayInt  *int
	Float   float64
	Text    string
	MayText *string
	List    []string
	Numbers []int
	Object  map[string]int
	Raw     json.RawMessage
}

// readKinds reads all fields, and describes those that were given, or returns the first mistake.
func readKinds(all map[string]json.RawMessage) string {
	f := &Fields{All: all}
	var out []string
	note := func(name string, given bool, value any) {
		if given {
			out = append(out, fmt.Sprintf("%s=%v", name, value))
		}
	}
	one := manyKinds{}
	b, mb, n, mn := Change[bool](f, "bool"), Change[*bool](f, "may_bool"), Change[int64](f, "int"), Change[*int](f, "may_int")
	note("bool", b.Given, b.Value)
	note("may_bool", mb.Given, show(mb.Value))
	note("int", n.Given, n.Value)
	note("may_int", mn.Given, show(mn.Value))
	note("float", f.Read("float", &one.Float), one.Float)
	text, mayText := Change[string](f, "text"), Change[*string](f, "may_text")
	note("text", text.Given, text.Value)
	note("may_text", mayText.Given, show(mayText.Value))
	list, numbers := Change[[]string](f, "list"), Change[[]int](f, "numbers")
	note("list", list.Given, strings.Join(list.Value, "|"))
	note("numbers", numbers.Given, numbers.Value)
	note("object", f.Read("object", &one.Object), one.Object)
	raw, given := f.Take("raw", true)
	note("raw", given, string(raw))
	if f.Err != nil {
		mistake := ErrorOf(f.Err)
		return fmt.Sprintf("%v %s: %s", mistake.Attr, mistake.Code, mistake.Detail)
	}
	return strings.Join(out, " ")
}

func show[T any](p *T) any {
	if p == nil {
		return "null"
	}
	return *p
}

func TestLenientJSON(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"as they are", `{"bool": true, "int": -7, "float": 0.5, "text": "a", "list": ["b"], "object": {"c": 1}, "raw": [1]}`, "bool=true int=-7 float=0.5 text=a list=b object=map[c:1] raw=[1]"},
		{"words for booleans", `{"bool": "True", "may_bool": "OFF"}`, "bool=true may_bool=false"},
		{"numbers for booleans", `{"bool": 1, "may_bool": 0.0}`, "bool=true may_bool=false"},
		{"another number", `{"bool": 2}`, "bool invalid_input: Must be a valid boolean."},
		{"another word", `{"bool": "maybe"}`, "bool invalid_input: Must be a valid boolean."},
		{"a word with a space", `{"bool": " true"}`, "bool invalid_input: Must be a valid boolean."},
		{"a list for a boolean", `{"may_bool": [true]}`, "may_bool invalid_input: Must be a valid boolean."},
		{"texts for numbers", `{"int": " 7 ", "may_int": "-3.00", "float": "1e3"}`, "int=7 may_int=-3 float=1000"},
		{"a text of a fraction", `{"int": "7.5"}`, "int invalid_input: A valid integer is required."},
		{"a text of no number", `{"int": "7e1"}`, "int invalid_input: A valid integer is required."},
		{"a text of too large a number", `{"int": "9223372036854775808"}`, "int invalid_input: A valid integer is required."},
		{"a text that is too long for a number", `{"int": "` + strings.Repeat("1", 1001) + `"}`, "int max_string_length: String value too large."},
		{"no number", `{"float": "NaN"}`, "float invalid_input: A valid number is required."},
		{"an empty text for a number", `{"int": ""}`, "int invalid_input: A valid integer is required."},
		{"numbers for texts", `{"text": 5, "may_text": -1.50}`, "text=5 may_text=-1.50"},
		{"a boolean for a text", `{"text": true}`, "text invalid_input: Not a valid string."},
		{"null", `{"may_bool": null, "may_int": null, "may_text": null, "raw": null}`, "may_bool=null may_int=null may_text=null raw=null"},
		{"null for a boolean", `{"bool": null}`, "bool null: This field may not be null."},
		{"null for a text", `{"text": null}`, "text null: This field may not be null."},
		{"a text for a list", `{"list": "b"}`, "list invalid_input: Not a valid list."},
		{"items of lists", `{"list": ["a", 5], "numbers": ["5", 1e1]}`, "list=a|5 numbers=[5 10]"},
		{"an item that is not a number", `{"numbers": [1, "x"]}`, "numbers invalid_input: A valid integer is required."},
		{"a text of JSON for an object", `{"object": "{}"}`, "object invalid_input: Not a valid object."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all, err := DecodeObject([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, readKinds(all)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		name string
		form url.Values
		want string
	}{
		{"nothing", nil, ""},
		{
			"one of each",
			url.Values{"bool": {"yes"}, "may_bool": {"0"}, "int": {"7"}, "float": {".5"}, "text": {"a b&c"}, "may_text": {""}, "list": {"a", "b"}, "object": {`{"c": 1}`}, "raw": {`[1, "x"]`}},
			`bool=true may_bool=false int=7 float=0.5 text=a b&c may_text= list=a|b object=map[c:1] raw=[1, "x"]`,
		},
		{"a list of one", url.Values{"list": {"a"}, "numbers": {"5"}}, "list=a numbers=[5]"},
		{"a list as JSON", url.Values{"list": {`["a", "b"]`}, "numbers": {"[5]"}}, "list=a|b numbers=[5]"},
		{"the last of several", url.Values{"text": {"a", "b"}, "bool": {"maybe", "true"}, "int": {"x", "2"}}, "bool=true int=2 text=b"},
		{"texts that are JSON", url.Values{"text": {`{"a":1}`}, "may_text": {"[1]"}, "raw": {"x"}}, `text={"a":1} may_text=[1] raw="x"`},
		{"empty ones", url.Values{"bool": {""}, "int": {""}, "float": {""}, "may_bool": {""}, "may_int": {""}}, "may_bool=null may_int=null"},
		{"no null", url.Values{"text": {"null"}, "may_bool": {"NULL"}}, "may_bool=null text=null"},
		{"no boolean", url.Values{"bool": {"{}"}}, "bool invalid_input: Must be a valid boolean."},
		{"no object", url.Values{"object": {"c"}}, "object invalid_input: Not a valid object."},
		{"no list of numbers", url.Values{"numbers": {"a"}}, "numbers invalid_input: A valid integer is required."},
	}
	for _, tt := range tests {
		var parts [][2]string
		for name, texts := range tt.form {
			for _, text := range texts {
				parts = append(parts, [2]string{name, text})
			}
		}
		typ, body := formOf(t, parts, nil)
		for contentType, body := range map[string]string{encodedType: tt.form.Encode(), encodedType + "; charset=UTF-8": tt.form.Encode(), typ: string(body)} {
			t.Run(tt.name, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
				r.Header.Set("Content-Type", contentType)
				all, err := (&Input{Request: r}).ReadFields(slices.Collect(maps.Keys(tt.form))...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, readKinds(all)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", contentType, diff)
				}
			})
		}
	}
}

// TestFormLimits: forms are subject to the limits and checks of any other body.
func TestFormLimits(t *testing.T) {
	many := strings.Repeat("a=&", maxFormFields)
	tests := []struct{ name, typ, coding, body, want string }{
		{"as many fields as may be", encodedType, "", many, ""},
		{"too many", encodedType, "", many + "a=", "400 parse_error: Form parse error - the form has too many fields."},
		{"as large as may be", encodedType, "", "a=" + strings.Repeat("x", maxBody-2), ""},
		{"too large", encodedType, "", "a=" + strings.Repeat("x", maxBody-1), "413 request_too_large: The request body is larger than 20971520 bytes."},
		{"compressed", encodedType, "gzip", "a=b", `415 unsupported_media_type: Unsupported content encoding "gzip" in request. Send the body uncompressed.`},
		{"compressed parts", multipartType + "; boundary=x", "br", "--x--", `415 unsupported_media_type: Unsupported content encoding "br" in request. Send the body uncompressed.`},
		{"a broken escape", encodedType, "", "a=%zz", `400 parse_error: Form parse error - invalid URL escape "%zz"`},
		{"a field that is not known", encodedType, "", "b=1", "400 invalid_input: Extra inputs are not permitted"},
		{"plain text", "text/plain", "", "a=b", `415 unsupported_media_type: Unsupported media type "text/plain" in request.`},
		{"XML", "application/xml", "", "<a/>", `415 unsupported_media_type: Unsupported media type "application/xml" in request.`},
		{"no type", "", "", "a=b", "400 parse_error: JSON parse error - invalid character 'a' looking for beginning of value: line 1 column 1 (char 0)"},
	}
	for _, tt := range tests {
		for _, chunked := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
				if chunked {
					r.ContentLength = -1
				}
				r.Header.Set("Content-Type", tt.typ)
				if tt.coding != "" {
					r.Header.Set("Content-Encoding", tt.coding)
				}
				got := ""
				if _, err := (&Input{Request: r}).ReadFields("a"); err != nil {
					got = ErrorOf(err).Error()
				}
				if got != tt.want {
					t.Errorf("refusal %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// TestFormsAreNoQueries: bodies that are read as JSON only, such as queries and runs, must not be forms.
func TestFormsAreNoQueries(t *testing.T) {
	for _, typ := range []string{encodedType, multipartType + "; boundary=x"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=b"))
		r.Header.Set("Content-Type", typ)
		if _, err := ReadBody(r); err == nil || ErrorOf(err).Status != http.StatusUnsupportedMediaType {
			t.Errorf("ReadBody of %s: %v", typ, err)
		}
	}
}

// TestJSONIsNoForm: no value of a JSON body is mistaken for that of a form, whatever whitespace precedes it.
func TestJSONIsNoForm(t *testing.T) {
	all, err := DecodeObject([]byte("{\"a\":\t\"5\",\"b\":\n\t[\"true\"] ,\n\"c\"\t:\n{\"d\":\t\"x\"}}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range all {
		if texts, ok := formTexts(raw); ok {
			t.Errorf("%s is a field of a form: %q", name, texts)
		}
	}
}

// FuzzForm: a form of the type application/x-www-form-urlencoded is refused as the caller's mistake, or its fields are read as any type, and as the texts
// that were sent.
func FuzzForm(f *testing.F) {
	f.Add("name=x&tags=a&tags=b&pinned=true")
	f.Add("bool=%74&int=&float=1e999&list=%5B1%5D&object={&raw=\"&text=%00%ff&=&&a;b=c")
	f.Add("numbers=[1,2&numbers=3&may_int=0x1&may_bool=null&may_text=%5B%5D")
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", encodedType)
		all, err := (&Input{Request: r}).ReadObject()
		if err != nil {
			if status := ErrorOf(err).Status; status != http.StatusBadRequest {
				t.Fatalf("%d: %v", status, err)
			}
			return
		}
		for name, raw := range all {
			texts, ok := formTexts(raw)
			if !ok || len(texts) == 0 || !json.Valid(raw) {
				t.Fatalf("%q is %q", name, raw)
			}
			f := Fields{All: all}
			if text := Change[string](&f, name); f.Err != nil || text.Value != texts[len(texts)-1] {
				t.Fatalf("%q is the text %q of %q: %v", name, text.Value, texts, f.Err)
			}
			if list := Change[[]string](&f, name); f.Err == nil && len(texts) > 1 && !slices.Equal(list.Value, texts) {
				t.Fatalf("%q is the list %q of %q", name, list.Value, texts)
			}
		}
		readKinds(all)
	})
}

// FuzzDecode: a JSON value is decoded leniently or is the caller's mistake; what encoding/json decodes gives the same result.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"bool":"t","int":"1.0","float":"x","text":5,"list":[1],"object":{"a":"b"}}`, `{"int":1e3,"may_int":-0.0,"may_bool":1e0,"may_text":1E5}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := DecodeObject(body)
		if err != nil {
			return
		}
		readKinds(all)
		for _, raw := range all {
			var n int64
			if json.Unmarshal(raw, &n) == nil && !IsNull(raw) {
				var again int64
				if !Decode(raw, &again) || again != n {
					t.Fatalf("%s is %d, want %d", raw, again, n)
				}
			}
			var text string
			if Decode(raw, &text) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`{`)) {
				t.Fatalf("%s is the text %q", raw, text)
			}
		}
	})
}
