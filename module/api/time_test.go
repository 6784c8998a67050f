package api_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-01-10T12:00:00Z": "2026-01-10T12:00:00Z", "2026-01-10T12:00:00.25+02:00": "2026-01-10T10:00:00.25Z", "2026-01-10T12:00-01:00": "2026-01-10T13:00:00Z",
		"2026-01-10T12:00:00": "2026-01-10T12:00:00Z", "2026-01-10T12:00:00.000001": "2026-01-10T12:00:00.000001Z", "2026-01-10T12:00": "2026-01-10T12:00:00Z",
		"2026-01-10 12:00:00Z": "2026-01-10T12:00:00Z", "2026-01-10 12:00+02:00": "2026-01-10T10:00:00Z", "2026-01-10 12:00:00": "2026-01-10T12:00:00Z",
		"2026-01-10 12:00": "2026-01-10T12:00:00Z", "2026-01-10": "2026-01-10T00:00:00Z",
		"": "", "soon": "", "12:00": "", "2026-01": "", "2026-02-30": "", "0000-12-31T00:00:00Z": "", "9999-12-31T23:59:59-14:00": "",
	} {
		var got string
		if at, ok := api.ParseTime(text); ok {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("ParseTime(%q) = %q, want %q", text, got, want)
		}
	}
}
