package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// keyField is the field of a JSON body that may hold a personal key: contract api.md, section 6.1.
const keyField = "personal_api_key"

// MaxKeyBody is how much of a body is read, in bytes, before the caller is known. It is far above what a query takes and far below maxBody, so that
// strangers cannot fill the memory.
const MaxKeyBody = 1 << 20

// takeKey takes the key out of the body, and reports whether there is one. The routes then read the rest: the key is not one of their fields, and not part
// of anything remembered about the request. A value that is not a text counts as an unknown key.
func takeKey(r *http.Request) (secret string, found bool) {
	if r.Body == nil || r.ContentLength > MaxKeyBody || checkMediaType(r.Header) != nil {
		return "", false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxKeyBody+1))
	if err != nil || len(body) > MaxKeyBody || CheckJSON(body) != nil {
		return "", false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return "", false
	}
	raw, found := fields[keyField]
	if !found || IsNull(raw) {
		return "", false
	}
	if json.Unmarshal(raw, &secret) != nil {
		secret = ""
	}
	delete(fields, keyField)
	rest := jsontext.Append(nil, fields)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
	return secret, true
}
