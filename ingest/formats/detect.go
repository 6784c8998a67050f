package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// unsupportedSignatures lists the first bytes of files that cannot be imported, with what these files are.
var unsupportedSignatures = []struct{ start, what string }{
	{"\xff\xfe", "text in UTF-16: save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8"},
	{"\xfe\xff", "text in UTF-16: save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8"},
	{"%PDF-", "a PDF document"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"Obj\x01", "an Avro file"},
	{"ORC", "an ORC file"},
	{"ARROW1", "an Arrow file"},
	{"BZh", "a bzip2 file"},
	{"\xfd7zXZ\x00", "an xz file"},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip file"},
	{"Rar!", "a RAR file"},
	{"\x04\x22\x4d\x18", "an LZ4 file"},
	{"\xff\x06\x00\x00sNaPpY", "a Snappy file"},
	{"\x89PNG", "a picture"},
	{"\xff\xd8\xff", "a picture"},
	{"\x1f\x8b", "gzip data that was compressed twice"},
	{"\x28\xb5\x2f\xfd", "zstd data that was compressed twice"},
}

// unknownFormat says what a file looks like, and what can be imported.
func unknownFormat(what string) error {
	return fmt.Errorf("the file looks like %s; %s", what, takes)
}

// readable refuses files that are not text, and says what they are.
func readable(start []byte) error {
	for _, look := range unsupportedSignatures {
		if bytes.HasPrefix(start, []byte(look.start)) {
			return unknownFormat(look.what)
		}
	}
	if len(start) > 262 && string(start[257:262]) == "ustar" {
		return unknownFormat("a tar archive: unpack it, and import the files in it")
	}
	if utf16(start) {
		return unknownFormat("text in UTF-16: save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8")
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return unknownFormat("binary data")
	}
	return nil
}

// utf16 recognizes ASCII that is written as UTF-16 without a byte order mark.
func utf16(start []byte) bool {
	if len(start) < 4 {
		return false
	}
	ascii := func(c byte) bool { return c != 0 && c < utf8.RuneSelf }
	return start[0] == 0 && start[2] == 0 && ascii(start[1]) && ascii(start[3]) || start[1] == 0 && start[3] == 0 && ascii(start[0]) && ascii(start[2])
}

// formatOf detects the format of a text from its start. Lines that are not JSON may come before those that are: they are bad lines.
func formatOf(start []byte) (Format, error) {
	text := bytes.TrimSpace(start)
	lower := bytes.ToLower(text[:min(len(text), 100)])
	switch {
	case bytes.HasPrefix(lower, []byte("<!doctype html")), bytes.HasPrefix(lower, []byte("<html")):
		return "", unknownFormat("an HTML page")
	case bytes.HasPrefix(lower, []byte("<")):
		return "", unknownFormat("an XML document")
	case bytes.HasPrefix(text, []byte("[")) && !bytes.HasPrefix(text, []byte("[]")):
		return "", unknownFormat("one JSON array: write one object a line, for example with jq -c '.[]'")
	case len(bytes.TrimSpace(text[:min(len(text), 1)])) > 0 && text[0] == '{' && !strings.ContainsAny(firstLine(text)[1:], `"}`):
		return "", unknownFormat("one JSON document over several lines: write one object a line, for example with jq -c .")
	}
	var first []string
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		keys, properties := keysOf(line)
		if format := formatOfKeys(keys, properties); format != "" {
			return format, nil
		}
		if first == nil {
			first = keys
		}
	}
	switch {
	case first != nil && !slices.ContainsFunc(first, like(record.FieldNames())):
		return "", unknownFormat("lines of JSON with the fields " + strings.Join(first[:min(len(first), 8)], ", "))
	case first != nil:
		return NDJSON, nil
	case separator(firstLine(text)) != 0:
		return CSV, nil
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[]")):
		return NDJSON, nil
	}
	return "", unknownFormat("plain text")
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimRight(line, "\r"))
}

// like returns a function that reports whether a name is a known one, or may be a misspelling of one.
func like(known []string) func(string) bool {
	return func(name string) bool { return slices.Contains(known, name) || nearest(name, known) != "" }
}

// formatOfKeys detects the format of a line from its fields and the fields of its properties.
func formatOfKeys(keys, properties []string) Format {
	has := func(name string) bool { return slices.Contains(keys, name) }
	inside := func(name string) bool { return slices.Contains(properties, name) }
	hasOne := func(names ...string) bool { return slices.ContainsFunc(names, has) }
	switch {
	case has("$distinct_id") && has("$properties"):
		return MixpanelPeople
	case has("event_type") && !has("event") && hasOne("amplitude_id", "device_id", "user_id", "event_time", "event_properties"):
		return Amplitude
	case has("event") && !has("distinct_id") && (inside("distinct_id") || inside("$insert_id") || inside("time")):
		return Mixpanel
	case has("event") && has("distinct_id") && hasOne(postHogMarks...):
		return PostHog
	case !has("event") && !has("type") && has("person_id") && has("distinct_id"):
		return PostHog
	case hasOne("event", "type", "distinct_id", "distinct_ids"):
		return NDJSON
	}
	return ""
}

// postHogMarks are fields that only PostHog's exports have.
var postHogMarks = []string{
	"person_properties", "person_set", "person_set_once", "set", "set_once", "team_id", "inserted_at", "_inserted_at", "site_url", "ip", "elements",
}

// keysOf lists the fields of an object, which may be cut off, and the fields of its properties.
func keysOf(text []byte) (keys, properties []string) {
	d := json.NewDecoder(bytes.NewReader(text))
	depth, inside := 0, false
	const most = 200
	var key string
	for expectKey := true; len(keys)+len(properties) < most; {
		token, err := d.Token()
		if err != nil {
			return keys, properties
		}
		switch delim := token.(type) {
		case json.Delim:
			switch delim {
			case '{', '[':
				depth++
				inside = inside || depth == 2 && delim == '{' && key == "properties"
				expectKey = delim == '{'
			default:
				if depth--; depth < 2 {
					inside = false
				}
				expectKey = true
			}
			if depth == 0 {
				return keys, properties
			}
			continue
		case string:
			if expectKey && depth == 1 {
				key = delim
				keys = append(keys, delim)
			} else if expectKey && depth == 2 && inside {
				properties = append(properties, delim)
			}
		}
		expectKey = !expectKey || depth > 2 || depth == 2 && !inside
	}
	return keys, properties
}

// separator returns the character that separates the columns of a header; 0 if it is not a header.
func separator(header string) rune {
	for _, c := range ",;\t|" {
		if strings.ContainsRune(header, c) && len(header) < sniffed/2 {
			return c
		}
	}
	return 0
}
