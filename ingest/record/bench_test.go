package record

import (
	"strings"
	"testing"
)

// BenchmarkParse reads page views one after another, as a delivery does.
func BenchmarkParse(b *testing.B) {
	text := []byte(`{"event":"$pageview","distinct_id":"0190f3c2-aaaa-7abc-8def-000000000001","uuid":"0190f3c2-bbbb-7abc-8def-000000000002",` +
		`"timestamp":"2026-11-21T10:00:00Z","properties":{"$os":"Linux","$os_version":"x86_64","$browser":"Chrome","$browser_version":150,` +
		`"$device_type":"Desktop","$lib":"web","$lib_version":"1.449.2","$current_url":"https://app.example.com/page/7?tab=settings",` +
		`"$host":"app.example.com","$pathname":"/page/7","$screen_height":1080,"$screen_width":1920,"$viewport_height":940,"$viewport_width":1850,` +
		`"$referrer":"$direct","$referring_domain":"$direct","$device_id":"device-1","$session_id":"session-1","plan":"free","amount":12}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var parser Parser
	for b.Loop() {
		if _, err := parser.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEventWithManyNames reads an exception with a deep stack, whose names are counted apart.
func BenchmarkEventWithManyNames(b *testing.B) {
	frame := `{"filename":"app.java","lineno":12,"function":"f","in_app":true,"module":"com.example.App"},`
	text := []byte(`{"event":"$exception","properties":{"$exception_list":[{"stacktrace":{"frames":[` + strings.TrimSuffix(strings.Repeat(frame, 1024), ",") + `]}}]}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	r := NewReader(text)
	for b.Loop() {
		r.Seek(0)
		if _, _, err := r.Event(nil, nil, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
