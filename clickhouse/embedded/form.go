//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// formBoundary reports whether the body is a form, and returns the boundary of its parts.
func formBoundary(r *http.Request) (boundary string, ok bool) {
	media, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return parameters["boundary"], err == nil && media == "multipart/form-data"
}

// readForm reads the text and the parameters of a query from a form with the fields query and param_NAME. Clients
// use a form if these are too long for a URL. A file would be an external table.
func (q *query) readForm(body io.Reader, boundary string) error {
	left := int64(maxText)
	form := multipart.NewReader(body, boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return exceptionf(codeBadArguments, "BAD_ARGUMENTS", "The form cannot be read: %s", err)
		}
		value, err := io.ReadAll(io.LimitReader(part, left+1))
		if err != nil {
			return fmt.Errorf("reading the request: %w", err)
		}
		if left -= int64(len(value)); left < 0 {
			return exceptionf(codeTooLarge, "TOO_MANY_BYTES", "The form is larger than %d bytes", int64(maxText))
		}
		name := part.FormName()
		param, isParam := strings.CutPrefix(name, "param_")
		switch {
		case part.FileName() != "":
			return exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "External tables are not supported by the embedded engine")
		case name == "query":
			q.text += string(value)
		case isParam:
			q.addParam(param, string(value))
		default:
			return exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "The form field '%s' is not supported by the embedded engine", name)
		}
	}
}
