package capture

import (
	"strings"
	"unicode"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// maxToken is the length of the longest token, in bytes.
const maxToken = 64

// tokens collects the tokens of a payload.
type tokens struct {
	text   string
	found  bool
	differ bool
}

// set takes the token of a batch. A value that is not a string counts as an empty token.
func (t *tokens) set(raw record.Value) {
	if raw != nil {
		t.found, t.text = true, textOf(raw)
	}
}

// tokenFields are the fields of an event that can hold its token.
var tokenFields = [...]string{"token", "api_key", "$token"}

// of takes the token of an event, if it has one.
func (t *tokens) of(fields, properties record.Object) {
	var value record.Value
	for _, name := range tokenFields {
		if value = fields.Get(name); value != nil && !value.IsNull() {
			break
		}
	}
	if value == nil || value.IsNull() {
		if value = properties.Get("token"); len(value) == 0 || value[0] != '"' {
			return
		}
	}
	if t.found && !t.differ && len(value) > 2 && string(value[1:len(value)-1]) == t.text {
		return
	}
	text := ""
	if value[0] == '"' {
		text, _ = value.Text()
	}
	switch {
	case !t.found:
		t.found, t.text = true, text
	case t.text != text:
		t.differ = true
	}
}

// token returns the one token of a payload or, if it has none, that of the query string.
func (t *tokens) token(query string) (string, error) {
	switch {
	case t.differ:
		return "", refuse(InconsistentKeys, "The events have different tokens: send the events of each project in a request of their own.")
	case t.found:
		return CheckToken(t.text)
	case query != "":
		return CheckToken(query)
	}
	return "", refuse(MissingKey, "There is no project token: send it as api_key or token.")
}

// CheckToken trims a token and checks its form. It returns a *RefusalError for one that is not valid.
func CheckToken(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", refuse(InvalidKey, "The project token is empty.")
	case len(text) > maxToken:
		return "", refuse(InvalidKey, "The project token is longer than %d characters.", maxToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", refuse(InvalidKey, "The project token has characters that are not ASCII.")
	case strings.HasPrefix(text, "phx_"):
		return "", refuse(InvalidKey, "This is a personal API key. Events are sent with the token of a project, which begins with phc_.")
	}
	return text, nil
}

// UnknownToken refuses a token that belongs to no project.
func UnknownToken() *RefusalError {
	return refuse(InvalidKey, "The project token belongs to no project, or was revoked.")
}
