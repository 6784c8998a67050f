package api

import "time"

// timeForms are the accepted forms of ISO 8601. Those with seconds also accept a fraction.
var timeForms = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00", time.DateTime, "2006-01-02 15:04", time.DateOnly,
}

// ParseTime reads a time in ISO 8601, and reports whether the text is one whose year JSON can represent. Without a zone, it is in UTC.
func ParseTime(text string) (time.Time, bool) {
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil {
			year := at.UTC().Year()
			return at, year >= 1 && year <= 9999
		}
	}
	return time.Time{}, false
}

// TimeField is ParseTime for a field or parameter, which the error names.
func TimeField(name, text string) (time.Time, error) {
	at, ok := ParseTime(text)
	if !ok {
		return time.Time{}, Invalid(name, "invalid_input", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z.")
	}
	return at, nil
}
