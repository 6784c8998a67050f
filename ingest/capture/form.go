package capture

import (
	"encoding/json"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// formKind is how a payload holds its events.
type formKind uint8

const (
	batchForm formKind = iota // an object with a list of them
	listForm
	oneForm // an event by itself
)

// form is what the outermost value of a payload says.
type form struct {
	kind  formKind
	start int // where the list begins

	// Other fields of a batch; nil if it does not have them.
	token, sentAt, createdAt record.Value
}

// maxExtraFields is how many fields a batch may have besides its events.
const maxExtraFields = 100

// open looks at the outermost value of a payload, but not at its events.
func (d *decoder) open(text []byte) (form, error) {
	in := record.NewReader(text)
	f := form{kind: oneForm, start: -1}
	switch in.Kind() {
	case '[':
		f.kind, f.start = listForm, in.Pos()
		if err := in.Skip(); err != nil {
			return f, d.parseError(err)
		}
	case '{':
		if err := d.openObject(in, text, &f); err != nil {
			return f, d.parseError(err)
		}
	default:
		return f, refuse(ParseError, "The payload is not JSON of an event, a list of events, or an object with a batch of events.")
	}
	if err := in.End(); err != nil {
		return f, d.parseError(err)
	}
	return f, nil
}

var (
	errManyFields = errors.New("it has too many fields beside its batch")
	errNotList    = errors.New("its batch is not a list of events")
	errNotJSON    = errors.New("a field beside its batch is not valid JSON")
)

// openObject finds out whether an object is a batch. Only then does it check the fields beside the events: a single event is read as a whole later.
func (d *decoder) openObject(in *record.Reader, text []byte, f *form) error {
	var beside [][2]int
	err := in.Members(func(key string) error {
		kind, start := in.Kind(), in.Pos()
		if err := in.Skip(); err != nil {
			return err
		}
		if key == "batch" {
			if kind != '[' {
				return errNotList
			}
			f.kind, f.start = batchForm, start
			return nil
		}
		if len(beside) <= maxExtraFields {
			beside = append(beside, [2]int{start, in.Pos()})
		}
		if kind != '"' && key != "api_key" && key != "token" || in.Pos()-start > d.limits.Event {
			return nil
		}
		value := record.Value(text[start:in.Pos()])
		switch key {
		case "api_key", "token":
			if string(value) != "null" {
				f.token = value
			}
		case "sent_at":
			f.sentAt = value
		case "created_at":
			f.createdAt = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.kind != batchForm {
		*f = form{kind: f.kind, start: f.start} // what a single event has is its own
		return nil
	}
	if len(beside) > maxExtraFields {
		return errManyFields
	}
	for _, at := range beside {
		if !json.Valid(text[at[0]:at[1]]) {
			return errNotJSON
		}
	}
	return nil
}

// textOf decodes a JSON string that is not in canonical form yet; it is empty for other values.
func textOf(raw record.Value) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return ""
}

// TokenOf finds the token in a payload that asks for something, such as flags: a JSON object. query is the token of the query string. It returns a
// *RefusalError if there is none.
func TokenOf(text []byte, query string) (string, error) {
	var keys tokens
	if len(text) > 0 {
		in := record.NewReader(text)
		if in.Kind() != '{' {
			return "", refuse(ParseError, "The payload is not a JSON object.")
		}
		if !json.Valid(text) {
			return "", refuse(ParseError, "The payload is not valid JSON.")
		}
		for _, name := range []string{"$token", "api_key", "token"} {
			if value := in.Field(0, name); value != nil && !value.IsNull() {
				keys.set(value)
			}
		}
	}
	return keys.token(query)
}
