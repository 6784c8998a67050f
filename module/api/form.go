package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// Form is a body of the type multipart/form-data.
type Form struct {
	Fields map[string]json.RawMessage // texts
	Files  map[string][]byte
}

// maxFormFields is the most fields that a form may have.
const maxFormFields = 100

// ReadForm reads the body if it is a form, and reports whether it is one. Fields of the names in files are files.
func (in Input) ReadForm(files ...string) (Form, bool, error) {
	f := Form{Fields: map[string]json.RawMessage{}, Files: map[string][]byte{}}
	if typ, _, _ := mime.ParseMediaType(in.Header.Get("Content-Type")); typ != "multipart/form-data" { // a type that is none is no form's
		return f, false, nil
	}
	if in.ContentLength > maxBody {
		return f, true, bodyTooLarge(maxBody)
	}
	limited := *in.Request
	limited.Body = http.MaxBytesReader(nil, in.Body, maxBody)
	parts, err := limited.MultipartReader()
	if err != nil {
		return f, true, badForm(err)
	}
	for range maxFormFields {
		part, err := parts.NextPart()
		if err == io.EOF { // which the error of a form that is cut off wraps
			return f, true, nil
		}
		if err != nil {
			return f, true, badForm(err)
		}
		if err := f.add(part, files); err != nil {
			return f, true, err
		}
	}
	return f, true, ParseError("Multipart form parse error - the form has too many fields.")
}

func (f *Form) add(part *multipart.Part, files []string) error {
	value, err := io.ReadAll(part)
	if err != nil {
		return badForm(err)
	}
	if name := part.FormName(); slices.Contains(files, name) {
		f.Files[name] = value
	} else {
		f.Fields[name] = jsontext.Append(nil, string(value))
	}
	return nil
}

func badForm(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(maxBody)
	}
	return ParseError("Multipart form parse error - " + err.Error())
}
