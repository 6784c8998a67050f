package filter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

var now = time.Date(2024, 5, 31, 13, 45, 10, 0, time.UTC)

func TestDate(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"2026-01-31", "2026-01-31T00:00:00+01:00"},
		{"2026-1-5", "2026-01-05T00:00:00+01:00"},
		{"2026-07-31T10:00", "2026-07-31T10:00:00+02:00"},
		{"2026-07-31T10:00:00.125", "2026-07-31T10:00:00.125+02:00"},
		{"2026-07-31 10:00:00", "2026-07-31T10:00:00+02:00"},
		{"2026-07-31T10:00:00Z", "2026-07-31T12:00:00+02:00"},
		{"2026-07-31T10:00:00-05:00", "2026-07-31T17:00:00+02:00"},
		{"-7d", "2024-05-24T15:45:10+02:00"},
		{"-24h", "2024-05-30T15:45:10+02:00"},
		{"-30M", "2024-05-31T15:15:10+02:00"},
		{"-10s", "2024-05-31T15:45:00+02:00"},
		{"-2w", "2024-05-17T15:45:10+02:00"},
		{"-3m", "2024-02-29T15:45:10+01:00"},
		{"-1q", "2024-03-01T15:45:10+01:00"},
		{"wStart", "2024-05-27T00:00:00+02:00"},
		{"-1wStart", "2024-05-20T00:00:00+02:00"},
		{"-1wEnd", "2024-05-26T23:59:59.999999+02:00"},
		{"-9wEnd", "2024-03-31T23:59:59.999999+02:00"},
		{"qStart", "2024-04-01T00:00:00+02:00"},
		{"-1qStart", "2024-01-01T00:00:00+01:00"},
		{"-1qEnd", "2024-03-31T23:59:59.999999+02:00"},
		{"-2qEnd", "2023-12-31T23:59:59.999999+01:00"},
		{"-1y", "2023-05-31T15:45:10+02:00"},
		{"-1mStart", "2024-04-01T15:45:10+02:00"},
		{"-1mEnd", "2024-04-30T15:45:10+02:00"},
		{"mStart", "2024-05-01T15:45:10+02:00"},
		{"dStart", "2024-05-31T00:00:00+02:00"},
		{"-1dEnd", "2024-05-30T23:59:59.999999+02:00"},
		{"hEnd", "2024-05-31T15:59:59.999999+02:00"},
		{"-1hStart", "2024-05-31T14:00:00+02:00"},
		{"yStart", "2024-01-01T15:45:10+01:00"},
		{"now", "2024-05-31T15:45:10+02:00"},
		{"today", "2024-05-31T15:45:10+02:00"},
		{"1900-01-01", "1900-01-01T00:00:00+01:00"},
		{"2299-12-31T23:59:59", "2299-12-31T23:59:59+01:00"},
		{"1899-12-31T23:59:59", "none"},
		{"2300-01-01", "none"},
		{"-124y", "1900-05-31T15:45:10+01:00"},
		{"-125y", "none"},
		{"-100000y", "none"},
		{"", "none"},
		{"-", "none"},
		{"7", "none"},
		{"-7x", "none"},
		{"-7dMiddle", "none"},
		{"-99999999999999999999d", "none"},
		{"tomorrow", "none"},
	}
	zone := mustZone(t)
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got := "none"
			if d, ok := filter.Date(tt.text, now, zone, 1); ok {
				got = d.Format(time.RFC3339Nano)
			}
			if got != tt.want {
				t.Errorf("Date(%q) = %s, want %s", tt.text, got, tt.want)
			}
		})
	}
}

func FuzzDate(f *testing.F) {
	for _, seed := range []string{"2026-01-31", "-7d", "-1mStart", "yEnd", "2026-07-31T10:00:00Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := filter.Date(text, now, time.UTC, 0)
		if again, okAgain := filter.Date(d.Format("2006-01-02 15:04:05.999999999"), now, time.UTC, 0); ok && d.Year() >= 0 && d.Year() < 10000 && (!okAgain || !again.Equal(d)) {
			t.Errorf("Date(%q) = %s, which reads as %s", text, d, fmt.Sprint(again, okAgain))
		}
	})
}

// TestUserValue checks which aliases an expression keeps.
func TestUserValue(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"none", "properties.k", "properties.k"},
		{"one around all", "upper(properties.k) AS value", "upper(properties.k)"},
		{"one inside another", "coalesce(event AS a) AS b", "coalesce(event)"},
		{"one that is used", "concat(lower(event) AS a, a) AS b", "concat(lower(event) AS a, a)"},
		{"those of a subquery", "(SELECT event AS a FROM events LIMIT 1) AS b", "(SELECT event AS a FROM events LIMIT 1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := filter.UserValue(tt.text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := hogql.PrintExpr(e); got != tt.want {
				t.Errorf("UserValue(%q) is %s, want %s", tt.text, got, tt.want)
			}
		})
	}
}

// mustZone returns the time zone of these tests.
func mustZone(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
