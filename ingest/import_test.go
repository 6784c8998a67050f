package ingest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// load imports lines that must all be good.
func load(t *testing.T, c *clickhouse.Client, options ingest.Options, lines string) ingest.Report {
	t.Helper()
	if options.Now.IsZero() {
		options.Now = now
	}
	report, err := ingest.New(c).Import(t.Context(), options, ingesttest.Lines(lines))
	if err != nil {
		t.Fatal(err)
	}
	if report.Bad > 0 {
		t.Fatalf("bad lines: %+v", report.BadLines)
	}
	return report
}

// What the tests look at: events with the person that the project sees today, persons and groups as they are now.
const (
	eventsToday = `SELECT e.event, e.distinct_id, if(o.distinct_id = '', toString(e.person_id), toString(o.person_id)) = toString({p:UUID}), e.person_mode, toJSONString(e.person_properties)
		FROM events e LEFT JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides GROUP BY distinct_id) o
		ON e.distinct_id = o.distinct_id ORDER BY e.timestamp, e.event`
	idsToday     = `SELECT distinct_id, argMax(toString(person_id), version) = toString({p:UUID}) FROM person_distinct_id2 GROUP BY distinct_id ORDER BY distinct_id`
	personsToday = `SELECT * FROM (SELECT toJSONString(argMax(properties, version)) AS properties, argMax(created_at, version), argMax(is_identified, version)
		FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0) ORDER BY ALL`
	groupsToday = `SELECT group_type_index, group_key, toJSONString(argMax(group_properties, _timestamp)), argMax(created_at, _timestamp)
		FROM groups GROUP BY group_type_index, group_key ORDER BY 1, 2`
)

