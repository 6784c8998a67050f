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
	Fields map[string]json.RawMessage // texts, as JSON that Fields can tell from that of a JSON body
	Files  map[string][]byte
}

// maxFormFields is the most fields that a form may have, counting each text of a field: Django's limit.
const maxFormFields = 1000

// The types of forms.
const (
	multipartType = "multipart/form-data"
	encodedType   = "application/x-www-form-urlencoded"
)

// ReadForm reads the body if it is a form, and reports whether it is one. Fields of the names in files are files.
func (in *Input) ReadForm(files ...string) (Form, bool, error) {
	typ, _, _ := mime.ParseMediaType(in.Header.Get("Content-Type")) // a type that is none is no form's
	if typ != multipartType && typ != encodedType || in.Body == nil {
		return Form{}, false, nil
	}
	if err := checkEncoding(in.Header); err != nil {
		return Form{}, true, err
	}
	if in.ContentLength > maxBody {
		return Form{}, true, bodyTooLarge(maxBody)
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
	return r.form, true, nil
}

// formReader is a form that is being read.
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
	for range maxFormFields {
		part, err := parts.NextPart()
		if err == io.EOF { // which the error of a form that is cut off wraps
			return nil
		}
		if err != nil {
			return badForm(err)
		}
		if err := f.add(part); err != nil {
			return err
		}
	}
	return ParseError("Multipart form parse error - the form has too many fields.")
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

func badForm(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(maxBody)
	}
	return ParseError("Multipart form parse error - " + err.Error())
}

// The space that leads the value of a field of a form, which has one text or several. A value of a JSON body has no space before it.
const (
	oneText      = '\t'
	severalTexts = '\n'
)

// formValue is the value of a field of a form: its text, or a list of its texts. A text that is a JSON object or list is that, so that
// readers of those need not know of forms.
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

// formTexts returns the texts of a field of a form, of which there is at least one, and reports whether it is one.
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
