package formats_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const line = `{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}` + "\n"

// spool makes readers keep files in the test's folder.
func spool(tb testing.TB) func() (*os.File, error) {
	tb.Helper()
	folder := tb.TempDir()
	return func() (*os.File, error) { return os.CreateTemp(folder, "") }
}

// text is a record as a line, with what lines do not say.
func text(r *record.Record) string {
	out := fmt.Sprintf("%d %s", r.Line, record.Append(nil, r))
	if r.PersonProperties != nil {
		out += " was " + r.PersonProperties.JSON()
	}
	if r.OtherID != "" {
		out += " and " + r.OtherID
	}
	if !r.Arrived.IsZero() {
		out += " at " + r.Arrived.Format("2006-01-02T15:04:05")
	}
	return out
}

// read reads all of a file.
func read(tb testing.TB, in io.Reader, options formats.Options) (out []string, summary formats.Summary) {
	tb.Helper()
	if options.Spool == nil {
		options.Spool = spool(tb)
	}
	r := formats.New(in, options)
	defer func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	}()
	for {
		rec, err := r.Read()
		var bad *record.Error
		switch {
		case err == nil:
			out = append(out, text(&rec))
		case errors.As(err, &bad):
			out = append(out, bad.Error())
		case err == io.EOF: //nolint:errorlint // readers return it as it is
			return out, r.Summary()
		default:
			return append(out, "end: "+err.Error()), r.Summary()
		}
	}
}

