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

// OrNone makes an empty text no JSON at all.
func OrNone(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// OrNull makes an empty text a JSON null.
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