// TestImport imports files one after the other into one project. With split set, each line is a file of its own:
// where the batches end must not matter.
func TestImport(t *testing.T) {
	type lines = []string
	tests := []struct {
		name                         string
		files                        []string
		first                        string // the distinct id whose person {p} is
		events, ids, persons, groups lines
	}{
		{
			name: "an event makes its person, $set changes it from that event on",
			files: []string{`
				{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}
				{"event":"b","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z","properties":{"$set":{"plan":"pro","n":1},"$set_once":{"plan":"free","ref":"ad"}}}
				{"event":"c","distinct_id":"x","timestamp":"2024-01-03T00:00:00Z","properties":{"$set_once":{"ref":"mail"},"$unset":["n"]}}`},
			first: "x",
			events: lines{
				`["a", "x", 1, "full", "{}"]`,
				`["b", "x", 1, "full", "{\"n\":1,\"plan\":\"pro\",\"ref\":\"ad\"}"]`,
				`["c", "x", 1, "full", "{\"plan\":\"pro\",\"ref\":\"ad\"}"]`,
			},
			ids:     lines{`["x", 1]`},
			persons: lines{`["{\"plan\":\"pro\",\"ref\":\"ad\"}", "2024-01-01T00:00:00Z", 0]`},
		},
		{
			name: "a person before its events",
			files: []string{`
				{"type":"person","distinct_ids":["x","y"],"properties":{"email":"a@b.c"},"created_at":"2023-05-05T00:00:00Z"}
				{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}
				{"event":"b","distinct_id":"y","timestamp":"2024-01-02T00:00:00Z"}`},
			first:   "x",
			events:  lines{`["a", "x", 1, "full", "{\"email\":\"a@b.c\"}"]`, `["b", "y", 1, "full", "{\"email\":\"a@b.c\"}"]`},
			ids:     lines{`["x", 1]`, `["y", 1]`},
			persons: lines{`["{\"email\":\"a@b.c\"}", "2023-05-05T00:00:00Z", 0]`},
		},
		{
			name: "a person without created_at is as old as its first event",
			files: []string{
				`{"type":"person","distinct_ids":["x"],"properties":{"a":1}}`,
				`{"event":"late","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z"}`,
				`{"event":"early","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`,
			},
			first:   "x",
			events:  lines{`["early", "x", 1, "full", "{\"a\":1}"]`, `["late", "x", 1, "full", "{\"a\":1}"]`},
			ids:     lines{`["x", 1]`},
			persons: lines{`["{\"a\":1}", "2024-01-01T00:00:00Z", 0]`},
		},
		{
			name:    "a person without events is as old as its import",
			files:   []string{`{"type":"person","distinct_ids":["x"]}`},
			first:   "x",
			ids:     lines{`["x", 1]`},
			persons: lines{`["{}", "2026-11-21T12:00:00Z", 0]`},
		},
		{
			name: "a created_at that was given stays",
			files: []string{
				`{"type":"person","distinct_ids":["x"],"created_at":"2024-06-01T00:00:00+02:00"}`,
				`{"event":"a","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z"}`,
			},
			first:   "x",
			events:  lines{`["a", "x", 1, "full", "{}"]`},
			ids:     lines{`["x", 1]`},
			persons: lines{`["{}", "2024-05-31T22:00:00Z", 0]`},
		},
		{
			name: "two persons become one after their events",
			files: []string{
				`
				{"event":"a","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z","properties":{"$set":{"k":"x","only":1}}}
				{"event":"b","distinct_id":"y","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"k":"y","more":2}}}
				{"event":"b2","distinct_id":"z","timestamp":"2024-01-03T00:00:00Z"}`,
				`{"type":"person","distinct_ids":["y","z"]}`,
				`{"type":"person","distinct_ids":["x","y"],"properties":{"new":3}}`,
				`{"event":"c","distinct_id":"z","timestamp":"2024-01-04T00:00:00Z"}`,
			},
			first: "x",
			events: lines{
				`["b", "y", 1, "full", "{\"k\":\"y\",\"more\":2}"]`,
				`["a", "x", 1, "full", "{\"k\":\"x\",\"only\":1}"]`,
				`["b2", "z", 1, "full", "{}"]`,
				`["c", "z", 1, "full", "{\"k\":\"x\",\"more\":2,\"new\":3,\"only\":1}"]`,
			},
			ids:     lines{`["x", 1]`, `["y", 1]`, `["z", 1]`},
			persons: lines{`["{\"k\":\"x\",\"more\":2,\"new\":3,\"only\":1}", "2024-01-01T00:00:00Z", 0]`},
		},
		{
			name: "$identify joins the anonymous person",
			files: []string{`
				{"event":"a","distinct_id":"anon","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"utm":"ad"}}}
				{"event":"$identify","distinct_id":"user","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"anon","$set":{"email":"a@b.c"}}}
				{"event":"b","distinct_id":"anon","timestamp":"2024-01-03T00:00:00Z"}`},
			first: "user",
			events: lines{
				`["a", "anon", 1, "full", "{\"utm\":\"ad\"}"]`,
				`["$identify", "user", 1, "full", "{\"email\":\"a@b.c\",\"utm\":\"ad\"}"]`,
				`["b", "anon", 1, "full", "{\"email\":\"a@b.c\",\"utm\":\"ad\"}"]`,
			},
			ids:     lines{`["anon", 1]`, `["user", 1]`},
			persons: lines{`["{\"email\":\"a@b.c\",\"utm\":\"ad\"}", "2024-01-01T00:00:00Z", 1]`},
		},
		{
			name: "$identify leaves another identified person alone, $merge_dangerously does not",
			files: []string{
				`
				{"event":"$identify","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$anon_distinct_id":"ax"}}
				{"event":"$identify","distinct_id":"y","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"x"}}`,
				`{"event":"$merge_dangerously","distinct_id":"z","timestamp":"2024-01-03T00:00:00Z","properties":{"alias":"x"}}`,
			},
			first: "z",
			events: lines{
				`["$identify", "x", 1, "full", "{}"]`,
				`["$identify", "y", 0, "full", "{}"]`,
				`["$merge_dangerously", "z", 1, "full", "{}"]`,
			},
			ids:     lines{`["ax", 1]`, `["x", 1]`, `["y", 0]`, `["z", 1]`},
			persons: lines{`["{}", "2024-01-01T00:00:00Z", 1]`, `["{}", "2024-01-02T00:00:00Z", 1]`},
		},
		{
			name: "an event without profile makes no person",
			files: []string{`
				{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$process_person_profile":false,"$set":{"k":1}}}
				{"event":"b","distinct_id":"y","timestamp":"2024-01-02T00:00:00Z","properties":{"$process_person_profile":false}}
				{"event":"c","distinct_id":"x","timestamp":"2024-01-03T00:00:00Z"}`},
			first:   "x",
			events:  lines{`["a", "x", 1, "propertyless", "{}"]`, `["b", "y", 0, "propertyless", "{}"]`, `["c", "x", 1, "full", "{}"]`},
			ids:     lines{`["x", 1]`},
			persons: lines{`["{}", "2024-01-03T00:00:00Z", 0]`},
		},
		{
			name: "groups",
			files: []string{
				`
				{"type":"group","group_type":"organization","group_type_index":0,"group_key":"org:5","properties":{"industry":"finance"}}
				{"event":"a","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z","properties":{"$groups":{"organization":"org:5","team":"t1"}}}
				{"event":"b","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$group_0":"org:6","$group_1":"t1"}}
				{"event":"$groupidentify","distinct_id":"x","timestamp":"2024-01-03T00:00:00Z","properties":{"$group_type":"team","$group_key":"t2","$group_set":{"size":3}}}`,
				`{"type":"group","group_type":"organization","group_key":"org:6","properties":{"a":1}}
				{"type":"group","group_type":"organization","group_key":"org:5","properties":{"size":2}}
				{"type":"group","group_type":"team","group_key":"t1","created_at":"2020-01-01T00:00:00Z"}`,
			},
			first:   "x",
			events:  lines{`["b", "x", 1, "full", "{}"]`, `["a", "x", 1, "full", "{}"]`, `["$groupidentify", "x", 1, "full", "{}"]`},
			ids:     lines{`["x", 1]`},
			persons: lines{`["{}", "2024-01-01T00:00:00Z", 0]`},
			groups: lines{
				`[0, "org:5", "{\"industry\":\"finance\",\"size\":2}", "2024-01-02T00:00:00Z"]`,
				`[0, "org:6", "{\"a\":1}", "2024-01-01T00:00:00Z"]`,
				`[1, "t1", "{}", "2020-01-01T00:00:00Z"]`,
				`[1, "t2", "{\"size\":3}", "2024-01-03T00:00:00Z"]`,
			},
		},
	}
	c := client(t)
	for _, tt := range tests {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s split %t", tt.name, split), func(t *testing.T) {
				files := tt.files
				if split {
					files = nil
					for _, file := range tt.files {
						files = append(files, strings.Split(strings.TrimSpace(file), "\n")...)
					}
				}
				options := ingest.Options{Project: project()}
				check := func(when string) {
					t.Helper()
					id := clickhouse.Param{Name: "p", Type: "UUID", Value: personOf(t, c, options.Project, tt.first)}
					for name, q := range map[string]struct {
						sql  string
						want []string
					}{"events": {eventsToday, tt.events}, "ids": {idsToday, tt.ids}, "persons": {personsToday, tt.persons}, "groups": {groupsToday, tt.groups}} {
						if diff := cmp.Diff(q.want, ask(t, c, options.Project, q.sql, id)); diff != "" {
							t.Errorf("%s %s (-want +got):\n%s", name, when, diff)
						}
					}
				}
				for _, file := range files {
					options.GroupTypes = load(t, c, options, file).GroupTypes
				}
				check("after the import")
			})
		}
	}
}

