package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// Form is a body of the type multipart/form-data or application/x-www-form-urlencoded.
type Form struct {
	Fields map[string]json.RawMessage // texts, marked so that Fields can tell them from a JSON body's values
	Files  map[string][]byte
}

// maxFormFields is the most fields in a form, counting each text of a field: Django's limit.
const maxFormFields = 1000

// The types of forms.
const (
	multipartType = "multipart/form-data"
	encodedType   = "application/x-www-form-urlencoded"
)

// ReadForm reads the body if it is a form, and reports whether it is one. The fields named in files are files.
func (in *Input) ReadForm(files ...string) (Form, bool, error) {
	typ, _, _ := mime.ParseMediaType(in.Header.Get("Content-Type")) // an invalid type is not a form's
	if typ != multipartType && typ != encodedType || in.Body == nil {
		return Form{}, false, nil
	}
	if err := checkEncoding(in.Header); err != nil {
		return Form{}, true, err
	}
	if in.ContentLength > maxBody {
		return Form{}, true, BodyTooLarge(maxBody)
	}
	limited := *in.Request
	limited.Body = http.MaxBytesReader(nil, in.Body, maxBody)
	r := formReader{files: files, texts: make(map[string][]string), form: Form{Files: map[string][]byte{}}}
	read := r.encoded
	if typ == multipartType {
		read = r.multipart
	}
	if err := read(&limited); err != nil {
		return Form{}, true, err
	}
	r.form.Fields = make(map[string]json.RawMessage, len(r.texts))
	for name, texts := range r.texts {
		r.form.Fields[name] = formValue(texts)
	}
	return r.form, true, CheckDecoded(r.form.Fields)
}

// formReader is a form being read.
type formReader struct {
	files []string
	texts map[string][]string
	form  Form
}

func (f *formReader) multipart(r *http.Request) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return badForm(err)
	}
	for left := maxFormFields; ; left-- {
		part, err := parts.NextPart()
		switch {
		case err == io.EOF: // compared with ==: the error of a truncated form wraps it
			return nil
		case err != nil:
			return badForm(err)
		case left == 0:
			return ParseError("Multipart form parse error - the form has too many fields.")
		}
		if err := f.add(part); err != nil {
			return err
		}
	}
}

func (f *formReader) add(part *multipart.Part) error {
	value, err := io.ReadAll(part)
	if err != nil {
		return badForm(err)
	}
	if name := part.FormName(); slices.Contains(f.files, name) {
		f.form.Files[name] = value
	} else {
		f.texts[name] = append(f.texts[name], string(value))
	}
	return nil
}

func (f *formReader) encoded(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return BodyError(err)
	}
	left := maxFormFields
	for pair := range strings.SplitSeq(string(body), "&") {
		if pair == "" {
			continue
		}
		if left--; left < 0 {
			return ParseError("Form parse error - the form has too many fields.")
		}
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		if err := errors.Join(nameErr, valueErr); err != nil {
			return ParseError("Form parse error - " + err.Error())
		}
		f.texts[name] = append(f.texts[name], value)
	}
	return nil
}

// badForm returns the error for a form that did not arrive, or else is malformed.
func badForm(err error) error {
	if missed := BodyError(err); missed.Status != http.StatusBadRequest {
		return missed
	}
	return ParseError("Multipart form parse error - " + err.Error())
}

// The whitespace that marks the value of a form field, which has one text or several. Values of a JSON body never start with whitespace.
const (
	oneText      = '\t'
	severalTexts = '\n'
)

// formValue returns the value of a form field: its text, or a list of its texts. A text that is a JSON object or list is kept as that, so that code that
// reads those need not know about forms.
func formValue(texts []string) json.RawMessage {
	if len(texts) > 1 {
		return jsontext.Append([]byte{severalTexts}, texts)
	}
	text := texts[0]
	if text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
		return append([]byte{oneText}, text...)
	}
	return jsontext.Append([]byte{oneText}, text)
}

// formTexts returns the texts of a form field, at least one, and reports whether raw is a form field.
func formTexts(raw json.RawMessage) ([]string, bool) {
	if len(raw) == 0 || raw[0] != oneText && raw[0] != severalTexts {
		return nil, false
	}
	value := raw[1:]
	if raw[0] == oneText && value[0] != '"' {
		return []string{string(value)}, true
	}
	texts := make([]string, 1)
	into := any(&texts[0])
	if raw[0] == severalTexts {
		into = &texts
	}
	if err := json.Unmarshal(value, into); err != nil {
		panic("BUG: a field of a form that is not JSON: " + err.Error())
	}
	return texts, true
}
