package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
)

func TestImportTimes(t *testing.T) {
	tests := []struct{ in, want string }{
		{"2024-03-31T01:30:00Z", "2024-03-31T01:30:00Z"},
		{"2024-03-31T01:30:00.5Z", "2024-03-31T01:30:00.500000Z"},
		{"2024-03-31T01:30:00.123456789Z", "2024-03-31T01:30:00.123456Z"},
		{"2024-03-31T03:30:00+02:00", "2024-03-31T01:30:00Z"},
		{"2024-03-31T03:30:00+0200", "2024-03-31T01:30:00Z"},
		{"2024-03-31T03:30:00+02", "2024-03-31T01:30:00Z"},
		{"2024-03-31 01:30:00", "2024-03-31T01:30:00Z"},
		{"2024-03-31T01:30", "2024-03-31T01:30:00Z"},
		{"2024-03-31", "2024-03-31T00:00:00Z"},
		{"2024-03-31 01:30:00 UTC", "2024-03-31T01:30:00Z"},
		{"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"},
		{"1900-01-01T00:00:00Z", "1900-01-01T00:00:00Z"},
	}
	c := client(t)
	p := project()
	var lines strings.Builder
	for i, tt := range tests {
		fmt.Fprintf(&lines, "{\"event\":\"%02d\",\"distinct_id\":\"x\",\"timestamp\":%q}\n", i, tt.in)
	}
	load(t, c, ingest.Options{Project: p}, lines.String())
	for i, got := range ask(t, c, p, "SELECT timestamp FROM events ORDER BY event") {
		if want := `["` + tests[i].want + `"]`; got != want {
			t.Errorf("%s: got %s, want %s", tests[i].in, got, want)
		}
	}
}

// TestDeliverDropsTypes: types of properties are not kept in memory between deliveries, and are learned all the same.
func TestDeliverDropsTypes(t *testing.T) {
	i, options := ingest.New(client(t)), ingest.Options{Project: project(), Now: now, LearnTypes: true}
	for _, name := range []string{"a", "b"} {
		report := deliver(t, i, options, captured(t, `{"event":"e","distinct_id":"x","properties":{"`+name+`":1}}`))
		if len(report.Learned) != 1 || report.Learned[0].Name != name {
			t.Errorf("learned: %+v", report.Learned)
		}
		if kept := i.KeptTypes(options.Project); kept != 0 {
			t.Errorf("%d types are kept", kept)
		}
		options.KnownTypes = append(options.KnownTypes, report.Learned...)
	}
}

func TestImportLearnsTypes(t *testing.T) {
	const file = `
		{"event":"a","distinct_id":"x","timestamp":"2024-01-01","properties":{"late":null,"n":1,"b":false,"s":"x","t":"2024-01-01T00:00:00Z","d":"2024-01-01","num":"12","list":[1],"known":5,"$set":{"n":"one"},"$groups":{"org":"o"}}}
		{"event":"a","distinct_id":"x","timestamp":"2024-01-02","properties":{"late":2.5,"n":"text"}}
		{"type":"person","distinct_ids":["x"],"properties":{"age":30}}
		{"type":"group","group_type":"org","group_key":"o","properties":{"size":3}}`
	c := client(t)
	p := project()
	known := []ingest.LearnedProperty{{Scope: "event", Name: "known", Type: "String"}}
	report := load(t, c, ingest.Options{Project: p, LearnTypes: true, KnownTypes: known}, file)
	want := []ingest.LearnedProperty{
		{Scope: "event", Name: "b", Type: "Boolean"},
		{Scope: "event", Name: "d", Type: "DateTime"},
		{Scope: "event", Name: "late", Type: "Numeric"},
		{Scope: "event", Name: "list", Type: "String"},
		{Scope: "event", Name: "n", Type: "Numeric"},
		{Scope: "event", Name: "num", Type: "String"},
		{Scope: "event", Name: "s", Type: "String"},
		{Scope: "event", Name: "t", Type: "DateTime"},
		{Scope: "group", GroupTypeIndex: 0, Name: "size", Type: "Numeric"},
		{Scope: "person", Name: "age", Type: "Numeric"},
		{Scope: "person", Name: "n", Type: "String"},
	}
	if diff := cmp.Diff(want, report.Learned); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]ingest.GroupType{{Name: "org", Index: 0}}, report.GroupTypes); diff != "" {
		t.Errorf("group types (-want +got):\n%s", diff)
	}
	again := load(t, c, ingest.Options{Project: p, LearnTypes: true, KnownTypes: append(known, want...)}, file)
	if len(again.Learned) != 0 {
		t.Errorf("learned again: %+v", again.Learned)
	}
	silent := load(t, c, ingest.Options{Project: project()}, file)
	if len(silent.Learned) != 0 {
		t.Errorf("learned without being asked: %+v", silent.Learned)
	}
}
