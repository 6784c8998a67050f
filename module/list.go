package module

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// page is the envelope of a list: contract section 0.
type page[T any] struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
}

const defaultPage = 100

// writePage sends the part of all that the caller's limit and offset name.
func writePage[T any](rq *request, all []T) error {
	part, out, err := cutPage[T, T](rq, all)
	if err != nil {
		return err
	}
	out.Results = append(out.Results, part...)
	rq.reply(http.StatusOK, out)
	return nil
}

// cutPage gives the part of all that the caller's limit and offset name, and the envelope for what is made of it.
func cutPage[T, R any](rq *request, all []T) ([]T, page[R], error) {
	out := page[R]{Count: len(all), Results: []R{}}
	limit, _, err := rq.queryInt("limit")
	if err != nil {
		return nil, out, err
	}
	offset, _, err := rq.queryInt("offset")
	if err != nil {
		return nil, out, err
	}
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 0 || offset < 0 {
		return nil, out, validation("", "invalid_input", "limit and offset must not be negative.")
	}
	part := all[min(offset, len(all)):]
	if limit < len(part) { // so that offset+limit is no more than there are, and does not overflow
		part = part[:limit]
		out.Next = rq.pageURL(limit, offset+limit)
	}
	if offset > 0 {
		out.Previous = rq.pageURL(limit, max(offset-limit, 0))
	}
	return part, out, nil
}

// pageURL is the address of this request with another limit and offset.
func (rq *request) pageURL(limit, offset int) *string {
	return rq.link(map[string]int{"limit": limit, "offset": offset})
}

// numberedPage is the address of this request with another page number.
func (rq *request) numberedPage(number int) *string { return rq.link(map[string]int{"page": number}) }

// link is the address of this request with other parameters; zeros are left out.
func (rq *request) link(changes map[string]int) *string {
	params := rq.r.URL.Query()
	for name, value := range changes {
		if params.Del(name); value > 0 {
			params.Set(name, strconv.Itoa(value))
		}
	}
	link := rq.origin() + (&url.URL{Path: rq.r.URL.Path, RawQuery: params.Encode()}).String()
	return &link
}

// origin is the scheme and host that the caller used.
func (rq *request) origin() string {
	scheme := "http"
	if rq.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + rq.r.Host
}

// queryInt reads a number from the query string, and tells whether it was given.
func (rq *request) queryInt(name string) (n int, given bool, err error) {
	params, err := url.ParseQuery(rq.r.URL.RawQuery)
	if err != nil { // what cannot be read would count as not given
		return 0, false, validation("", "invalid_input", "The query string cannot be read: %s.", err)
	}
	text := params.Get(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil {
		refused := runError(http.StatusBadRequest, "validation_error", "invalid_input", fmt.Sprintf("Invalid %s parameter: %s", name, text))
		refused.Attr = name
		return 0, false, refused
	}
	return n, true, nil
}
