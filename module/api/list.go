package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// Page is the envelope of a list: contract api.md, section 0.
type Page[T any] struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
}

// List is a page being filled. It holds as many records as the caller's limit and MaxListBytes allow.
type List struct {
	Count, limit, offset int
	Records              []json.RawMessage
	size                 int
}

const (
	defaultPage = 100
	// MaxListBytes is the most that the records of a list take together, in bytes. A first record that is larger is still included.
	MaxListBytes = 16 << 20
)

// PageOf answers with the part of all selected by the caller's limit and offset.
func PageOf[T any](in *Input, all []T) (*Response, error) {
	return PageBy(in, all, func(record T) T { return record })
}

// PageBy answers with the part of all that the query string selects. record is called for the items of that part only.
func PageBy[T, R any](in *Input, all []T, record func(T) R) (*Response, error) {
	part, out, err := CutPage(in, all)
	if err != nil {
		return nil, err
	}
	for _, one := range part {
		if !out.Add(jsontext.Append(nil, record(one))) {
			break
		}
	}
	return out.Response(in), nil
}

// CutPage returns the part of all selected by the caller's limit and offset, and the list to fill with its records.
func CutPage[T any](in *Input, all []T) ([]T, *List, error) {
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, nil, err
	}
	part := all[min(offset, len(all)):]
	return part[:min(limit, len(part))], NewList(len(all), limit, offset), nil
}

// NewList returns an empty list, to be filled with a part of count records.
func NewList(count, limit, offset int) *List {
	return &List{Count: count, limit: limit, offset: offset}
}

// PageParams returns the limit and offset of the query string.
func (in *Input) PageParams() (limit, offset int, err error) {
	if limit, _, err = in.QueryInt("limit"); err != nil {
		return 0, 0, err
	}
	if offset, _, err = in.QueryInt("offset"); err != nil {
		return 0, 0, err
	}
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 0 || offset < 0 {
		return 0, 0, Invalid("", "invalid_input", "limit and offset must not be negative.")
	}
	return limit, offset, nil
}

// Add appends a record, and reports whether there was room for it.
func (l *List) Add(record json.RawMessage) bool {
	if len(l.Records) > 0 && l.size+len(record) > MaxListBytes {
		return false
	}
	l.Records, l.size = append(l.Records, record), l.size+len(record)
	return true
}

// Response returns the list as a response. The next page begins after the last record in this one, whatever the caller's limit.
func (l *List) Response(in *Input) *Response {
	var next, previous *string
	if n := len(l.Records); n > 0 && n < l.Count-l.offset {
		next = in.PageURL(l.limit, l.offset+n)
	}
	if l.offset > 0 {
		previous = in.PageURL(l.limit, max(l.offset-l.limit, 0))
	}
	body := make([]byte, 0, l.size+len(l.Records)+512)
	body = append(body, `{"count":`...)
	body = strconv.AppendInt(body, int64(l.Count), 10)
	body = jsontext.Append(append(body, `,"next":`...), next)
	body = jsontext.Append(append(body, `,"previous":`...), previous)
	body = append(body, `,"results":[`...)
	for i, record := range l.Records {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, record...)
	}
	return Raw(http.StatusOK, append(body, ']', '}'))
}

// PageURL returns the URL of this request with another limit and offset.
func (in *Input) PageURL(limit, offset int) *string {
	return in.link(map[string]int{"limit": limit, "offset": offset})
}

// PreviousURL returns the URL of the page of people before an offset that is not less than the limit. As in PostHog, that of the first page has an offset too.
func (in *Input) PreviousURL(limit, offset int) *string {
	url := in.PageURL(limit, offset-limit)
	if offset == limit {
		url = new(*url + "&offset=0")
	}
	return url
}

// NumberedPages returns the URLs of the next and previous page of a list with numbered pages; nil if there is none.
func (in *Input) NumberedPages(number, pages int) (next, previous *string) {
	if number < pages {
		next = in.link(map[string]int{"page": number + 1})
	}
	if number > 1 {
		previous = in.link(map[string]int{"page": number - 1})
	}
	return next, previous
}

// link returns the URL of this request with other parameters; zeros are left out.
func (in *Input) link(changes map[string]int) *string {
	params := in.URL.Query()
	for name, value := range changes {
		if params.Del(name); value > 0 {
			params.Set(name, strconv.Itoa(value))
		}
	}
	link := in.Base() + (&url.URL{Path: in.URL.Path, RawQuery: params.Encode()}).String()
	return &link
}

// Params returns the parameters of the query string. A query string that cannot be read is refused: otherwise a malformed parameter would count as not
// given.
func (in *Input) Params() (url.Values, error) {
	params, err := url.ParseQuery(in.URL.RawQuery)
	if err != nil {
		return nil, Invalid("", "invalid_input", "The query string cannot be read: %s.", err)
	}
	return params, nil
}

// QueryInt reads a number from the query string, and reports whether it was given.
func (in *Input) QueryInt(name string) (n int, given bool, err error) {
	params, err := in.Params()
	if err != nil {
		return 0, false, err
	}
	text := params.Get(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil {
		refused := NewRunError(http.StatusBadRequest, "validation_error", "invalid_input", fmt.Sprintf("Invalid %s parameter: %s", name, text))
		refused.Attr = name
		return 0, false, refused
	}
	return n, true, nil
}

// JSONParam reads a JSON parameter of the query string, and reports whether it was given.
func (in *Input) JSONParam(name string, into any) (bool, error) {
	params, err := in.Params()
	if err != nil {
		return false, err
	}
	text := params.Get(name)
	if text == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return false, Invalid(name, "invalid_input", "The parameter %s must be %s.", name, wantedJSON(reflect.TypeOf(into).Elem()))
		}
		return false, Invalid(name, "invalid_input", "The parameter %s must be JSON.", name)
	}
	return true, nil
}

// wantedJSON says which JSON a parameter of a type takes.
func wantedJSON(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		return "a JSON list of " + typeName(t.Elem().Kind(), nil) + "s"
	}
	return "a JSON " + typeName(t.Kind(), nil)
}

// CompareBools puts false before true.
func CompareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// SetOf returns the set of a list's items.
func SetOf[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, item := range list {
		set[item] = true
	}
	return set
}

// ParseFlag reads a boolean parameter, which may be empty for its default. Unlike IsTrue, it refuses a value that is not a boolean.
func ParseFlag(text string, otherwise bool) (bool, error) {
	if text == "" {
		return otherwise, nil
	}
	return strconv.ParseBool(text)
}

// IsTrue reports whether text, a parameter of the query string, stands for true.
func IsTrue(text string) bool {
	switch text {
	case "1", "t", "true", "True", "TRUE", "y", "yes", "on":
		return true
	}
	return false
}
