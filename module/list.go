package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

// page is the envelope of a list: contract section 0.
type page[T any] struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
}

// list is a page while it is filled. An answer holds as many records as the caller's limit and
// maxListBytes allow.
type list struct {
	count, limit, offset int
	records              []json.RawMessage
	size                 int
}

const (
	defaultPage = 100
	// maxListBytes is what the records of a list take at most, unless the first alone takes more.
	maxListBytes = 16 << 20
)

// writePage sends the part of all that the caller's limit and offset name.
func writePage[T any](rq *request, all []T) error {
	part, out, err := cutPage(rq, all)
	if err != nil {
		return err
	}
	for _, record := range part {
		if !out.add(appendJSON(nil, record)) {
			break
		}
	}
	rq.writeList(out)
	return nil
}

// cutPage gives the part of all that the caller's limit and offset name, and the list that is made of it.
func cutPage[T any](rq *request, all []T) ([]T, *list, error) {
	limit, offset, err := rq.pageParams()
	if err != nil {
		return nil, nil, err
	}
	part := all[min(offset, len(all)):]
	return part[:min(limit, len(part))], &list{count: len(all), limit: limit, offset: offset}, nil
}

// pageParams returns which part of a list the query string asks for.
func (rq *request) pageParams() (limit, offset int, err error) {
	if limit, _, err = rq.queryInt("limit"); err != nil {
		return 0, 0, err
	}
	if offset, _, err = rq.queryInt("offset"); err != nil {
		return 0, 0, err
	}
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 0 || offset < 0 {
		return 0, 0, validation("", "invalid_input", "limit and offset must not be negative.")
	}
	return limit, offset, nil
}

// add appends a record, and reports whether there was room for it.
func (l *list) add(record json.RawMessage) bool {
	if len(l.records) > 0 && l.size+len(record) > maxListBytes {
		return false
	}
	l.records, l.size = append(l.records, record), l.size+len(record)
	return true
}

// writeList sends a list. Its next page begins after the last record that is given, however many the caller asked for.
func (rq *request) writeList(l *list) {
	var next, previous *string
	if n := len(l.records); n > 0 && n < l.count-l.offset {
		next = rq.pageURL(l.limit, l.offset+n)
	}
	if l.offset > 0 {
		previous = rq.pageURL(l.limit, max(l.offset-l.limit, 0))
	}
	body := make([]byte, 0, l.size+len(l.records)+512)
	body = append(body, `{"count":`...)
	body = strconv.AppendInt(body, int64(l.count), 10)
	body = appendJSON(append(body, `,"next":`...), next)
	body = appendJSON(append(body, `,"previous":`...), previous)
	body = append(body, `,"results":[`...)
	for i, record := range l.records {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, record...)
	}
	rq.uncached()
	writeBody(rq.w, http.StatusOK, append(body, ']', '}'))
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

// origin is the scheme and host that links in answers begin with: public_url, else what the caller used. It is empty, which makes links
// relative, for a host that is none: it would put text of an attacker's choice into links.
func (rq *request) origin() string {
	if rq.rt != nil && rq.rt.publicURL != "" {
		return rq.rt.publicURL
	}
	if len(rq.r.Host) > maxHost || !hostForm.MatchString(rq.r.Host) {
		return ""
	}
	scheme := "http"
	if rq.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + rq.r.Host
}

// maxHost is the most bytes of a name and a port.
const maxHost = 253 + len(":65535")

// hostForm is a name or an address, with a port or without.
var hostForm = regexp.MustCompile(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)

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
