package capture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// at decodes a batch of one event and gives its time, in seconds and more of the day of now where it is of that day.
func at(t *testing.T, fields, beside, query string) string {
	t.Helper()
	body := `{"api_key":"` + token + `"` + beside + `,"batch":[{"event":"e","distinct_id":"d"` + fields + "}]}"
	batch, err := capture.Decode(&capture.Request{Body: []byte(body), SentAt: query, Now: now})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	r, err := new(record.Parser).Parse(batch.Lines)
	if err != nil {
		t.Fatalf("%s: %v", batch.Lines, err)
	}
	return r.Timestamp.Format("2006-01-02 15:04:05.999999")
}

// TestSentAtOfOneEvent ignores the sending time in an event that is sent by itself, and takes the one of the query string.
func TestSentAtOfOneEvent(t *testing.T) {
	const body = `{"api_key":"` + token + `","event":"e","distinct_id":"d","timestamp":"2024-06-01T10:00:00Z","sent_at":"2024-06-01T13:00:05Z"}`
	for query, want := range map[string]string{"": "2024-06-01T10:00:00Z", "1717246805000": "2024-06-01T08:59:55Z"} {
		batch, err := capture.Decode(&capture.Request{Body: []byte(body), SentAt: query, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(batch.Lines); !strings.Contains(got, `"timestamp":"`+want+`"`) || strings.Contains(got, "$sent_at") != (query != "") {
			t.Errorf("with %q in the query: %s", query, got)
		}
	}
}

func TestTimestamps(t *testing.T) {
	const noon = "2024-06-01 12:00:00"
	sent := func(text string) string { return `,"sent_at":"` + text + `"` }
	tests := []struct{ name, timestamp, beside, query, want string }{
		{"alone", "2024-05-30T10:00:00Z", "", "", "2024-05-30 10:00:00"},
		{"with sent_at", "2024-06-01T13:00:00Z", sent("2024-06-01T13:00:05Z"), "", "2024-06-01 11:59:55"},
		{"with sent_at of a clock that is slow", "2020-01-01T00:00:00Z", sent("2020-01-01T00:01:00+00:00"), "", "2024-06-01 11:59:00"},
		{"with sent_at in the query", "2024-06-01T13:00:00Z", "", "1717246805000", "2024-06-01 11:59:55"},
		{"the batch's before the query's", "2024-06-01T13:00:00Z", sent("2024-06-01T13:00:05Z"), "1717246800000", "2024-06-01 11:59:55"},
		{"an unreadable sent_at, and the query's", "2024-06-01T13:00:00Z", sent("x"), "1717246805000", "2024-06-01 11:59:55"},
		{"sent_at in seconds", "2024-06-01T10:00:00Z", "", "1717246805", "2024-06-01 10:00:00"},
		{"sent_at that is not a number", "2024-06-01T10:00:00Z", "", "1e3", "2024-06-01 10:00:00"},
		{"sent_at of far ahead", "2024-06-01T10:00:00Z", "", "9223372036854775807", "2024-06-01 10:00:00"},
		{"sent_at that is a number", "2024-06-01T10:00:00Z", `,"sent_at":1717246805000`, "", "2024-06-01 10:00:00"},
		{"unreadable", "the day before", sent("2024-06-01T13:00:05Z"), "", noon},
		{"empty", "", "", "", noon},
		{"in 23 hours", "2024-06-02T11:00:00Z", "", "", "2024-06-02 11:00:00"},
		{"later", "2024-06-02T11:00:00.001Z", "", "", noon},
		{"year 9999", "9999-12-31T23:59:59Z", "", "", noon},
		{"year 0", "0000-01-01T00:00:00Z", "", "", "1900-01-01 00:00:00"},
		{"long ago", "1969-07-20T20:17:40Z", "", "", "1969-07-20 20:17:40"},
		{"far from sent_at", "0001-01-01T00:00:00Z", sent("9999-01-01T00:00:00Z"), "", "1900-01-01 00:00:00"},

		{"microseconds", "2024-06-01T10:00:00.1234567Z", "", "", "2024-06-01 10:00:00.123456"},
		{"offset", "2024-06-01T10:00:00+02:00", "", "", "2024-06-01 08:00:00"},
		{"offset of two digits", "2024-06-01T10:00:00.5+02", "", "", "2024-06-01 08:00:00.5"},
		{"offset of four digits", "2024-06-01T10:00:00-0230", "", "", "2024-06-01 12:30:00"},
		{"no zone", "2024-06-01T10:00:00", "", "", "2024-06-01 10:00:00"},
		{"blank", "2024-06-01 10:00:00.25", "", "", "2024-06-01 10:00:00.25"},
		{"blank before the offset", "2024-06-01 10:00:00 +0200", "", "", "2024-06-01 08:00:00"},
		{"blank before an offset with a colon", "2024-06-01 10:00:00.5 -02:30", "", "", "2024-06-01 12:30:00.5"},
		{"GMT", "2024-06-01 10:00:00 GMT", "", "", "2024-06-01 10:00:00"},
		{"another zone's name", "2024-06-01 10:00:00 CEST", "", "", noon},
		{"small letters", "2024-06-01t10:00:00z", "", "", "2024-06-01 10:00:00"},
		{"date", "2024-06-01", "", "", "2024-06-01 00:00:00"},
		{"seconds", "1717236000", "", "", "2024-06-01 10:00:00"},
		{"seconds with decimals", "1717236000.25", "", "", "2024-06-01 10:00:00.25"},
		{"seconds with no decimals after the point", "1717236000.", "", "", "2024-06-01 10:00:00"},
		{"seconds with something else", "1717236000.2x", "", "", noon},
		{"seconds with an exponent", "1717236000.2e5", "", "", noon},
		{"milliseconds", "1717236000250", "", "", "2024-06-01 10:00:00.25"},
		{"nanoseconds", "1717236000250000000", "", "", "2024-06-01 10:00:00.25"},
		{"other numbers", "20240601", "", "", noon},
		{"RFC 2822", "Sat, 1 Jun 2024 10:00:00 +0200", "", "", "2024-06-01 08:00:00"},
		{"RFC 2822 of GMT", "01 Jun 2024 10:00:00 GMT", "", "", "2024-06-01 10:00:00"},
		{"no day of the calendar", "2024-02-30T10:00:00Z", "", "", noon},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := at(t, fmt.Sprintf(`,"timestamp":%q`, tt.timestamp), tt.beside, tt.query); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	others := []struct{ name, fields, beside, want string }{
		{"nothing", "", "", noon},
		{"sent_at alone", "", sent("2024-06-01T13:00:05Z"), noon},
		{"$ignore_sent_at", `,"timestamp":"2024-06-01T10:00:00Z","properties":{"$ignore_sent_at":true}`, sent("2024-06-01T13:00:05Z"), "2024-06-01 10:00:00"},
		{"a text is no $ignore_sent_at", `,"timestamp":"2024-06-01T13:00:00Z","properties":{"$ignore_sent_at":"true"}`, sent("2024-06-01T13:00:05Z"), "2024-06-01 11:59:55"},
		{"sent_at of the event", `,"timestamp":"2024-06-01T10:00:00Z","sent_at":"2024-06-01T13:00:05Z"`, "", "2024-06-01 10:00:00"},
		{"offset", `,"offset":60000`, "", "2024-06-01 11:59:00"},
		{"offset before timestamp", `,"offset":60000,"timestamp":"2024-06-01T10:00:00Z"`, sent("2024-06-01T13:00:05Z"), "2024-06-01 11:59:00"},
		{"offset ahead", `,"offset":-60000`, "", "2024-06-01 12:01:00"},
		{"offset far ahead", `,"offset":-9223372036854775808`, "", noon},
		{"offset far back", `,"offset":9223372036854775807`, "", "1900-01-01 00:00:00"},
		{"historical", "", `,"historical_migration":true`, noon},
	}
	for _, tt := range others {
		t.Run(tt.name, func(t *testing.T) {
			if got := at(t, tt.fields, tt.beside, ""); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzTimestamps reads any text as a time. The result is a time that a record can hold, and not far ahead.
func FuzzTimestamps(f *testing.F) {
	for _, seed := range []string{"2024-06-01T10:00:00.5+02", "1717236000250", "Sat, 1 Jun 2024 10:00:00 +0200", "2024-06-01t10:00:00z", "9999-12-31", "(((((("} {
		f.Add(seed, "2024-06-01T13:00:05Z", int64(60))
	}
	f.Fuzz(func(t *testing.T, timestamp, sentAt string, offset int64) {
		for _, fields := range []string{`,"timestamp":` + string(record.TextValue(timestamp)), fmt.Sprintf(`,"offset":%d`, offset)} {
			got, err := time.Parse("2006-01-02 15:04:05.999999", at(t, fields, `,"sent_at":`+string(record.TextValue(sentAt)), ""))
			if err != nil || got.Before(record.Earliest) || got.After(now.Add(23*time.Hour)) {
				t.Fatalf("%q sent at %q is %v: %v", timestamp, sentAt, got, err)
			}
		}
	})
}
