package formats_test

import (
	"bytes"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// maxFuzzed is how long a fuzzed file is: it bounds the time of one.
const maxFuzzed = 64 << 10

func fuzz(f *testing.F, options formats.Options) {
	f.Helper()
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFuzzed {
			return
		}
		o := options
		o.Spool = spool(t)
		first, _ := read(t, bytes.NewReader(text), o)
		if second, _ := read(t, bytes.NewReader(text), o); len(first) != len(second) {
			t.Errorf("%d records, and again %d", len(first), len(second))
		}
	})
}

// FuzzDetect reads any file in the format that it seems to have.
func FuzzDetect(f *testing.F) {
	for _, seed := range []string{line, gzipped(f, line), zstandard(f, line), zipped(f, "a", line), "\xef\xbb\xbfevent,distinct_id,timestamp\na,b,2024-01-01", "<a/>", "[1]", "{\n"} {
		f.Add([]byte(seed))
	}
	fuzz(f, formats.Options{})
}

func FuzzPostHog(f *testing.F) {
	f.Add([]byte(`{"event":"a","distinct_id":"x","timestamp":"2024-01-01","properties":"{\"a\":1}","person_id":"` + id + `","set":{"a":1}}`))
	f.Add([]byte(`{"distinct_id":"x","person_id":"` + id + `","properties":{},"is_deleted":1}`))
	fuzz(f, formats.Options{Format: formats.PostHog})
}

func FuzzMixpanel(f *testing.F) {
	f.Add([]byte(`{"event":"$merge","properties":{"time":1704103200.5,"$distinct_ids":["u1","u2"],"$insert_id":"i"}}`))
	f.Add([]byte(`{"event":"$identify","properties":{"time":1704103200123,"$identified_id":"u1","$anon_id":"d2","$user_id":1,"$device_id":"d"}}`))
	fuzz(f, formats.Options{Format: formats.Mixpanel})
}

func FuzzMixpanelPeople(f *testing.F) {
	f.Add([]byte(`{"$distinct_id":"u1","$properties":{"$email":"a@b.c","$created":"2024-01-01T00:00:00"}}`))
	fuzz(f, formats.Options{Format: formats.MixpanelPeople})
}

func FuzzAmplitude(f *testing.F) {
	f.Add([]byte(`{"event_type":"a","user_id":"u","device_id":"d","event_time":"2024-01-01 10:00:00","event_properties":{"a":1},"user_properties":{"b":1},"groups":{"org":["o"]}}`))
	fuzz(f, formats.Options{Format: formats.Amplitude})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("event,distinct_id,timestamp,a,properties\nb,c,2024-01-01,\"\"\"\",{}\n"))
	f.Add([]byte("event;distinct_id;timestamp;n\nb;c;2024-01-01;1.5\nb;c\n"))
	fuzz(f, formats.Options{Format: formats.CSV})
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(parquetFile(f, exportedRows(3))))
	f.Add([]byte(parquetFile(f, exportedRows(0))))
	fuzz(f, formats.Options{Format: formats.Parquet})
}
