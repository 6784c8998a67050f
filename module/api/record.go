package api

import (
	"encoding/json"
	"time"
)

// OrNil makes the zero time a JSON null.
func OrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// OrNone returns text as JSON, or nil if it is empty.
func OrNone(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// OrNull returns nil, a JSON null, for an empty text.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// OrEmpty makes a nil list an empty one, for JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
