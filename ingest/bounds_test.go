package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// names returns a JSON object with count names, numbered from first.
func names(first, count int) string {
	var b strings.Builder
	b.WriteByte('{')
	for n := range count {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"name_%06d":1`, first+n)
	}
	return b.String() + "}"
}

// TestImportBoundsNames: a line with too many names, at any depth, is a bad one; the others are imported.
func TestImportBoundsNames(t *testing.T) {
	c, p := client(t), project()
	event := func(properties string) string {
		return `{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":` + properties + "}\n"
	}
	similar := strings.Repeat(`{"a":1,"b":{"c":2}},`, 700) // the objects of a list share their names
	nested := `{"list":[` + similar + `{"b":` + names(0, record.MaxNames) + `}]}`
	lines := event(names(0, record.MaxNames)) + // as many as can be
		event(names(0, record.MaxNames+1)) +
		event(names(0, 400_000)) +
		event(nested) +
		event(`{"$set":`+names(0, record.MaxNames)+`}`) +
		`{"type":"person","distinct_ids":["x"],"properties":` + names(0, record.MaxNames+1) + "}\n" +
		`{"type":"group","group_type":"org","group_key":"k","properties":` + names(0, record.MaxNames+1) + "}\n" +
		`{"distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","event":"a",` + names(0, 100_000)[1:] + "\n" +
		event(`{"ok":true}`) +
		event(`{"list":[`+similar+`{}]}`)
	report, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now, LearnTypes: true, MaxTypes: 50}, ingesttest.Lines(lines))
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for _, line := range report.BadLines {
		bad = append(bad, fmt.Sprint(line.Line, " ", line.Reason))
	}
	const reason = "it has more than 2000 property names"
	want := []string{"2 " + reason, "3 " + reason, "4 " + reason, "5 " + reason, "6 " + reason, "7 " + reason, "8 " + reason}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("bad lines (-want +got):\n%s", diff)
	}
	if report.Events != 3 || len(report.Learned) != 50 || !report.Untyped {
		t.Errorf("%d events, %d types, more: %v", report.Events, len(report.Learned), report.Untyped)
	}
	if got := ask(t, c, p, "SELECT count() FROM events"); got[0] != "[3]" {
		t.Errorf("events: %v", got)
	}
}

// TestImportBoundsProfiles: the names and bytes of a person or group are limited, however many lines add more.
func TestImportBoundsProfiles(t *testing.T) {
	c, p := client(t), project()
	person := func(properties string) string {
		return `{"type":"person","distinct_ids":["x"],"properties":` + properties + "}\n"
	}
	group := func(properties string) string {
		return `{"type":"group","group_type":"org","group_key":"k","properties":` + properties + "}\n"
	}
	options := ingest.Options{Project: p, Now: now}
	first := load(t, c, options, person(names(0, 1500))+group(names(0, 1500)))
	options.GroupTypes = first.GroupTypes
	if first.LeftOut != 0 {
		t.Errorf("left out %d", first.LeftOut)
	}
	for _, want := range []int{1002, 1000} { // each import looks up what is there; of an event that is there nothing is asked
		next := load(t, c, options, person(names(1000, 1500))+group(names(1000, 1500))+
			`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"more":1,"name_000001":2},"$set_once":{"once":1}}}`+"\n")
		if next.LeftOut != want || next.LeftOutAt != 1 || next.Bad != 0 {
			t.Errorf("left out %d, the first in line %d, %d bad", next.LeftOut, next.LeftOutAt, next.Bad)
		}
	}
	const counts = `SELECT * FROM (SELECT length(JSONExtractKeys(toJSONString(argMax(properties, version)))), JSONExtractInt(toJSONString(argMax(properties, version)), 'name_000001')
		FROM person GROUP BY id) UNION ALL SELECT length(JSONExtractKeys(toJSONString(argMax(group_properties, _timestamp)))), 0 FROM groups GROUP BY group_key`
	if got := strings.Join(ask(t, c, p, counts), " "); got != "[2000, 2] [2000, 0]" && got != "[2000, 0] [2000, 2]" {
		t.Errorf("names: %s", got)
	}

	// Bytes: a value that does not fit is left out; one that makes room is accepted.
	p = project()
	options = ingest.Options{Project: p, Now: now}
	text := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	report := load(t, c, options, person(`{"a":`+text(1_900_000)+`}`)+person(`{"b":`+text(300_000)+`}`)+person(`{"a":1}`)+person(`{"b":`+text(300_000)+`}`))
	if report.LeftOut != 1 || report.LeftOutAt != 2 {
		t.Errorf("left out %d, the first in line %d", report.LeftOut, report.LeftOutAt)
	}
	if got := ask(t, c, p, "SELECT length(toJSONString(argMax(properties, version))) > 300000 FROM person"); got[0] != "[1]" {
		t.Errorf("the person: %v", got)
	}
}
