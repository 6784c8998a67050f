package insight

import (
	"encoding/json"
	"fmt"
)

// Object appends what an answer shows in place of a tuple with these values, each JSON.
type Object func(dst []byte, values []json.RawMessage) ([]byte, error)

// Member is a member of an object. JSON reports whether its value is a text that contains JSON.
type Member struct {
	Name string
	JSON bool
}

// ObjectOf builds an object from a tuple with one value for each member.
func ObjectOf(members []Member) Object {
	return func(dst []byte, values []json.RawMessage) ([]byte, error) {
		if len(values) != len(members) {
			return nil, fmt.Errorf("it has %d values, not %d", len(values), len(members))
		}
		for i, m := range members {
			dst = append(dst, separator(i, '{', ','), '"')
			dst = append(dst, m.Name...)
			dst = append(dst, '"', ':')
			value := values[i]
			if m.JSON {
				var err error
				if value, err = textJSON(value); err != nil {
					return nil, fmt.Errorf("its %s: %w", m.Name, err)
				}
			}
			dst = append(dst, value...)
		}
		return append(dst, '}'), nil
	}
}

// textJSON returns the JSON that a text contains.
func textJSON(value json.RawMessage) (json.RawMessage, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, err // the caller names the value
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%.40q is not JSON", text)
	}
	return json.RawMessage(text), nil
}

// Objects replaces tuples in a row with objects, by column; it returns nil if there are no objects.
func Objects(columns int, objects map[int]Object) func(row []byte) ([]byte, error) {
	if len(objects) == 0 {
		return nil
	}
	return func(row []byte) ([]byte, error) {
		cells, err := List(row, columns)
		if err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		out := make([]byte, 0, len(row)+128*len(objects))
		for i, cell := range cells {
			out = append(out, separator(i, '[', ','))
			object, ok := objects[i]
			if !ok {
				out = append(out, cell...)
				continue
			}
			var values []json.RawMessage
			if err := json.Unmarshal(cell, &values); err != nil {
				return nil, fmt.Errorf("reading an object of a row: %w", err)
			}
			if out, err = object(out, values); err != nil {
				return nil, fmt.Errorf("reading an object of a row: %w", err)
			}
		}
		return append(out, ']'), nil
	}
}

// List reads a JSON array of exactly size values.
func List(raw []byte, size int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err // the caller says what the array is
	}
	if len(out) != size {
		return nil, fmt.Errorf("it has %d values, not %d", len(out), size)
	}
	return out, nil
}

func separator(i int, first, later byte) byte {
	if i == 0 {
		return first
	}
	return later
}
