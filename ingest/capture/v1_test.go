package capture_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
)

// headers are those of a good request, with some changed; an empty one is left out.
func headers(changed ...string) func(string) string {
	all := map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "User-Agent": "posthog-node/5.70.0", "PostHog-Sdk-Info": "posthog-node/5.70.0",
		"PostHog-Attempt": "1", "PostHog-Request-Id": id, "PostHog-Request-Timestamp": "2024-06-01T12:00:05.000Z",
	}
	for i := 0; i < len(changed); i += 2 {
		all[changed[i]] = changed[i+1]
	}
	return func(name string) string { return all[name] }
}

func TestV1Headers(t *testing.T) {
	tests := []struct{ name, header, value, want string }{
		{"all of them", "", "", ""},
		{"scheme in other letters", "Authorization", "bEARER  " + token + " ", ""},
		{"type with a charset", "Content-Type", "Application/JSON; charset=utf-8", ""},
		{"gzip", "Content-Encoding", "gzip", ""},
		{"deflate", "Content-Encoding", "Deflate", ""},
		{"br", "Content-Encoding", "br", ""},
		{"zstd", "Content-Encoding", "zstd", ""},
		{"a library without version", "PostHog-Sdk-Info", "x", ""},
		{"no token", "Authorization", "", "missing_api_key -1"},
		{"no scheme", "Authorization", token, "invalid_api_key -1"},
		{"another scheme", "Authorization", "Basic " + token, "invalid_api_key -1"},
		{"an empty token", "Authorization", "Bearer ", "invalid_api_key -1"},
		{"a personal key", "Authorization", "Bearer phx_1", "invalid_api_key -1"},
		{"another type", "Content-Type", "text/plain", "unsupported_media_type -1"},
		{"no type", "Content-Type", "", "invalid_header -1"},
		{"another encoding", "Content-Encoding", "lz4", "unsupported_media_type -1"},
		{"no agent", "User-Agent", "", "invalid_header -1"},
		{"no library", "PostHog-Sdk-Info", "", "invalid_header -1"},
		{"no attempt", "PostHog-Attempt", "", "invalid_header -1"},
		{"attempt 0", "PostHog-Attempt", "0", "invalid_header -1"},
		{"attempt x", "PostHog-Attempt", "x", "invalid_header -1"},
		{"no id", "PostHog-Request-Id", "", "invalid_header -1"},
		{"id x", "PostHog-Request-Id", "x", "invalid_header -1"},
		{"no time", "PostHog-Request-Timestamp", "", "invalid_header -1"},
		{"another time", "PostHog-Request-Timestamp", "2024-06-01", "invalid_header -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if _, err := capture.ReadV1(headers(tt.header, tt.value)); err != nil {
				got = refusal(err)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// v1 decodes events of the newest route, and gives the first result with the line, or the refusal.
func v1(t *testing.T, body string, changed ...string) string {
	t.Helper()
	h, err := capture.ReadV1(headers(changed...))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := capture.DecodeV1(&capture.Request{Body: []byte(body), IP: "203.0.113.7", Now: now, Limits: capture.Limits{Event: 100_000}}, h)
	if err != nil {
		return refusal(err)
	}
	var results []string
	for _, r := range batch.Results {
		results = append(results, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.UUID.String()[34:], r.Outcome, r.Details)))
	}
	return strings.TrimSpace(strings.Join(results, ", ") + "\n" + string(batch.Lines))
}

func v1Event(n int, fields string) string {
	return fmt.Sprintf(`{"uuid":"0190f3c2-aaaa-7abc-8def-%012d","event":"e","distinct_id":"d","timestamp":"2024-06-01T11:00:05Z"%s}`, n, fields)
}

func v1Body(events ...string) string {
	return `{"created_at":"2024-06-01T11:00:00Z","batch":[` + strings.Join(events, ",") + `]}`
}

const v1Added = `"$lib":"posthog-node","$lib_version":"5.70.0","$sent_at":"2024-06-01T12:00:05Z","$ip":"203.0.113.7"`

func v1Line(distinctID, at, properties string) string {
	return `{"event":"e","distinct_id":"` + distinctID + `","timestamp":"` + at + `","uuid":"` + id + `","properties":{` + properties + v1Added + `}}`
}

func TestV1Events(t *testing.T) {
	const corrected, ok = "2024-06-01T11:00:00Z", "01 ok"
	long := strings.Repeat("x", 201)
	tests := []struct{ name, fields, want string }{
		{"plain", "", ok + "\n" + v1Line("d", corrected, "")},
		{"trimmed", `,"distinct_id":" d ","uuid":" ` + id + ` "`, ok + "\n" + v1Line("d", corrected, "")},
		{"session and window", `,"session_id":"s","window_id":"w","properties":{"a":1}`, ok + "\n" + v1Line("d", corrected, `"a":1,"$session_id":"s","$window_id":"w",`)},
		{"null for both", `,"session_id":null,"window_id":null,"options":null`, ok + "\n" + v1Line("d", corrected, "")},
		{
			"options", `,"options":{"process_person_profile":"1","cookieless_mode":0,"product_tour_id":5,"x":[]}`,
			ok + "\n" + v1Line("d", corrected, `"$cookieless_mode":false,"$process_person_profile":true,"$product_tour_id":"5",`),
		},
		{
			"words for options", `,"options":{"process_person_profile":" Yes ","disable_skew_correction":"off"}`,
			ok + "\n" + v1Line("d", corrected, `"$ignore_sent_at":false,"$process_person_profile":true,`),
		},
		{
			"letters for options", `,"options":{"process_person_profile":"N","disable_skew_correction":"f"}`,
			ok + "\n" + v1Line("d", corrected, `"$ignore_sent_at":false,"$process_person_profile":false,`),
		},
		{
			"numbers as texts for options", `,"options":{"process_person_profile":"0.0","disable_skew_correction":"2e1"}`,
			ok + "\n" + v1Line("d", "2024-06-01T11:00:05Z", `"$ignore_sent_at":true,"$process_person_profile":false,`),
		},
		{"blank options", `,"options":{"process_person_profile":"","cookieless_mode":" ","product_tour_id":"\t"}`, ok + "\n" + v1Line("d", corrected, "")},
		{"no correction", `,"options":{"disable_skew_correction":"True"}`, ok + "\n" + v1Line("d", "2024-06-01T11:00:05Z", `"$ignore_sent_at":true,`)},
		{"header before $lib", `,"properties":{"$lib":"x"}`, ok + "\n" + `{"event":"e","distinct_id":"d","timestamp":"2024-06-01T11:00:00Z","uuid":"` + id + `","properties":{"$lib":"posthog-node",` +
			strings.TrimPrefix(v1Added, `"$lib":"posthog-node",`) + "}}"},
		{"illegal id", `,"distinct_id":"Anonymous","properties":{"$process_person_profile":true}`, ok + " person_processing_disabled\n" + strings.Replace(v1Line("Anonymous", corrected, `"$process_person_profile":false,`), `,"properties"`, `,"shared_id":true,"properties"`, 1)},
		{"not stored", `,"event":"$$heatmap"`, ok},
		{"cookieless", `,"distinct_id":"$posthog_cookieless","options":{"cookieless_mode":true}`, ok},
		{"cookieless after an identify", `,"options":{"cookieless_mode":"1"}`, ok},
		{"cookieless as a property", `,"properties":{"$cookieless_mode":"yes"}`, ok},
		{"not cookieless as a property", `,"properties":{"$cookieless_mode":null}`, ok + "\n" + v1Line("d", corrected, `"$cookieless_mode":null,`)},
		{"future", `,"timestamp":"2030-01-01T00:00:00Z"`, ok + "\n" + v1Line("d", "2024-06-01T12:00:00Z", "")},

		{"no name", `,"event":""`, "01 drop missing_event_name"},
		{"null for a name", `,"event":null`, "01 drop missing_event_name"},
		{"long name", `,"event":"` + long + `"`, "01 drop event_name_too_long"},
		{"no id", `,"distinct_id":"  "`, "01 drop missing_distinct_id"},
		{"a number for an id", `,"distinct_id":5`, "01 drop missing_distinct_id"},
		{"long id", `,"distinct_id":"` + long + `"`, "01 drop distinct_id_too_large"},
		{"no time", `,"timestamp":null`, "01 drop invalid_event_timestamp"},
		{"a time of another form", `,"timestamp":"2024-06-01"`, "01 drop invalid_event_timestamp"},
		{"properties", `,"properties":[]`, "01 drop malformed_event_properties"},
		{"session", `,"session_id":5`, "01 drop malformed_event_properties"},
		{"depth", `,"properties":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "01 drop malformed_event_properties"},
		{"names", `,"properties":{` + names(2000) + "}", "01 drop malformed_event_properties"},
		{"options", `,"options":5`, "01 drop invalid_options"},
		{"an option", `,"options":{"process_person_profile":"maybe"}`, "01 drop invalid_options"},
		{"no number for an option", `,"options":{"process_person_profile":"nan"}`, "01 drop invalid_options"},
		{"an infinite number for an option", `,"options":{"process_person_profile":"-Infinity"}`, "01 drop invalid_options"},
		{"a hexadecimal number for an option", `,"options":{"process_person_profile":"0x1p4"}`, "01 drop invalid_options"},
		{"a list for an option", `,"options":{"cookieless_mode":[]}`, "01 drop invalid_options"},
		{"a fraction for a tour", `,"options":{"product_tour_id":1.5}`, "01 drop invalid_options"},
		{"the id of cookieless visitors", `,"distinct_id":" $posthog_cookieless"`, "01 drop cookieless_mode_required"},
		{"the id of cookieless visitors, in another mode", `,"distinct_id":"$posthog_cookieless","options":{"cookieless_mode":false}`, "01 drop cookieless_mode_required"},
		{"the id of cookieless visitors, with an invalid option", `,"distinct_id":"$posthog_cookieless","options":{"cookieless_mode":"x"}`, "01 drop invalid_options"},
		{"size", `,"properties":{"a":"` + strings.Repeat("x", 100_000) + `"}`, "01 drop event_too_big"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, v1(t, v1Body(v1Event(1, tt.fields)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got := v1(t, v1Body(v1Event(2, ""), v1Event(1, tt.fields), v1Event(3, "")))
			first, _, _ := strings.Cut(tt.want, "\n")
			if !strings.HasPrefix(got, "02 ok, "+first+", 03 ok\n") {
				t.Errorf("among others it gives %.300s", got)
			}
		})
	}
}

func TestV1Refusals(t *testing.T) {
	good := v1Event(1, "")
	tests := []struct{ name, body, want string }{
		{"empty", "", "empty_payload -1"},
		{"no JSON", "{", "parse_error -1"},
		{"an event", good, "parse_error -1"},
		{"a list", "[" + good + "]", "parse_error -1"},
		{"invalid UTF-8", v1Body(v1Event(1, `,"event":"`+"\xff"+`"`)), "parse_error -1"},
		{"bad JSON in an event", v1Body(good, `{"a":tru}`), "parse_error -1"},
		{"a number among the events", v1Body(good, "5"), "parse_error -1"},
		{"no events", v1Body(), "empty_batch -1"},
		{"no created_at", `{"batch":[` + good + "]}", "invalid_batch -1 created_at"},
		{"created_at of another form", `{"created_at":"2024-06-01","batch":[` + good + "]}", "invalid_batch -1 created_at"},
		{"created_at that is a number", `{"created_at":5,"batch":[` + good + "]}", "invalid_batch -1 created_at"},
		{"no uuid", v1Body(good, `{"event":"e"}`), "invalid_batch 1 uuid"},
		{"a number for a uuid", v1Body(`{"uuid":5}`), "invalid_batch 0 uuid"},
		{"a uuid twice", v1Body(good, v1Event(2, ""), good), "invalid_batch 2 uuid"},
		{"a uuid twice, in capitals", v1Body(good, strings.Replace(good, id, strings.ToUpper(id), 1)), "invalid_batch 1 uuid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := v1(t, tt.body); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestV1Encodings(t *testing.T) {
	body := []byte(v1Body(v1Event(1, "")))
	packed := func(open func(io.Writer) io.WriteCloser) string {
		var b bytes.Buffer
		w := open(&b)
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := v1(t, string(body))
	all := map[string]struct{ encoding, body string }{
		"gzip": {"gzip", string(gzipped(t, body))},
		"zlib": {"deflate", packed(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })},
		"flate": {"deflate", packed(func(w io.Writer) io.WriteCloser {
			f, err := flate.NewWriter(w, 6)
			if err != nil {
				t.Fatal(err)
			}
			return f
		})},
		"brotli": {"br", packed(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })},
		"zstd": {"zstd", packed(func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		})},
		"identity": {"identity", string(body)},
	}
	for name, tt := range all {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, v1(t, tt.body, "Content-Encoding", tt.encoding)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.encoding == "identity" {
				return
			}
			for _, broken := range []string{tt.body[:len(tt.body)/2], string(body)} {
				if got := v1(t, broken, "Content-Encoding", tt.encoding); got != "parse_error -1" {
					t.Errorf("a broken body gives %s", got)
				}
			}
		})
	}
}

// FuzzV1 reads any body. Each event has a result, and each line reads back.
func FuzzV1(f *testing.F) {
	f.Add([]byte(v1Body(v1Event(1, ""), v1Event(2, `,"options":{"cookieless_mode":1}`), v1Event(3, `,"event":5`))), "")
	f.Add(gzippedBody(f), "gzip")
	f.Fuzz(func(t *testing.T, body []byte, encoding string) {
		h, err := capture.ReadV1(headers("Content-Encoding", encoding))
		if err != nil {
			return
		}
		batch, err := capture.DecodeV1(&capture.Request{Body: body, Now: now, Limits: capture.Limits{Batch: 1 << 20}}, h)
		if err != nil {
			_ = refusal(err)
			return
		}
		if len(batch.Results) < batch.Events {
			t.Fatalf("%d results, %d lines", len(batch.Results), batch.Events)
		}
		checkLines(t, batch)
	})
}

func gzippedBody(f *testing.F) []byte {
	f.Helper()
	return gzipped(f, []byte(v1Body(v1Event(1, ""))))
}
