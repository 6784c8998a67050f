package events

import (
	"encoding/json"
	"fmt"
)

// field is one member of an object: its name in the answer, and where its value comes from.
type field struct {
	name  string
	chain []string
	json  bool // the value is JSON as text
}

// objects are what can be selected as one value: a whole event, and the person of an event.
var objects = map[string][]field{
	"*": {
		{name: "uuid", chain: []string{"uuid"}},
		{name: "event", chain: []string{"event"}},
		{name: "properties", chain: []string{"properties"}, json: true},
		{name: "timestamp", chain: []string{"timestamp"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
		{name: "elements_chain", chain: []string{"elements_chain"}},
		{name: "created_at", chain: []string{"created_at"}},
	},
	"person": {
		{name: "uuid", chain: []string{"person_id"}},
		{name: "created_at", chain: []string{"person", "created_at"}},
		{name: "properties", chain: []string{"person", "properties"}, json: true},
		{name: "distinct_id", chain: []string{"distinct_id"}},
	},
}

// shapes makes what turns the tuples of a row into objects; nil when no column is one.
func shapes(columns []string) func(row []byte) ([]byte, error) {
	wanted := map[int][]field{}
	for i, column := range columns {
		if fields, ok := objects[column]; ok {
			wanted[i] = fields
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return func(row []byte) ([]byte, error) {
		var cells []json.RawMessage
		if err := list(row, &cells, len(columns)); err != nil {
			return nil, fmt.Errorf("reading a row of events: %w", err)
		}
		out := make([]byte, 0, len(row)+128*len(wanted))
		for i, cell := range cells {
			out = append(out, separator(i, '[', ','))
			fields, ok := wanted[i]
			if !ok {
				out = append(out, cell...)
				continue
			}
			var err error
			if out, err = appendObject(out, fields, cell); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
}

// list reads a JSON array of so many values.
func list(raw []byte, into *[]json.RawMessage, size int) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	if len(*into) != size {
		return fmt.Errorf("it has %d values, not %d", len(*into), size)
	}
	return nil
}

func separator(i int, first, later byte) byte {
	if i == 0 {
		return first
	}
	return later
}

// appendObject writes a tuple with the names of its fields.
func appendObject(dst []byte, fields []field, tuple json.RawMessage) ([]byte, error) {
	var values []json.RawMessage
	if err := list(tuple, &values, len(fields)); err != nil {
		return nil, fmt.Errorf("reading an object of a row of events: %w", err)
	}
	for i, f := range fields {
		dst = append(dst, separator(i, '{', ','), '"')
		dst = append(dst, f.name...)
		dst = append(dst, '"', ':')
		value := values[i]
		if f.json {
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, fmt.Errorf("reading the %s of an event: %w", f.name, err)
			}
			if value = json.RawMessage(text); !json.Valid(value) {
				return nil, fmt.Errorf("the %s of an event are no JSON", f.name)
			}
		}
		dst = append(dst, value...)
	}
	return append(dst, '}'), nil
}