// personOf returns the person that a distinct id belongs to.
func personOf(t *testing.T, c *clickhouse.Client, project int64, id string) string {
	t.Helper()
	got := ask(t, c, project, "SELECT argMax(person_id, version) FROM person_distinct_id2 WHERE distinct_id = {id:String}",
		clickhouse.Param{Name: "id", Type: "String", Value: id})
	return strings.Trim(got[0], `["]`)
}

// counts is the number of rows in every table of a project.
func counts(t *testing.T, c *clickhouse.Client, project int64) string {
	t.Helper()
	return ask(t, c, project, "SELECT (SELECT count() FROM events), (SELECT count() FROM person), (SELECT count() FROM person_distinct_id2), "+
		"(SELECT count() FROM person_distinct_id_overrides), (SELECT count() FROM groups)")[0]
}

// TestImportAgain imports the same lines twice, whole, in another order, and with more lines around them.
func TestImportAgain(t *testing.T) {
	const (
		before = `{"event":"z","distinct_id":"q","timestamp":"2024-01-01T00:00:00Z"}` + "\n"
		file   = `{"type":"person","distinct_ids":["x","y"],"properties":{"a":1}}
{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"b":2},"$groups":{"org":"o"}}}
{"event":"a","distinct_id":"w","timestamp":"2024-01-01T00:00:00Z","uuid":"be349c38-5f7e-41eb-9f47-57f1fa0d45e8"}
{"type":"person","distinct_ids":["x","w"]}
{"type":"group","group_type":"org","group_key":"o","properties":{"c":3}}
`
	)
	c := client(t)
	options := ingest.Options{Project: project()}
	first := load(t, c, options, file)
	if first.Events != 2 || first.Duplicates != 0 || first.Persons != 2 || first.Groups != 1 {
		t.Errorf("first report: %+v", first)
	}
	want := counts(t, c, options.Project)
	if want != "[2, 3, 3, 1, 1]" && want != "[2, 2, 3, 1, 1]" {
		t.Errorf("rows after the first import: %s", want)
	}
	options.GroupTypes = first.GroupTypes
	again := load(t, c, options, file)
	if again.Events != 2 || again.Duplicates != 2 {
		t.Errorf("second report: %+v", again)
	}
	if got := counts(t, c, options.Project); got != want {
		t.Errorf("rows after the second import: %s, want %s", got, want)
	}
	load(t, c, options, file+file)
	twice := counts(t, c, options.Project)
	if twice == want {
		t.Errorf("a line that stands twice in a file is one event: %s", twice)
	}
	load(t, c, options, file+file)
	if got := counts(t, c, options.Project); got != twice {
		t.Errorf("rows after importing that file again: %s, want %s", got, twice)
	}
	more := load(t, c, options, before+file)
	if more.Events != 3 || more.Duplicates != 2 {
		t.Errorf("report of the longer file: %+v", more)
	}
	other := ingest.Options{Project: project()}
	load(t, c, other, file)
	if got := counts(t, c, other.Project); got != want {
		t.Errorf("rows in another project: %s, want %s", got, want)
	}
}

