package capture_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

var now = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

const id = "0190f3c2-aaaa-7abc-8def-000000000001"

// one returns an event with the fields under test.
func one(fields string) string {
	return `{"api_key":"` + token + `","event":"e","distinct_id":"d","uuid":"` + id + `"` + fields + "}"
}

// lines decodes a request and returns its lines, or its refusal.
func lines(r *capture.Request) string {
	r.Now = now
	batch, err := capture.Decode(r)
	if err != nil {
		return refusal(err)
	}
	return strings.TrimSuffix(string(batch.Lines), "\n")
}

// refusal is an error as code, field and index.
func refusal(err error) string {
	refused, ok := errors.AsType[*capture.RefusalError](err)
	if !ok {
		return "no refusal: " + err.Error()
	}
	return strings.TrimRight(fmt.Sprintf("%s %d %s", refused.Code, refused.Index, refused.Attr), " ")
}

// line returns the line of the event of one.
func line(properties string) string {
	if properties != "" {
		properties = `,"properties":{` + properties + "}"
	}
	return `{"event":"e","distinct_id":"d","timestamp":"2024-06-01T12:00:00Z","uuid":"` + id + `"` + properties + "}"
}

func TestPayloads(t *testing.T) {
	body := one(`,"properties":{"a":"ä>>?"}`)
	want := line(`"a":"ä>>?"`)
	encoded := base64.StdEncoding.EncodeToString([]byte(body + strings.Repeat(" ", (3-len(body)%3)%3)))
	packed := string(gzipped(t, []byte(body)))
	const form = "application/x-www-form-urlencoded"
	tests := []struct {
		name string
		in   capture.Request
		want string
	}{
		{"nothing", capture.Request{}, "empty_payload -1"},
		{"query", capture.Request{Data: body}, want},
		{"query before body", capture.Request{Data: body, Body: []byte("{")}, want},
		{"query in base64", capture.Request{Data: encoded}, want},
		{"query in base64 whose plus signs became blanks", capture.Request{Data: strings.ReplaceAll(encoded, "+", " ")}, want},
		{"body", capture.Request{Body: []byte(body)}, want},
		{"body of another type", capture.Request{Body: []byte(body), ContentType: "text/plain;charset=UTF-8"}, want},
		{"base64", capture.Request{Body: []byte(encoded)}, want},
		{"base64 with its hint", capture.Request{Body: []byte(encoded), Compression: "base64"}, want},
		{"base64 twice", capture.Request{Body: []byte(base64.StdEncoding.EncodeToString([]byte(encoded)))}, want},
		{"base64 with a line feed is none", capture.Request{Body: []byte(encoded + "\n")}, "parse_error -1"},
		{"form", capture.Request{Body: []byte("data=" + url.QueryEscape(body)), ContentType: form}, want},
		{"form with a charset", capture.Request{Body: []byte("data=" + url.QueryEscape(body)), ContentType: form + "; charset=UTF-8"}, want},
		{"form with other fields", capture.Request{Body: []byte("ver=1&ip=1&data=" + url.QueryEscape(body) + "&_=5"), ContentType: form}, want},
		{"form in base64", capture.Request{Body: []byte("data=" + url.QueryEscape(encoded)), ContentType: form}, want},
		{"form in base64 that was not escaped", capture.Request{Body: []byte("compression=base64&data=" + encoded), ContentType: form}, want},
		{"form in base64 as a whole", capture.Request{Body: pad64("data=" + url.QueryEscape(body)), ContentType: form}, want},
		{"form of gzip", capture.Request{Body: []byte("compression=gzip-js&data=" + url.QueryEscape(packed)), ContentType: form}, want},
		{"form without data", capture.Request{Body: []byte("event=x&distinct_id=y"), ContentType: form}, "parse_error -1"},
		{"form with empty data", capture.Request{Body: []byte("data="), ContentType: form}, "parse_error -1"},
		{"form that is JSON", capture.Request{Body: []byte(body), ContentType: form}, "parse_error -1"},
		{"JSON with the type of a form and a charset", capture.Request{Body: []byte(body), ContentType: form + "; charset=UTF-8"}, want},
		{"gzip with the type of a form and a charset", capture.Request{Body: []byte(packed), ContentType: form + ";charset=utf-8"}, want},
		{"form with a charset without data", capture.Request{Body: []byte("event=x"), ContentType: form + "; charset=UTF-8"}, "parse_error -1"},
		{"form that ends within an escape", capture.Request{Body: []byte("data=%7"), ContentType: form}, "parse_error -1"},
		{"form with a bad escape", capture.Request{Body: []byte("data=%7x"), ContentType: form}, "parse_error -1"},
		{"form that is not said to be one", capture.Request{Body: []byte("data=" + url.QueryEscape(body))}, "parse_error -1"},
		{"gzip by its first bytes", capture.Request{Body: []byte(packed)}, want},
		{"gzip by the query", capture.Request{Body: []byte(packed), Compression: "gzip"}, want},
		{"gzip by the old name", capture.Request{Body: []byte(packed), Compression: "gzip-js"}, want},
		{"gzip by the header", capture.Request{Body: []byte(packed), ContentEncoding: "gzip"}, want},
		{"gzip in spite of the hint", capture.Request{Body: []byte(packed), Compression: "lz64"}, want},
		{"gzip in base64", capture.Request{Body: []byte(base64.StdEncoding.EncodeToString([]byte(packed)))}, want},
		{"gzip with something after it", capture.Request{Body: []byte(packed + "more")}, want},
		{"invalid gzip by the query", capture.Request{Body: []byte(body), Compression: "gzip"}, "parse_error -1"},
		{"invalid gzip by the header", capture.Request{Body: []byte(body), ContentEncoding: "gzip"}, "parse_error -1"},
		{"gzip that is cut off", capture.Request{Body: []byte(packed[:len(packed)-9])}, "parse_error -1"},
		{"gzip of gzip is not undone twice", capture.Request{Body: gzipped(t, []byte(packed))}, "parse_error -1"},
		{"the query's hint before the header's", capture.Request{Body: []byte(body), Compression: "gzip", ContentEncoding: "identity"}, "parse_error -1"},
		{"unknown compression is none", capture.Request{Body: []byte(body), Compression: "zip", ContentEncoding: "br"}, want},
		{"invalid lz64", capture.Request{Body: []byte(body), Compression: "lz64"}, "parse_error -1"},
		{"invalid UTF-8", capture.Request{Body: []byte(`{"event":"` + "\xff" + `"}`)}, "parse_error -1"},
		{"too large when decoded", capture.Request{Body: gzipped(t, []byte(body)), Limits: capture.Limits{Batch: len(body) - 1}}, "payload_too_large -1"},
		{"just not too large", capture.Request{Body: gzipped(t, []byte(body)), Limits: capture.Limits{Batch: len(body)}}, "payload_too_large -1"},
		{"too large without compression", capture.Request{Body: []byte(body), Limits: capture.Limits{Batch: len(body) - 1}}, "payload_too_large -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "just not too large" { // its line has more bytes than it, but not twice as many
				tt.want = want
			}
			if diff := cmp.Diff(tt.want, lines(&tt.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func pad64(text string) []byte {
	for len(text)%3 != 0 {
		text = "a=1&" + text
	}
	return []byte(base64.StdEncoding.EncodeToString([]byte(text)))
}

func TestForms(t *testing.T) {
	event := `{"event":"e","distinct_id":"d"}`
	with := func(token string) string { return `{"event":"e","distinct_id":"d",` + token + `}` }
	tests := []struct{ name, body, query, want string }{
		{"a number", "42", "", "parse_error -1"},
		{"a text", `"x"`, "", "parse_error -1"},
		{"null", "null", "", "parse_error -1"},
		{"cut off", `{"api_key":"` + token + `","batch":[`, "", "parse_error -1"},
		{"more after it", with(`"token":"`+token+`"`) + "}", "", "parse_error -1"},
		{"single quotes", `{'event':'x'}`, "", "parse_error -1"},
		{"list of numbers", "[1,2]", "", "parse_error -1"},
		{"list of lists", "[[" + event + "]]", "", "parse_error -1"},
		{"batch that is not a list", `{"api_key":"x","batch":{}}`, "", "parse_error -1"},
		{"batch followed by bad JSON", `{"api_key":"` + token + `","batch":[` + event + `],"x":[}}`, "", "parse_error -1"},
		{"batch with too many other fields", `{"api_key":"` + token + `","batch":[` + event + `]` + strings.Repeat(`,"x":1`, 101) + `}`, "", "parse_error -1"},
		{"bad JSON after a bad token", `[` + with(`"token":"phx_1"`) + `,{"a":tru}]`, "", "parse_error -1"},
		{"bad JSON after a bad event", `{"api_key":"` + token + `","batch":[{"event":1},{"a":01}]}`, "", "parse_error -1"},
		{"empty list", "[]", "", "empty_batch -1"},
		{"empty batch", `{"batch":[]}`, "", "empty_batch -1"},
		{"no token", event, "", "missing_api_key -1"},
		{"no token in a list", "[" + event + "," + event + "]", "", "missing_api_key -1"},
		{"no token in a batch, whatever its events say", `{"batch":[` + with(`"token":"`+token+`"`) + "]}", "", "missing_api_key -1"},
		{"null for a token", `{"api_key":null,"batch":[` + event + `]}`, "", "missing_api_key -1"},
		{"token", with(`"token":"` + token + `"`), "", token},
		{"api_key", with(`"api_key":"` + token + `"`), "", token},
		{"$token", with(`"$token":"` + token + `"`), "", token},
		{"properties.token", with(`"properties":{"token":"` + token + `"}`), "", token},
		{"top level before properties", with(`"token":"` + token + `","properties":{"token":"other"}`), "", token},
		{"null is no token", with(`"token":null,"properties":{"token":"` + token + `"}`), "", token},
		{"properties.token that is no text", with(`"properties":{"token":5}`), token, token},
		{"a batch's token", `{"token":"` + token + `","batch":[` + with(`"token":"other"`) + `]}`, "", token},
		{"escaped", `{"token":"` + strings.Replace(token, "p", `\u0070`, 1) + `","batch":[` + event + `]}`, "", token},
		{"escaped in an event", with(`"token":"` + strings.Replace(token, "p", `\u0070`, 1) + `"`), "", token},
		{"trimmed", with(`"token":" ` + token + `\n"`), "", token},
		{"of the query", event, token, token},
		{"the payload's before the query's", with(`"token":"` + token + `"`), "other", token},
		{"some of a list", "[" + event + "," + with(`"token":"`+token+`"`) + "," + event + "]", "", token},
		{"the same twice", "[" + with(`"token":"`+token+`"`) + "," + with(`"api_key":"`+token+`"`) + "]", "", token},
		{"two", "[" + with(`"token":"a"`) + "," + with(`"token":"b"`) + "]", "", "inconsistent_api_keys -1"},
		{"empty", with(`"token":""`), token, "invalid_api_key -1"},
		{"blank", with(`"token":"  "`), "", "invalid_api_key -1"},
		{"too long", with(`"token":"` + strings.Repeat("p", 65) + `"`), "", "invalid_api_key -1"},
		{"just not too long", with(`"token":"` + strings.Repeat("p", 64) + `"`), "", strings.Repeat("p", 64)},
		{"not ASCII", with(`"token":"phc_é"`), "", "invalid_api_key -1"},
		{"a personal key", with(`"token":"phx_1"`), "", "invalid_api_key -1"},
		{"a number for a token", with(`"token":5`), "", "invalid_api_key -1"},
		{"a bad token before a bad event", `{"token":"phx_1","distinct_id":"d"}`, "", "invalid_api_key -1"},
		{"no token before a bad event", `{"distinct_id":"d"}`, "", "missing_api_key -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if batch, err := capture.Decode(&capture.Request{Body: []byte(tt.body), Token: tt.query, Now: now}); err != nil {
				got = refusal(err)
			} else {
				got = batch.Token
			}
			if got != tt.want {
				t.Errorf("Decode(%s) = %s, want %s", tt.body, got, tt.want)
			}
		})
	}
}

func TestEventFields(t *testing.T) {
	long := strings.Repeat("é", 200)
	named := func(name, distinctID, rest string) string {
		return fmt.Sprintf(`{"event":%s,"distinct_id":%s,"timestamp":"2024-06-01T12:00:00Z","uuid":"%s"%s}`, name, distinctID, id, rest)
	}
	event := func(fields string) string { return `{"token":"` + token + `","uuid":"` + id + `",` + fields + `}` }
	tests := []struct{ name, body, want string }{
		{"name of 200 characters", event(`"distinct_id":"d","event":"` + long + `"`), named(`"`+long+`"`, `"d"`, "")},
		{"longer name", event(`"distinct_id":"d","event":"` + long + `é"`), named(`"`+long+`"`, `"d"`, "")},
		{"no name", event(`"distinct_id":"d"`), "missing_event_name 0 event"},
		{"null for a name", event(`"distinct_id":"d","event":null`), "missing_event_name 0 event"},
		{"empty name", event(`"distinct_id":"d","event":""`), "missing_event_name 0 event"},
		{"a number for a name", event(`"distinct_id":"d","event":5`), "invalid_event 0 event"},

		{"$distinct_id", event(`"event":"e","$distinct_id":"x"`), named(`"e"`, `"x"`, "")},
		{"distinct_id first", event(`"event":"e","$distinct_id":"y","distinct_id":"x"`), named(`"e"`, `"x"`, "")},
		{"properties.distinct_id", event(`"event":"e","properties":{"distinct_id":"x"}`), named(`"e"`, `"x"`, `,"properties":{"distinct_id":"x"}`)},
		{"null, and properties.distinct_id", event(`"event":"e","distinct_id":null,"properties":{"distinct_id":7}`), named(`"e"`, `"7"`, `,"properties":{"distinct_id":7}`)},
		{"number", event(`"event":"e","distinct_id":23.40`), named(`"e"`, `"23.40"`, "")},
		{"large number", event(`"event":"e","distinct_id":123456789012345678901234567890`), named(`"e"`, `"123456789012345678901234567890"`, "")},
		{"boolean", event(`"event":"e","distinct_id":true`), named(`"e"`, `"true"`, "")},
		{"list", event(`"event":"e","distinct_id":["a", 1]`), named(`"e"`, `"[\"a\",1]"`, "")},
		{"object, with its keys sorted", event(`"event":"e","distinct_id":{"b":"<","a":1.50}`), named(`"e"`, `"{\"a\":1.50,\"b\":\"<\"}"`, "")},
		{"blanks stay", event(`"event":"e","distinct_id":" x "`), named(`"e"`, `" x "`, "")},
		{"id of 200 characters", event(`"event":"e","distinct_id":"` + long + `x"`), named(`"e"`, `"`+long+`"`, "")},
		{"NUL and lone surrogates", event(`"event":"e\u0000","distinct_id":"\u0000\ud800"`), named(`"e�"`, `"��"`, "")},
		{"no distinct_id", event(`"event":"e"`), "missing_distinct_id 0 distinct_id"},
		{"null for a distinct_id", event(`"event":"e","distinct_id":null`), "missing_distinct_id 0 distinct_id"},
		{"empty distinct_id, whatever properties say", event(`"event":"e","distinct_id":"","properties":{"distinct_id":"x"}`), "missing_distinct_id 0 distinct_id"},
		{"white space", event(`"event":"e","distinct_id":" \t\u00a0"`), "missing_distinct_id 0 distinct_id"},

		{"uuid in capitals", strings.ToUpper(id), ""},
		{"uuid without dashes", strings.ReplaceAll(id, "-", ""), ""},
		{"uuid in braces", "{" + id + "}", ""},
		{"uuid in other brackets", "(" + id + ")", "invalid_event 0 uuid"},
		{"invalid uuid", "17", "invalid_event 0 uuid"},

		{"a number for a uuid", `{"token":"` + token + `","event":"e","distinct_id":"d","uuid":5}`, "invalid_event 0 uuid"},
		{"a list for properties", one(`,"properties":[]`), "invalid_event 0 properties"},
		{"null for properties", one(`,"properties":null`), "invalid_event 0 properties"},
		{"a number for a timestamp", one(`,"timestamp":5`), "invalid_event 0 timestamp"},
		{"null for a timestamp", one(`,"timestamp":null`), line("")},
		{"a fraction for an offset", one(`,"offset":1.5`), "invalid_event 0 offset"},
		{"a text for an offset", one(`,"offset":"1"`), "invalid_event 0 offset"},
		{"a list for $set", one(`,"$set":[]`), "invalid_event 0 $set"},
		{"a text for $set_once", one(`,"$set_once":"x"`), "invalid_event 0 $set_once"},
		{"null for $set", one(`,"$set":null`), line("")},
		{"$set moves", one(`,"$set":{"a":1},"$set_once":{"b":2}`), line(`"$set":{"a":1},"$set_once":{"b":2}`)},
		{"$set over the one in properties", one(`,"$set":{"a":1,"c":3},"properties":{"$set":{"a":2,"b":2}}`), line(`"$set":{"a":1,"b":2,"c":3}`)},
		{"$set over a text in properties", one(`,"$set":{"a":1},"properties":{"$set":"x"}`), line(`"$set":{"a":1}`)},
		{"$unset moves", one(`,"$unset":["a"]`), line(`"$unset":["a"]`)},
		{"$unset as an object", one(`,"$unset":{"a":1}`), line(`"$unset":{"a":1}`)},
		{"$unset with one in properties", one(`,"$unset":["a"],"properties":{"$unset":{"b":0}}`), line(`"$unset":["b","a"]`)},
		{"$unset with items that are no keys", one(`,"$unset":["a",null],"properties":{"$unset":[true,"b"]}`), line(`"$unset":["b","a"]`)},
		{"a text for $unset", one(`,"$unset":"a"`), line("")},
		{"$cookieless_mode", one(`,"properties":{"$cookieless_mode":false}`), line(`"$cookieless_mode":false`)},
		{"in $cookieless_mode", one(`,"distinct_id":"$posthog_cookieless","properties":{"$cookieless_mode":true}`), ""},
		{"a text for $cookieless_mode", one(`,"properties":{"$cookieless_mode":"true"}`), "invalid_event 0 properties.$cookieless_mode"},
		{"other fields", one(`,"type":"capture","library":5,"library_version":{},"send_feature_flags":[]`), line("")},

		{"$os_name", one(`,"properties":{"$os_name":"iOS"}`), line(`"$os_name":"iOS","$os":"iOS"`)},
		{"$os before $os_name", one(`,"properties":{"$os_name":"iOS","$os":"Linux"}`), line(`"$os_name":"iOS","$os":"Linux"`)},
		{"integers keep their digits", one(`,"properties":{"a":[9007199254740993,18446744073709551615]}`), line(`"a":[9007199254740993,18446744073709551615]`)},
		{"too deep", one(`,"properties":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`), "invalid_event 0"},
		{"too deep, with its token in the properties after it", `{"event":"e","distinct_id":"d","properties":{"a":` + strings.Repeat("[", 70) +
			strings.Repeat("]", 70) + `,"token":"` + token + `"}}`, "invalid_event 0"},
		{"too many names", one(`,"properties":{"a":{` + names(2001) + `}}`), "invalid_event 0 properties"},
		{"an exception with a deep stack", one(`,"properties":` + deepStack), line(strings.Trim(deepStack, "{}"))},
		{"far too many names", one(`,"properties":{` + names(5000) + `}`), "invalid_event 0"},
		{"too large a number", one(`,"properties":{"a":1e999}`), "invalid_event 0"},
		{"the second of a batch", `{"api_key":"` + token + `","batch":[` + one("") + `,{"event":"x"},{"event":5}]}`, "missing_distinct_id 1 distinct_id"},
		{"not stored", `[` + strings.Join([]string{
			one(`,"event":"$performance_event"`), one(`,"event":"$snapshot"`), one(`,"event":"$snapshot_items"`), one(`,"event":"$$heatmap"`),
			one(`,"event":"$$client_ingestion_warning"`),
		}, ",") + `]`, ""},
		{"not stored, and bad", one(`,"event":"$$heatmap","distinct_id":""`), "missing_distinct_id 0 distinct_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, want := tt.body, tt.want
			if !strings.HasPrefix(body, "{\"") && !strings.HasPrefix(body, "[") { // a uuid
				body = fmt.Sprintf(`{"token":"%s","event":"e","distinct_id":"d","uuid":"%s"}`, token, body)
				if want == "" {
					want = named(`"e"`, `"d"`, "")
				}
			}
			if diff := cmp.Diff(want, lines(&capture.Request{Body: []byte(body)})); diff != "" {
				t.Errorf("%.300s (-want +got):\n%.500s", body, diff)
			}
		})
	}
}

// deepStack is what an SDK sends for an overflow of the stack.
var deepStack = `{"$exception_list":[{"type":"StackOverflowError","stacktrace":{"type":"raw","frames":[` +
	strings.TrimSuffix(strings.Repeat(`{"platform":"java","filename":"A.java","function":"f","lineno":7,"in_app":true,"module":"A"},`, 1024), ",") + `]}}],"$level":"error"}`

func names(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(all, ",")
}

// TestMadeUUIDs checks the UUIDs of events that bring none: version 7, different, and in the order of the events.
func TestMadeUUIDs(t *testing.T) {
	var events []string
	for _, given := range []string{"", `,"uuid":null`, `,"uuid":""`} {
		events = append(events, `{"event":"e","distinct_id":"d"`+given+`}`)
	}
	batch, err := capture.Decode(&capture.Request{Body: []byte(`{"api_key":"` + token + `","batch":[` + strings.Join(events, ",") + `]}`), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for text := range bytes.SplitSeq(bytes.TrimSpace(batch.Lines), []byte("\n")) {
		r, err := new(record.Parser).Parse(text)
		if err != nil || !r.HasUUID || r.UUID.Version() != 7 || r.UUID.Variant().String() != "RFC4122" {
			t.Fatalf("%s: %v", text, err)
		}
		sec, nsec := r.UUID.Time().UnixTime()
		if at := time.Unix(sec, nsec); !at.Equal(now) {
			t.Errorf("%s was made at %v, want %v", r.UUID, at, now)
		}
		if r.UUID.String() <= before {
			t.Errorf("%s comes after %s", r.UUID, before)
		}
		before = r.UUID.String()
	}
}

func TestEngage(t *testing.T) {
	body := []byte(`{"token":"` + token + `","distinct_id":"d","uuid":"` + id + `","$set":{"a":1}}`)
	want := `{"event":"$identify","distinct_id":"d","timestamp":"2024-06-01T12:00:00Z","uuid":"` + id + `","properties":{"$set":{"a":1}}}`
	if got := lines(&capture.Request{Body: body, Engage: true}); got != want {
		t.Errorf("engage gives %s, want %s", got, want)
	}
	for name, body := range map[string]string{"a list": "[" + string(body) + "]", "an empty name": `{"event":"",` + string(body[1:])} {
		if got := lines(&capture.Request{Body: []byte(body), Engage: true}); got != "missing_event_name 0 event" {
			t.Errorf("%s gives %s", name, got)
		}
	}
}

// TestEventSize refuses an event that is too large, but not its neighbors.
func TestEventSize(t *testing.T) {
	const most = 1000
	sized := func(n int) string {
		text := one(`,"properties":{"a":""}`)
		return one(`,"properties":{"a":"` + strings.Repeat("x", n-len(text)) + `"}`)
	}
	in := func(sizes ...int) string {
		events := make([]string, len(sizes))
		for i, n := range sizes {
			events[i] = sized(n)
		}
		got := lines(&capture.Request{Body: []byte("[" + strings.Join(events, ",") + "]"), Limits: capture.Limits{Event: most}})
		if strings.HasPrefix(got, "{") {
			return fmt.Sprint(strings.Count(got, "\n") + 1)
		}
		return got
	}
	if got := in(most, 300, most); got != "3" {
		t.Errorf("events within the limit: %s", got)
	}
	if got := in(300, most+1, 300); got != "payload_too_large 1" {
		t.Errorf("an event of a byte too much: %s", got)
	}
	if got := in(300, 300, 50*most); got != "payload_too_large 2" {
		t.Errorf("an event of far too much: %s", got)
	}
}

func TestWhatTheRequestSays(t *testing.T) {
	const sent = `"$sent_at":"2024-06-01T11:59:58.5Z"`
	tests := []struct{ name, body, want string }{
		{"added", `{}`, `"$sent_at":"2024-06-01T11:59:58.5Z","$ip":"203.0.113.7"`},
		{"$ip as sent", `{"$ip":"10.0.0.1"}`, `"$ip":"10.0.0.1",` + sent},
		{"empty $ip", `{"$ip":""}`, `"$ip":"203.0.113.7",` + sent},
		{"$ip that is null on purpose", `{"$ip":null}`, `"$ip":null,` + sent},
		{"$sent_at of the client's own", `{"$sent_at":"x"}`, sent + `,"$ip":"203.0.113.7"`},
		{"GeoIP is left out or not, nothing is added", `{"$geoip_disable":true}`, `"$geoip_disable":true,` + sent + `,"$ip":"203.0.113.7"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := lines(&capture.Request{Body: []byte(one(`,"properties":` + tt.body)), IP: "203.0.113.7", SentAt: "1717243198500"})
			if diff := cmp.Diff(line(tt.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