func zipped(tb testing.TB, files ...string) string {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(f, files[i+1]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func packed(tb testing.TB, text string, pack func(io.Writer) io.WriteCloser) string {
	tb.Helper()
	var b bytes.Buffer
	w := pack(&b)
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func gzipped(tb testing.TB, text string) string {
	tb.Helper()
	return packed(tb, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func zstandard(tb testing.TB, text string) string {
	tb.Helper()
	return packed(tb, text, func(w io.Writer) io.WriteCloser {
		out, err := zstd.NewWriter(w)
		if err != nil {
			tb.Fatal(err)
		}
		return out
	})
}

// TestCompression reads two lines that are packed in all the ways.
func TestCompression(t *testing.T) {
	two := line + line
	brotlied := packed(t, two, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	tests := []struct{ name, file, in, want string }{
		{"plain", "", two, ""},
		{"with a byte order mark", "", "\xef\xbb\xbf" + two, ""},
		{"gzip", "", gzipped(t, two), ""},
		{"gzip in two parts", "", gzipped(t, line) + gzipped(t, line), ""},
		{"gzip with a byte order mark", "", gzipped(t, "\xef\xbb\xbf"+two), ""},
		{"zstd", "", zstandard(t, two), ""},
		{"zstd in two parts", "", zstandard(t, line) + zstandard(t, line), ""},
		{"brotli", "events.jsonl.br", brotlied, ""},
		{"zip", "", zipped(t, "a.json", two), ""},
		{"zip of two", "", zipped(t, "a/", "", "a/1.json.gz", gzipped(t, line), "__MACOSX/a", "junk", "a/empty.json", "", "a/2.json", line), "1 1"},
		{"gzip cut off", "", gzipped(t, two)[:40], "end: reading line 1 of the import: the compressed data ends too early, as if the file were cut off: unexpected EOF"},
		{"zstd cut off", "", zstandard(t, two)[:20], "end: reading the import: the compressed data ends too early, as if the file were cut off: unexpected EOF"},
		{"zip cut off", "", zipped(t, "a.json", two)[:80], "end: reading the import: the ZIP file is damaged or cut off: zip: not a valid zip file"},
		{"zip in zip", "", zipped(t, "a.zip", zipped(t, "b", line)), "end: a.zip in the ZIP file: there is a ZIP file in the ZIP file: import it by itself"},
		{"a bad line in a zip", "", zipped(t, "a.json", line+"{}\n"), "line 2: of a.json: it has no event"},
		{"nothing", "", "", "none"},
		{"only a mark", "", "\xef\xbb\xbf", "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := read(t, strings.NewReader(tt.in), formats.Options{Name: tt.file})
			want := []string{"1 " + line[:len(line)-2] + "}", "2 " + line[:len(line)-2] + "}"}
			switch {
			case tt.want == "none":
				want = nil
			case tt.want == "1 1":
				want[1] = want[0]
			case strings.HasPrefix(tt.want, "end: "):
				want = []string{tt.want}
			case tt.want != "":
				want = []string{want[0], tt.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBombs are small files that unfold to much.
func TestBombs(t *testing.T) {
	zeros := bytes.Repeat([]byte{'0'}, 1<<20)
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, &b, formats.Options{Format: formats.NDJSON})
	if len(got) != 1 || !strings.Contains(got[0], "decompresses to more than 500 times its size") {
		t.Errorf("%.200v", got)
	}
}

func TestUnknownFormats(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"XML", `<?xml version="1.0"?><a/>`, "looks like an XML document; an import takes"},
		{"HTML", "<!DOCTYPE html><html>", "an HTML page"},
		{"JSON array", `[{"event":"a"}]`, "one JSON array: write one object a line"},
		{"indented JSON", "{\n  \"event\": 1\n}", "one JSON document over several lines"},
		{"UTF-16", "\xff\xfe{\x00", "text in UTF-16"},
		{"UTF-16 without mark", "{\x00\"\x00e\x00v\x00", "text in UTF-16"},
		{"PDF", "%PDF-1.7", "a PDF document"},
		{"Excel", zipped(t, "[Content_Types].xml", "<Types/>"), "an Excel or Word document: save it as CSV"},
		{"SQLite", "SQLite format 3\x00", "an SQLite database"},
		{"tar", strings.Repeat("a", 257) + "ustar\x0000" + strings.Repeat("b", 300), "a tar archive"},
		{"text", "hello\nworld\n", "looks like plain text"},
		{"other JSON", `{"a":1,"b":2}` + "\n" + `{"a":1,"b":2}`, "lines of JSON with the fields a, b"},
		{"binary", "a\x00\x01\x02\x03\x05", "binary data"},
		{"gzip twice", gzipped(t, gzipped(t, line)), "compressed twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := read(t, strings.NewReader(tt.in), formats.Options{})
			if len(got) != 1 || !strings.HasPrefix(got[0], "end: ") || !strings.Contains(got[0], tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnknownFields(t *testing.T) {
	in := strings.Repeat(`{"event":"a","distinct_id":"x","timestamp":"2024-01-01","propertes":{"a":1}}`+"\n", 3) +
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01","anything else":1}` + "\n" +
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01","created_at":1}` + "\n" +
		`{"type":"person","distinct_ids":["x"],"distinctIds":1,"created_at":"2024-01-01"}`
	_, summary := read(t, strings.NewReader(in), formats.Options{})
	want := formats.Summary{Format: formats.NDJSON, Unknown: []formats.Unknown{
		{"propertes", 3, "properties"}, {"anything else", 1, ""}, {"created_at", 1, "created_at"}, {"distinctIds", 1, "distinct_ids"},
	}}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// TestManyUnknownFields: names are counted as far as they fit.
func TestManyUnknownFields(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, `{"event":"a","distinct_id":"x","timestamp":"2024-01-01","%d%s":1}`+"\n", i, strings.Repeat("n", 1000))
	}
	_, summary := read(t, strings.NewReader(b.String()), formats.Options{})
	if len(summary.Unknown) != 20 || summary.More != 81 || len(summary.Unknown[0].Name) > 110 {
		t.Errorf("%d fields and %d more, the first %q", len(summary.Unknown), summary.More, summary.Unknown[0].Name)
	}
}

// TestLongUnknownFields: long names are counted by what is shown of them, so that a count does not hold a whole line.
func TestLongUnknownFields(t *testing.T) {
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, `{"event":"a","distinct_id":"x","timestamp":"2024-01-01","%s%d":1}`+"\n", strings.Repeat("n", 100), i)
	}
	_, summary := read(t, strings.NewReader(b.String()), formats.Options{})
	want := []formats.Unknown{{Name: strings.Repeat("n", 100) + "…", Lines: 3}}
	if diff := cmp.Diff(want, summary.Unknown); diff != "" || summary.More > 0 {
		t.Errorf("%d more fields (-want +got):\n%s", summary.More, diff)
	}
}

const id = "018c3a3b-1b1c-7000-8000-000000000001"

// TestFormats reads lines of each format.
func TestFormats(t *testing.T) {
	mixpanelID := uuid.NewSHA1(uuid.MustParse("3c1c9b0e-94d5-5f0a-8f5c-0d7f5a2b7b44"), []byte("mixpanel sign up u1 i1")).String()
	tests := []struct {
		name, in string
		mapping  []string
		format   formats.Format
		want     []string
		unknown  []formats.Unknown
		columns  []string
		skipped  int
	}{
		{
			name: "PostHog's events", format: formats.PostHog,
			in: `{"uuid":"` + id + `","event":"a","distinct_id":"x","timestamp":"2024-01-01T10:00:00.123456+00:00","properties":{"n":1},"person_id":"` + id +
				`","person_properties":{"plan":"pro"},"person_set":{"plan":"pro"},"person_set_once":null,"elements_chain":"a:href=\"x\"","ip":"1.2.3.4","site_url":"","team_id":2,"created_at":"2024-01-01 10:00:01","inserted_at":"2024-01-01 10:00:02"}` + "\n" +
				`{"event":"b","distinct_id":"x","timestamp":"2024-01-01 10:00:00","properties":"{\"n\":\"2\"}","person_id":"","set":"{\"a\":1}","extra":1,"team_id":2}` + "\n" +
				`{"event":"b","distinct_id":"x","timestamp":"never","properties":{}}` + "\n" +
				`{"event":"b","distinct_id":"x","timestamp":"2024-01-01","properties":"[1]"}` + "\n" +
				`{"event":"b","distinct_id":"x","timestamp":"2024-01-01","person_id":"me"}`,
			want: []string{
				`1 {"event":"a","distinct_id":"x","timestamp":"2024-01-01T10:00:00.123456Z","uuid":"` + id + `","elements_chain":"a:href=\"x\"","person_id":"` + id +
					`","properties":{"n":1,"$set":{"plan":"pro"},"$ip":"1.2.3.4"}} was {"plan":"pro"} at 2024-01-01T10:00:01`,
				`2 {"event":"b","distinct_id":"x","timestamp":"2024-01-01T10:00:00Z","properties":{"n":"2","$set":{"a":1}}}`,
				`line 3: its timestamp "never" is not an ISO 8601 time between 1900 and 2261`,
				`line 4: its properties: it is not a JSON object`,
				`line 5: its person_id "me" is not a UUID`,
			},
			unknown: []formats.Unknown{{"extra", 1, ""}},
		},
		{
			name: "PostHog's persons", format: formats.PostHog, skipped: 1,
			in: `{"team_id":1,"distinct_id":"x","person_id":"` + id + `","properties":{"a":1},"person_version":3,"person_distinct_id_version":0,"created_at":"2024-01-01T00:00:00","is_deleted":false}` + "\n" +
				`{"team_id":1,"distinct_id":"y","person_id":"` + id + `","properties":{},"is_deleted":true}` + "\n" +
				`{"team_id":1,"distinct_id":"z","person_id":"` + id + `","properties":"{}","is_deleted":0}`,
			want: []string{
				`1 {"type":"person","distinct_ids":["x"],"person_id":"` + id + `","created_at":"2024-01-01T00:00:00Z","properties":{"a":1}}`,
				`3 {"type":"person","distinct_ids":["z"],"person_id":"` + id + `"}`,
			},
		},
		{
			name: "Mixpanel's events", format: formats.Mixpanel,
			in: `{"event":"sign up","properties":{"time":1704103200,"distinct_id":"u1","$insert_id":"i1","mp_lib":"web","$city":"Rome","plan":"pro","mp_processing_time_ms":1}}` + "\n" +
				`{"event":"$mp_web_page_view","properties":{"time":1704103200123,"distinct_id":"u1","$user_id":"u1","$device_id":"d1"}}` + "\n" +
				`{"event":"$identify","properties":{"time":1704103200,"distinct_id":"u1","$identified_id":"u1","$anon_id":"d2"}}` + "\n" +
				`{"event":"$merge","properties":{"time":1704103200,"$distinct_ids":["u1","u2"]}}` + "\n" +
				`{"event":"x","properties":{"time":1704103200,"$device_id":"d1"}}` + "\n" +
				`{"event":"x","properties":{"time":1704103200}}` + "\n" +
				`{"event":"x","properties":{"distinct_id":"u"}}`,
			want: []string{
				`1 {"event":"sign up","distinct_id":"u1","timestamp":"2024-01-01T10:00:00Z","uuid":"` + mixpanelID + `","properties":{"$lib":"web","$geoip_city_name":"Rome","plan":"pro"}}`,
				`2 {"event":"$pageview","distinct_id":"u1","timestamp":"2024-01-01T10:00:00.123Z","properties":{"$user_id":"u1","$device_id":"d1"}} and $device:d1`,
				`3 {"event":"$identify","distinct_id":"u1","timestamp":"2024-01-01T10:00:00Z","properties":{"$identified_id":"u1","$anon_id":"d2"}} and d2`,
				`4 {"event":"$merge","distinct_id":"u1","timestamp":"2024-01-01T10:00:00Z","properties":{"$distinct_ids":["u1","u2"]}} and u2`,
				`5 {"event":"x","distinct_id":"$device:d1","timestamp":"2024-01-01T10:00:00Z","properties":{"$device_id":"d1"}}`,
				`line 6: it has no distinct id`,
				`line 7: it has no time`,
			},
		},
		{
			name: "Mixpanel's people", format: formats.MixpanelPeople,
			in:   `{"$distinct_id":"u1","$properties":{"$email":"a@b.c","$created":"2024-01-01T00:00:00","$city":"Rome","plan":"pro","$last_seen":"2024-02-01T00:00:00"}}`,
			want: []string{`1 {"type":"person","distinct_ids":["u1"],"created_at":"2024-01-01T00:00:00Z","properties":{"email":"a@b.c","$geoip_city_name":"Rome","plan":"pro","$last_seen":"2024-02-01T00:00:00"}}`},
		},
		{
			name: "Amplitude's events", format: formats.Amplitude,
			in: `{"event_type":"sign up","user_id":"u1","device_id":"d1","amplitude_id":7,"event_time":"2024-01-01 10:00:00.123000","uuid":"` + id +
				`","event_properties":{"n":1},"user_properties":{"plan":"pro","initial_referrer":"EMPTY","initial_utm_source":"x"},"groups":{"org":["o1"]},"country":"Italy","city":null,"server_received_time":"2024-01-01 10:00:01.000000","app":1,"library":"web","new_field":1}` + "\n" +
				`{"event_type":"[Amplitude] Page Viewed","device_id":"d1","user_id":null,"event_time":"2024-01-01 10:00:00","event_properties":{"[Amplitude] Page URL":"https://a.b/"},"session_id":-1}` + "\n" +
				`{"event_type":"x","event_time":"2024-01-01 10:00:00"}`,
			want: []string{
				`1 {"event":"sign up","distinct_id":"u1","timestamp":"2024-01-01T10:00:00.123Z","uuid":"` + id +
					`","properties":{"n":1,"$geoip_country_name":"Italy","$lib":"web","$device_id":"d1","$groups":{"org":"o1"}}} was {"plan":"pro","$initial_utm_source":"x"} and d1 at 2024-01-01T10:00:01`,
				`2 {"event":"$pageview","distinct_id":"d1","timestamp":"2024-01-01T10:00:00Z","properties":{"[Amplitude] Page URL":"https://a.b/","$current_url":"https://a.b/","$device_id":"d1"}}`,
				`line 3: it has no distinct id`,
			},
			unknown: []formats.Unknown{{"new_field", 1, ""}},
		},
		{
			name: "CSV", format: formats.CSV, columns: []string{"plan", "amount"},
			in: "event,distinct_id,timestamp,plan,amount\r\n" +
				"buy,1,2024-01-01 10:00:00,\"pro, \"\"yearly\"\"\nnow\",9.5\r\n" +
				"buy,2,1704103200,,007\r\n\r\n" +
				"buy,3\r\n" + "buy,,2024-01-01,,\r\n" + "buy,4,2024-01-01,true,1\r\n",
			want: []string{
				`2 {"event":"buy","distinct_id":"1","timestamp":"2024-01-01T10:00:00Z","properties":{"plan":"pro, \"yearly\"\nnow","amount":9.5}}`,
				`4 {"event":"buy","distinct_id":"2","timestamp":"2024-01-01T10:00:00Z","properties":{"amount":"007"}}`,
				`line 6: it has 2 columns, and the header 5`,
				`line 7: it has no distinct_id`,
				`8 {"event":"buy","distinct_id":"4","timestamp":"2024-01-01T00:00:00Z","properties":{"plan":true,"amount":1}}`,
			},
		},
		{
			name: "CSV with other names and semicolons", format: formats.CSV,
			mapping: []string{"what=event", "who=distinct_id", "when=timestamp", "mail=person.email", "firm=groups.organization", "junk=-", "n=properties.count"},
			in:      "\xef\xbb\xbfwhat;who;when;mail;firm;junk;n\nbuy;u1;2024-01-01;a@b.c;o1;x;3\n",
			want:    []string{`2 {"event":"buy","distinct_id":"u1","timestamp":"2024-01-01T00:00:00Z","properties":{"count":3,"$set":{"email":"a@b.c"},"$groups":{"organization":"o1"}}}`},
		},
		{
			name: "CSV with properties as JSON", format: formats.CSV, unknown: []formats.Unknown{{"propertes", 1, "properties"}},
			in:   "event,distinct_id,timestamp,properties,propertes,team_id,person_id\nbuy,u1,2024-01-01,\"{\"\"n\"\":1}\",x,1," + id + "\n",
			want: []string{`2 {"event":"buy","distinct_id":"u1","timestamp":"2024-01-01T00:00:00Z","person_id":"` + id + `","properties":{"n":1}}`},
		},
		{
			name: "CSV of people", format: formats.CSV, mapping: []string{"id=distinct_id", "email=person.email", "joined=created_at", "props=person"},
			in:   "id,email,joined,props\nu1,a@b.c,2024-01-01,\"{\"\"n\"\":1}\"\n",
			want: []string{`2 {"type":"person","distinct_ids":["u1"],"created_at":"2024-01-01T00:00:00Z","properties":{"n":1,"email":"a@b.c"}}`},
		},
		{
			name: "CSV with blanks in the header", format: formats.CSV, mapping: []string{"email=distinct_id"}, columns: []string{"plan"},
			in:   "event, email,timestamp\t, plan\nbuy,u1,2024-01-01,pro\n",
			want: []string{`2 {"event":"buy","distinct_id":"u1","timestamp":"2024-01-01T00:00:00Z","properties":{"plan":"pro"}}`},
		},
		{
			name: "CSV with a column twice", format: formats.CSV,
			in:   "event,distinct_id,timestamp,plan, plan\nbuy,u1,2024-01-01,pro,free\n",
			want: []string{`end: reading the import: the columns "plan" and "plan" both become properties.plan: map one of them to another field, or to - to leave it out`},
		},
		{
			name: "CSV with a column that another is mapped to", format: formats.CSV, mapping: []string{"tier=properties.plan"},
			in:   "event,distinct_id,timestamp,plan,tier\nbuy,u1,2024-01-01,pro,free\n",
			want: []string{`end: reading the import: the columns "plan" and "tier" both become properties.plan: map one of them to another field, or to - to leave it out`},
		},
		{
			name: "CSV with a field twice", format: formats.CSV, mapping: []string{"what=event"},
			in:   "event,what,distinct_id,timestamp\nbuy,sell,u1,2024-01-01\n",
			want: []string{`end: reading the import: the columns "event" and "what" both become event: map one of them to another field, or to - to leave it out`},
		},
		{
			name: "CSV with columns left out and without names", format: formats.CSV, mapping: []string{"a=-", "b=-"}, columns: []string{"plan"},
			in:   "event,distinct_id,timestamp,a,a,b,plan,,\nbuy,u1,2024-01-01,1,2,3,pro,,\n",
			want: []string{`2 {"event":"buy","distinct_id":"u1","timestamp":"2024-01-01T00:00:00Z","properties":{"plan":"pro"}}`},
		},
		{
			name: "CSV without an event", format: formats.CSV,
			in:   "name,distinct_id,timestamp\n",
			want: []string{`end: reading the import: no column is the field event: say which one is with --map COLUMN=event; the file has the columns name, distinct_id, timestamp`},
		},
		{
			name: "CSV with a missing column", format: formats.CSV, mapping: []string{"nome=event"},
			in:   "name,distinct_id,timestamp\n",
			want: []string{`end: reading the import: the file has no column "nome"; it has name, distinct_id, timestamp`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mapping, err := formats.ParseMapping(tt.mapping)
			if err != nil {
				t.Fatal(err)
			}
			got, summary := read(t, strings.NewReader(tt.in), formats.Options{Map: mapping})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			want := formats.Summary{Format: tt.format, Unknown: tt.unknown, Columns: tt.columns, Skipped: tt.skipped}
			if diff := cmp.Diff(want, summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTimes reads the times that texts and numbers mean.
func TestTimes(t *testing.T) {
	tests := []struct{ in, want string }{
		{"2024-01-15", "2024-01-15T00:00:00Z"},
		{"20240115", "2024-01-15T00:00:00Z"},
		{"20240229", "2024-02-29T00:00:00Z"},
		{"20240115.0", "2024-01-15T00:00:00Z"},
		{"2.0240115e+07", "2024-01-15T00:00:00Z"}, // as a float of Parquet is written
		{"19700101", "1970-01-01T00:00:00Z"},
		{"21001231", "2100-12-31T00:00:00Z"},
		{"19691231", "1970-08-16T21:47:11Z"},
		{"21010101", "1970-09-01T04:08:21Z"},
		{"20230229", "1970-08-23T03:30:29Z"},
		{"20241301", "1970-08-23T06:35:01Z"},
		{"20240115.5", "1970-08-23T06:15:15.5Z"},
		{"2024", "1970-01-01T00:33:44Z"},
		{"202401", "1970-01-03T08:13:21Z"},
		{"1704103200", "2024-01-01T10:00:00Z"},
		{"1704103200123", "2024-01-01T10:00:00.123Z"},
		{"1704103200123456", "2024-01-01T10:00:00.123456Z"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			files := map[string]string{
				"CSV":                 "event,distinct_id,timestamp\na,x," + tt.in + "\n",
				"text in JSON":        `{"event":"a","properties":{"time":"` + tt.in + `","distinct_id":"x"}}`,
				"Amplitude":           `{"event_type":"a","user_id":"x","event_time":"` + tt.in + `"}`,
				"PostHog":             `{"event":"a","distinct_id":"x","timestamp":"` + tt.in + `","team_id":1}`,
				"a profile's created": `{"$distinct_id":"x","$properties":{"$created":"` + tt.in + `"}}`,
			}
			if !strings.Contains(tt.in, "-") {
				files["number in JSON"] = `{"event":"a","properties":{"time":` + tt.in + `,"distinct_id":"x"}}`
			}
			for name, in := range files {
				if got, _ := read(t, strings.NewReader(in), formats.Options{}); len(got) != 1 || !strings.Contains(got[0], `"`+tt.want+`"`) {
					t.Errorf("%s: %q, want the time %s", name, got, tt.want)
				}
			}
		})
	}
}

func TestMappings(t *testing.T) {
	tests := []struct{ pair, want string }{
		{"a=event", ""},
		{"a=b=properties.c", ""},
		{"a=properties.", `"properties." is no field that a column can become: did you mean properties?`},
		{"a=evnt", `"evnt" is no field that a column can become: did you mean event?`},
		{"a", `"a" does not map a column: want, for example, email=distinct_id or plan=properties.plan`},
	}
	for _, tt := range tests {
		_, err := formats.ParseMapping([]string{tt.pair})
		if got := fmt.Sprint(err); err != nil && got != tt.want || err == nil && tt.want != "" {
			t.Errorf("%s: %v, want %s", tt.pair, err, tt.want)
		}
	}
	if _, err := formats.ParseMapping([]string{"a=event", "a=uuid"}); err == nil {
		t.Error("a column is mapped twice")
	}
}

// TestHostileCSV: rows and headers that take too much.
func TestHostileCSV(t *testing.T) {
	header := "event,distinct_id,timestamp\n"
	tests := []struct{ name, in, want string }{
		{"a quote that is not closed", header + `a,b,"` + strings.Repeat("x\n", 8<<20), "the row is longer than 8 MiB"},
		{"a header without end", strings.Repeat("a,", 8<<20), "the row is longer than 8 MiB"},
		{"columns", header[:len(header)-1] + strings.Repeat(",a", 3000) + "\n", "the file has 3003 columns; it can have 2050"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := read(t, strings.NewReader(tt.in), formats.Options{Format: formats.CSV})
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%.300q, want %q", got, tt.want)
			}
		})
	}
}

// TestFile reads ZIP from a file as it is, and leaves nothing behind of one that it keeps.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(name, []byte(zipped(t, "a.json", line)), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	folder := t.TempDir()
	options := formats.Options{Spool: func() (*os.File, error) { return os.CreateTemp(folder, "") }}
	if got, _ := read(t, file, options); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got, _ := read(t, strings.NewReader(zipped(t, "a.json", line)), options); len(got) != 1 {
		t.Errorf("%q", got)
	}
	options.MaxSpool = 10
	if got, _ := read(t, strings.NewReader(zipped(t, "a.json", line)), options); len(got) != 1 || !strings.Contains(got[0], "larger than") {
		t.Errorf("%q", got)
	}
	inner := parquetFile(t, exportedRows(3))
	options.MaxSpool = int64(len(inner)) + 10
	if got, _ := read(t, strings.NewReader(zipped(t, "a.parquet", inner)), options); len(got) != 1 || !strings.Contains(got[0], "larger than") {
		t.Errorf("a file and one in it: %q", got)
	}
	options.MaxSpool *= 3
	if got, _ := read(t, strings.NewReader(zipped(t, "a.parquet", inner, "b.parquet", inner, "c.parquet", inner)), options); len(got) != 9 {
		t.Errorf("files one after the other: %q", got)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v left, %v", left, err)
	}
}