func TestImportBadLines(t *testing.T) {
	lines := []string{
		`{"event":"good","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`,
		``,
		`{"event":`,
		`[1]`,
		`{"event":"a","distinct_id":"x"}`,
		`{"distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`,
		`{"event":"a","timestamp":"2024-01-01T00:00:00Z"}`,
		`{"event":"a","distinct_id":"x","timestamp":"yesterday"}`,
		`{"event":"a","distinct_id":"x","timestamp":"1800-01-01T00:00:00Z"}`,
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","uuid":"7"}`,
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":[]}`,
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"n":1e999}}`,
		`{"event":["a"],"distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`,
		`{"type":"crowd"}`,
		`{"type":"person"}`,
		`{"type":"person","distinct_ids":[]}`,
		`{"type":"person","distinct_ids":[{}]}`,
		`{"type":"group","group_key":"k"}`,
		`{"type":"group","group_type":"t"}`,
		`{"type":"group","group_type":"t","group_key":"k","group_type_index":5}`,
		`{"type":"group","group_type":"t","group_key":"k","group_type_index":0}`,
		`{"type":"group","group_type":"t","group_key":"k","group_type_index":1}`,
		`{"type":"group","group_type":"u","group_key":"k","group_type_index":0}`,
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"} x`,
		`{"event":"deep","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`,
		`{"event":"long","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"a":"` + strings.Repeat("x", 34<<20) + `"}}`,
		`{"event":"last","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z"}`,
	}
	want := []ingest.BadLine{
		{3, "it is not valid JSON: it ends too early"},
		{4, "it is not a JSON object"},
		{5, "it has no timestamp"},
		{6, "it has no event"},
		{7, "it has no distinct_id"},
		{8, `its timestamp "yesterday" is not an ISO 8601 time between 1900 and 2261`},
		{9, `its timestamp "1800-01-01T00:00:00Z" is not an ISO 8601 time between 1900 and 2261`},
		{10, `its uuid "7" is not a UUID`},
		{11, "its properties are not a JSON object"},
		{12, `the number "1e999" is too large`},
		{13, "its event is not a string"},
		{14, `its type "crowd" is not event, person, group or cohort`},
		{15, "a person needs distinct_ids"},
		{16, "its distinct_ids are not a list of names"},
		{17, "its distinct_ids are not a list of names"},
		{18, "it has no group_type"},
		{19, "it has no group_key"},
		{20, `its group_type_index "5" is not a number from 0 to 4`},
		{24, "there is more after its JSON object, at byte 68"},
		{25, "its JSON is nested more than 64 deep"},
		{26, "the line is longer than 33 MiB"},
		{22, `the group type "t" has the index 0`},
		{23, `the group type index 0 belongs to "t"`},
	}
	c := client(t)
	p := project()
	report, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now}, ingesttest.Lines(lines...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, report.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got):\n%s", diff)
	}
	if report.Bad != len(want) || report.Events != 2 || report.Groups != 1 {
		t.Errorf("report: %d bad, %d events, %d groups", report.Bad, report.Events, report.Groups)
	}
	if diff := cmp.Diff([]string{`["good"]`, `["last"]`}, ask(t, c, p, "SELECT event FROM events ORDER BY event")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestImportProperties writes JSON of every kind and reads it back.
func TestImportProperties(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"scalars", `{"s":"x","i":1,"f":1.5,"t":true,"n":null,"e":""}`, `{"e":"","f":1.5,"i":1,"s":"x","t":true}`},
		{"a dot in a key is no path", `{"a.b":1,"a":{"b":2}}`, `{"a.b":1,"a":{"b":2}}`},
		{"strings that look like other types", `{"d":"2020-01-01","dt":"2020-01-01T00:00:00Z","n":"12","b":"true","z":"null"}`, `{"b":"true","d":"2020-01-01","dt":"2020-01-01T00:00:00Z","n":"12","z":"null"}`},
		{"escapes", `{"a":"\u00e9\ud83d\ude00\n\t\"\\\/","b":"\u0000"}`, `{"a":"é😀\n\t\"\\/","b":"\u0000"}`},
		{"invalid text", `{"a":"\ud800","b":"` + "\xff" + `"}`, `{"a":"` + "\uFFFD" + `","b":"` + "\uFFFD" + `"}`},
		{"odd keys", `{"":1,"x y":2,"$z":3,"é` + "`" + `":4,"\"":5}`, `{"":1,"\"":5,"$z":3,"x y":2,"é` + "`" + `":4}`},
		{"large integers", `{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808,"d":123456789012345678901234567890}`, `{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808,"d":1.2345678901234568e29}`},
		{"arrays", `{"a":[1,2],"b":[1,"x",null,true,2.5],"c":[],"d":[[1],[]],"e":[true,1]}`, `{"a":[1,2],"b":[1,"x",null,true,2.5],"c":[],"d":[[1],[]],"e":[true,1]}`},
		{"objects", `{"a":{"b":{"c":[{"d":1},{"e":"x"}]}}}`, `{"a":{"b":{"c":[{"d":1},{"e":"x"}]}}}`},
		{"the last of two equal keys", `{"a":1,"a":"x","b":{"c":1,"c":2}}`, `{"a":"x","b":{"c":2}}`},
		{"an object and a scalar of one name", `{"a":{"b":1},"a":2}`, `{"a":2}`},
	}
	c := client(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := project()
			load(t, c, ingest.Options{Project: p}, fmt.Sprintf(`{"type":"person","distinct_ids":["x"],"properties":%[1]s}
				{"type":"group","group_type":"g","group_key":"k","properties":%[1]s}
				{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":%[1]s}
				{"event":"b","distinct_id":"x","timestamp":"2024-01-02T00:00:00Z","properties":{"$group_0":"k"}}`, tt.in))
			// A second import reads the person back and writes it again.
			load(t, c, ingest.Options{Project: p, GroupTypes: []ingest.GroupType{{Name: "g", Index: 0}}}, `{"type":"person","distinct_ids":["x"],"created_at":"2020-01-01"}
				{"type":"group","group_type":"g","group_key":"k","created_at":"2020-01-01"}`)
			for name, sql := range map[string]string{
				"event":           "SELECT toJSONString(properties) FROM events WHERE event = 'a'",
				"person of event": "SELECT toJSONString(person_properties) FROM events WHERE event = 'a'",
				"group of event":  "SELECT toJSONString(group0_properties) FROM events WHERE event = 'b'",
				"person":          "SELECT toJSONString(argMax(properties, version)) FROM person",
				"group":           "SELECT toJSONString(argMax(group_properties, _timestamp)) FROM groups",
			} {
				var got string
				if got = unquoted(t, ask(t, c, p, sql)); got != tt.want {
					t.Errorf("%s: got %s, want %s", name, got, tt.want)
				}
			}
		})
	}
}

