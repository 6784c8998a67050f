package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// formOf returns a request with a form of texts and files, in this order.
func formOf(tb testing.TB, texts, files [][2]string) (contentType string, body []byte) {
	tb.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, one := range texts {
		if err := w.WriteField(one[0], one[1]); err != nil {
			tb.Fatal(err)
		}
	}
	for _, one := range files {
		part, err := w.CreateFormFile(one[0], "a.csv")
		if err == nil {
			_, err = part.Write([]byte(one[1]))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return w.FormDataContentType(), out.Bytes()
}

// before is what precedes a text in a body.
func before(body []byte, text string) []byte {
	head, _, _ := bytes.Cut(body, []byte(text))
	return head
}

func readForm(contentType string, body []byte) (Form, bool, error) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return (&Input{Request: r}).ReadForm("csv")
}

func TestReadForm(t *testing.T) {
	typ, body := formOf(t, [][2]string{{"name", "a \"quoted\" \n name"}, {"is_static", "true"}}, [][2]string{{"csv", "u1\r\nu2"}, {"other", "x"}})
	many := make([][2]string, maxFormFields+1)
	for i := range many {
		many[i] = [2]string{fmt.Sprint("f", i), ""}
	}
	manyType, manyBody := formOf(t, many, nil)
	largeType, largeBody := formOf(t, nil, [][2]string{{"csv", strings.Repeat("u", maxBody)}})
	tests := []struct {
		name, typ string
		body      []byte
		isForm    bool
		want      Form
		mistake   string
	}{
		{
			"texts and files", typ, body, true, Form{
				Fields: map[string]json.RawMessage{"name": json.RawMessage("\t" + `"a \"quoted\" \n name"`), "is_static": json.RawMessage("\t" + `"true"`), "other": json.RawMessage("\t" + `"x"`)},
				Files:  map[string][]byte{"csv": []byte("u1\r\nu2")},
			}, "",
		},
		{"JSON", "application/json", []byte(`{}`), false, Form{}, ""},
		{"no type", ";;", body, false, Form{}, ""},
		{"no boundary", "multipart/form-data", body, true, Form{}, "400 parse_error: Multipart form parse error - no multipart boundary param in Content-Type"},
		{"another boundary", "multipart/form-data; boundary=x", body, true, Form{}, "400 parse_error: Multipart form parse error - multipart: NextPart: EOF"},
		{"cut off in a part", typ, before(body, "\r\nu2"), true, Form{}, "400 parse_error: Multipart form parse error - unexpected EOF"},
		{"cut off at the end", typ, body[:bytes.LastIndex(body, []byte("--"))], true, Form{}, "400 parse_error: Multipart form parse error - multipart: NextPart: EOF"},
		{"too many fields", manyType, manyBody, true, Form{}, "400 parse_error: Multipart form parse error - the form has too many fields."},
		{"too large", largeType, largeBody, true, Form{}, "413 request_too_large: The request body is larger than 20971520 bytes."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, isForm, err := readForm(tt.typ, tt.body)
			mistake := ""
			if err != nil {
				mistake = ErrorOf(err).Error()
			}
			if mistake != tt.mistake || isForm != tt.isForm {
				t.Fatalf("form %v, mistake %q, want %v, %q", isForm, mistake, tt.isForm, tt.mistake)
			}
			if err != nil || !isForm {
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("form (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFormThatDoesNotArrive: a form whose rest does not arrive, or may not, is refused like any other body.
func TestFormThatDoesNotArrive(t *testing.T) {
	typ, body := formOf(t, [][2]string{{"name", "Beta"}}, [][2]string{{"csv", "u1\r\nu2"}})
	for failure, want := range map[error]int{
		os.ErrDeadlineExceeded:         http.StatusRequestTimeout,
		&http.MaxBytesError{Limit: 10}: http.StatusRequestEntityTooLarge,
		memory.ErrNone:                 http.StatusServiceUnavailable,
		io.ErrUnexpectedEOF:            http.StatusBadRequest,
	} {
		for name, part := range map[string][]byte{"between parts": before(body, "csv"), "in a part": before(body, "\r\nu2")} {
			r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(bytes.NewReader(part), iotest.ErrReader(failure)))
			r.Header.Set("Content-Type", typ)
			if _, _, err := (&Input{Request: r}).ReadForm("csv"); err == nil || ErrorOf(err).Status != want {
				t.Errorf("%s, %v: the error is %v, want %d", name, failure, err, want)
			}
		}
	}
}

func TestFormOfAsManyFieldsAsMayBe(t *testing.T) {
	fields := make([][2]string, maxFormFields)
	for i := range fields {
		fields[i] = [2]string{fmt.Sprint("f", i), ""}
	}
	typ, body := formOf(t, fields, nil)
	if form, isForm, err := readForm(typ, body); err != nil || !isForm || len(form.Fields) != maxFormFields {
		t.Errorf("a form of %d fields has %d, %v", maxFormFields, len(form.Fields), err)
	}
}

// FuzzReadForm: a body is refused as the caller's mistake, or yields texts that are JSON and only the files asked for.
func FuzzReadForm(f *testing.F) {
	typ, body := formOf(f, [][2]string{{"name", "Beta"}, {"", ""}, {"name", "\xff\x00"}}, [][2]string{{"csv", "u1\nu2"}})
	f.Add(typ, body)
	f.Add(typ, body[:len(body)-7])
	f.Add("multipart/form-data", body)
	f.Add("multipart/form-data; boundary=\"\"", body)
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=\"csv\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=3\r\n--x--"))
	f.Add("application/json", []byte(`{}`))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		got, isForm, err := readForm(contentType, body)
		switch {
		case err != nil:
			if status := ErrorOf(err).Status; !isForm || status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
				t.Fatalf("form %v, %d: %v", isForm, status, err)
			}
			return
		case !isForm && len(got.Fields)+len(got.Files) > 0:
			t.Fatalf("no form, and yet %v", got)
		case len(got.Fields)+len(got.Files) > maxFormFields:
			t.Fatalf("%d fields", len(got.Fields)+len(got.Files))
		}
		for name, value := range got.Fields {
			texts, ok := formTexts(value)
			if name == "csv" || !ok || len(texts) == 0 || !json.Valid(value) {
				t.Fatalf("%q is %q", name, value)
			}
		}
		for name, value := range got.Files {
			if name != "csv" || len(value) > len(body) {
				t.Fatalf("%q is a file of %d bytes", name, len(value))
			}
		}
	})
}
