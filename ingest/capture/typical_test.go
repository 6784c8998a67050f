package capture_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"
)

const token = "phc_Zm9ydHktdGhyZWUtY2hhcmFjdGVycy1vZi10b2tlbg"

// pageview is what posthog-js sends for a page view.
const pageview = `{"uuid":"0190f3c2-aaaa-7abc-8def-%012d","event":"$pageview","properties":{"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome",` +
	`"$device_type":"Desktop","$current_url":"https://app.example.com/projects/%[1]d?tab=activity&utm_source=newsletter","$host":"app.example.com",` +
	`"$pathname":"/projects/%[1]d","$browser_version":128,"$browser_language":"en-GB","$screen_height":1117,"$screen_width":1728,"$viewport_height":992,` +
	`"$viewport_width":1728,"$lib":"web","$lib_version":"1.449.2","$insert_id":"q2k0x8c4vjd%[1]d","$time":1717171717.123,"distinct_id":"user-%[1]d",` +
	`"$device_id":"01903d3a-2d54-7b9a-9a51-0e9a3a0e7f6f","$referrer":"https://www.google.com/","$referring_domain":"www.google.com","title":"Activity – Example",` +
	`"token":"` + token + `","$session_id":"01903d3a-2d5a-7c1f-8b11-3c0f0c3e2a11","$window_id":"01903d3a-2d5a-7c1f-8b11-3c0fd8e7a3b2",` +
	`"$pageview_id":"01903d3a-2d5b-7e9a-9f5e-0b8d2b9f4c6d","$groups":{"organization":"org:%[1]d"},"$is_identified":true},"timestamp":"2024-06-01T10:00:00.123Z"}`

// typical is the body of a batch as an SDK sends it.
func typical(events int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"api_key":"%s","batch":[`, token)
	for n := range events {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, pageview, n)
	}
	b.WriteString(`],"sent_at":"2024-06-01T10:00:02.500Z"}`)
	return b.Bytes()
}

func gzipped(tb testing.TB, body []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