func TestImportColumns(t *testing.T) {
	c := client(t)
	p := project()
	report := load(t, c, ingest.Options{Project: p}, `{"type":"event","event":"$autocapture","distinct_id":7,"timestamp":"2024-01-01 10:00:00.123456+02:00",`+
		`"uuid":"be349c38-5f7e-41eb-9f47-57f1fa0d45e8","properties":{"$session_id":"s","$window_id":"w","$groups":{"org":"o"},`+
		`"$elements_chain":"a.btn:attr_id=\"go\"href=\"/x\"text=\"Go\";div:text=\"Box\""}}`)
	if diff := cmp.Diff([]ingest.GroupType{{Name: "org", Index: 0}}, report.GroupTypes); diff != "" {
		t.Errorf("group types (-want +got):\n%s", diff)
	}
	got := ask(t, c, p, "SELECT uuid, event, distinct_id, timestamp, created_at, `$session_id`, `$window_id`, `$group_0`, `$group_1`, "+
		"toString(properties.`$group_0`), elements_chain_href, elements_chain_texts, elements_chain_ids, elements_chain_elements, person_created_at FROM events")
	want := []string{`["be349c38-5f7e-41eb-9f47-57f1fa0d45e8", "$autocapture", "7", "2024-01-01T08:00:00.123456Z", "2026-11-21T12:00:00Z", "s", "w", "o", "", ` +
		`"o", "/x", ["Go","Box"], ["go"], ["a"], "2024-01-01T08:00:00.123456Z"]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func unquoted(t *testing.T, got []string) string {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("got %d rows", len(got))
	}
	var row []string
	if err := json.Unmarshal([]byte(got[0]), &row); err != nil {
		t.Fatal(err)
	}
	return row[0]
}

// TestImportBroken reads a file that ends in the middle. What was read is kept.
func TestImportBroken(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for i := range 20_000 {
		line := fmt.Appendf(nil, "{\"event\":\"e\",\"distinct_id\":\"x%d\",\"timestamp\":\"2024-01-01\",\"properties\":{\"i\":%d}}\n", i%100, i)
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := client(t)
	p := project()
	options := ingest.Options{Project: p, Now: now}
	report, err := ingest.New(c).Import(t.Context(), options, formats.New(bytes.NewReader(packed.Bytes()[:packed.Len()*2/3]), formats.Options{Format: formats.NDJSON}))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected end", err)
	}
	if report.Events < 10_000 || report.Events >= 20_000 {
		t.Errorf("%d events", report.Events)
	}
	report, err = ingest.New(c).Import(t.Context(), options, formats.New(&packed, formats.Options{Format: formats.NDJSON}))
	if err != nil {
		t.Fatal(err)
	}
	if report.Events != 20_000 || report.Duplicates < 10_000 {
		t.Errorf("the second run: %+v", report)
	}
	if diff := cmp.Diff([]string{`[20000, 20000, 100]`}, ask(t, c, p, "SELECT count(), uniqExact(uuid), uniqExact(person_id) FROM events")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestImportLargePerson repeats a large person on many events: more than one block may hold.
func TestImportLargePerson(t *testing.T) {
	c := client(t)
	p := project()
	var lines strings.Builder
	fmt.Fprintf(&lines, "{\"type\":\"person\",\"distinct_ids\":[\"x\"],\"properties\":{\"text\":%q}}\n", strings.Repeat("0123456789abcdef", 1<<16))
	for i := range 70 {
		fmt.Fprintf(&lines, "{\"event\":\"e%d\",\"distinct_id\":\"x\",\"timestamp\":\"2024-01-01\"}\n", i)
	}
	load(t, c, ingest.Options{Project: p}, lines.String())
	got := ask(t, c, p, "SELECT count(), min(length(toString(person_properties.text))) FROM events")
	if diff := cmp.Diff([]string{`[70, 1048576]`}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestImportDemo imports the demo's events, whose numbers are known.
func TestImportDemo(t *testing.T) {
	f, err := os.Open("../demo/commits.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := client(t)
	p := project()
	report, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, LearnTypes: true, Now: now}, formats.New(f, formats.Options{Format: formats.NDJSON}))
	if err != nil {
		t.Fatal(err)
	}
	if report.Events != 50797 || report.Bad != 0 {
		t.Errorf("report %+v", report)
	}
	tests := []struct {
		sql  string
		want []string
	}{
		{
			"SELECT event, count() FROM events GROUP BY event ORDER BY count() DESC",
			[]string{`["commit authored", 37605]`, `["pull request merged", 8614]`, `["commit landed", 4113]`, `["release tagged", 465]`},
		},
		{"SELECT uniqExact(person_id) FROM events", []string{`[2859]`}},
		{"SELECT count(), uniqExact(id) FROM person", []string{`[2859, 2859]`}},
		{
			"SELECT properties.component.:String c, count() n FROM events WHERE event = 'commit authored' AND c IS NOT NULL GROUP BY c ORDER BY n DESC LIMIT 2",
			[]string{`["tsdb", 648]`, `["promql", 628]`},
		},
		{
			"SELECT toYear(timestamp) y, count() FROM events WHERE event = 'commit authored' AND y IN (2012, 2024, 2026) GROUP BY y ORDER BY y",
			[]string{`[2012, 44]`, `[2024, 4982]`, `[2026, 3491]`},
		},
		{"SELECT count() FROM events WHERE toString(properties.component) = 'tsdb' AND toYear(timestamp) = 2023 AND event = 'commit authored'", []string{`[54]`}},
		{"SELECT count() FROM events WHERE empty(toString(person_properties.email_domain))", []string{`[0]`}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ask(t, c, p, tt.sql)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.sql, diff)
		}
	}
}

// TestImportAfterEventsWithoutProfile joins ids to persons that have events without profile: those belong to the person from then on.
// Other ids get no override.
func TestImportAfterEventsWithoutProfile(t *testing.T) {
	const (
		alone    = `{"event":"alone","distinct_id":"anon","timestamp":"2024-01-01T00:00:00Z","properties":{"$process_person_profile":false}}`
		person   = `{"type":"person","distinct_ids":["user","anon","new"]}`
		identify = `{"event":"$identify","distinct_id":"user","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"anon"}}`
		alias    = `{"event":"$create_alias","distinct_id":"user","timestamp":"2024-01-02T00:00:00Z","properties":{"alias":"anon"}}`
	)
	c := client(t)
	for _, files := range [][]string{
		{alone + "\n" + person},
		{alone, person},
		{alone + "\n" + identify},
		{alone, identify},
		{alone, alias},
		{identify, alone},
		{`{"type":"person","distinct_ids":["user"]}`, alone, person},
	} {
		options := ingest.Options{Project: project(), Now: now}
		for _, file := range files {
			load(t, c, options, file)
		}
		want := []string{fmt.Sprintf(`["anon", %q]`, ingest.PersonUUID(options.Project, "user"))}
		got := ask(t, c, options.Project, `SELECT distinct_id, if(o.distinct_id = '', e.person_id, o.person_id) FROM events e
			LEFT JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides GROUP BY distinct_id) o
			ON e.distinct_id = o.distinct_id WHERE e.event = 'alone'`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: the event's person (-want +got):\n%s", files, diff)
		}
		for _, row := range ask(t, c, options.Project, "SELECT distinct_id FROM person_distinct_id_overrides") {
			if row != `["anon"]` {
				t.Errorf("%v: there is an override of %s", files, row)
			}
		}
	}
}

// punctual yields events that arrived when they happened, as files of other products say.
type punctual struct{ ingest.Reader }

func (p punctual) Read() (record.Record, error) {
	r, err := p.Reader.Read()
	r.Arrived = r.Timestamp
	return r, err
}

// TestImportAhead: nothing that a file dates into the future is hidden until then, or escapes a deletion: people and events date from the import at the latest.
func TestImportAhead(t *testing.T) {
	c, p := client(t), project()
	const file = `{"type":"person","distinct_ids":["ahead"],"created_at":"2026-11-22T12:00:00Z"}
		{"type":"person","distinct_ids":["nearly"],"created_at":"2026-11-22T11:59:59Z"}
		{"event":"ahead","distinct_id":"by event","timestamp":"2027-01-01T00:00:00Z"}
		{"event":"nearly","distinct_id":"by near event","timestamp":"2026-11-22T11:00:00Z"}
		{"event":"past","distinct_id":"by past event","timestamp":"2026-01-01T00:00:00Z"}`
	report, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now}, punctual{ingesttest.Lines(file)})
	if err != nil {
		t.Fatal(err)
	}
	want := []ingest.BadLine{{Line: 1, Reason: "its created_at 2026-11-22T12:00:00Z is more than a day in the future"}}
	if diff := cmp.Diff(want, report.BadLines); diff != "" || report.Persons != 1 || report.Events != 3 {
		t.Errorf("%d persons, %d events, bad lines (-want +got):\n%s", report.Persons, report.Events, diff)
	}
	people := []string{
		`["by event", "2026-11-21T12:00:00Z"]`, `["by near event", "2026-11-22T11:00:00Z"]`, `["by past event", "2026-01-01T00:00:00Z"]`, `["nearly", "2026-11-22T11:59:59Z"]`,
	}
	if diff := cmp.Diff(people, ask(t, c, p, "SELECT distinct_id, created_at FROM person_distinct_id2 i JOIN person p ON p.id = i.person_id ORDER BY distinct_id")); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
	arrived := []string{
		`["ahead", "2027-01-01T00:00:00Z", "2026-11-21T12:00:00Z"]`, `["nearly", "2026-11-22T11:00:00Z", "2026-11-21T12:00:00Z"]`, `["past", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]`,
	}
	if diff := cmp.Diff(arrived, ask(t, c, p, "SELECT event, timestamp, created_at FROM events ORDER BY event")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
