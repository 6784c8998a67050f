package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOlderRecordsCanBeRead: the JSON that the first release with records wrote, with fields of a later one.
func TestOlderRecordsCanBeRead(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC)
	tests := []struct {
		kind     Kind
		id, data string
		want     entity
	}{
		{KindInsight, "7", `{"id":7,"short_id":"abc","later":{"a":[1]}}`, &Insight{ID: 7, ShortID: "abc", Project: 3}},
		{
			KindInsight, "7", `{"id":7,"short_id":"abc","name":"n","derived_name":null,"query":{"a":"<b>"},"needs_query_scope":true,"filters":{},"order":2,"deleted":true,
				"favorited":true,"saved":true,"tags":["t"],"created_at":"2026-02-03T04:05:06.789012Z","created_by":"k","last_modified_by":"l"}`,
			&Insight{
				ID: 7, ShortID: "abc", Project: 3, Name: new("n"), Query: json.RawMessage(`{"a":"<b>"}`), NeedsQueryScope: true, Filters: json.RawMessage(`{}`), Order: new(2),
				Deleted: true, Favorited: true, Saved: true, Tags: []string{"t"}, CreatedAt: at, CreatedBy: "k", LastModifiedBy: "l",
			},
		},
		{KindProject, "", `{"id":3,"name":"Shop","timezone":"UTC","week_start":1}`, &Project{ID: 3, Name: "Shop", Timezone: "UTC", WeekStart: 1, Epoch: 1}},
		{KindDashboard, "5", `{"id":5,"description":"d","filters":{}}`, &Dashboard{ID: 5, Project: 3, Description: "d", Filters: json.RawMessage(`{}`)}},
		{KindTile, "5/6", `{"id":6,"dashboard":5,"insight":7,"layouts":{}}`, &Tile{ID: 6, Project: 3, Dashboard: 5, Insight: 7, Layouts: json.RawMessage(`{}`)}},
		{KindVariable, "v", `{"id":"v","code_name":"c","default":9007199254740993,"values":null}`, &Variable{ID: "v", Project: 3, CodeName: "c", Default: int64(9007199254740993)}},
	}
	for _, tt := range tests {
		got, err := kinds[ranks[tt.kind]].entity(&Record{Project: 3, Kind: tt.kind, ID: tt.id, Data: []byte(tt.data)})
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s %s: %v (-want +got):\n%s", tt.kind, tt.data, err, diff)
		}
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	for name, rec := range map[string]Record{
		"no JSON":                    {Kind: KindInsight, ID: "7", Data: []byte(`{`)},
		"another type":               {Kind: KindInsight, ID: "7", Data: []byte(`{"saved":"x"}`)},
		"no number":                  {Kind: KindDashboard, ID: "x", Data: []byte(`{}`)},
		"no tile":                    {Kind: KindTile, ID: "5", Data: []byte(`{}`)},
		"no version":                 {Kind: KindVersion, ID: "e/0", Data: []byte(`{}`)},
		"a version beyond the most":  {Kind: KindVersion, ID: "e/1001", Data: []byte(`{}`)},
		"a short hash":               {Kind: KindKey, ID: "k", Data: []byte(`{"hash":"abcd"}`)},
		"a long secret":              {Kind: KindTokenSecrets, Data: []byte(`{"secrets":[{"secret":"` + strings.Repeat("ab", 33) + `"}]}`)},
		"a form of a later release":  {Kind: KindCohort, ID: "1", Data: []byte(`{"$form":2}`)},
		"a default that is not JSON": {Kind: KindVariable, ID: "v", Data: []byte(`{"default":}`)},
		"an unknown kind":            {Kind: "later", ID: "v", Data: []byte(`{}`)},
	} {
		if _, err := UniqueKeys(&rec); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
}

// TestHistory gives a kind two steps, and reads records from before them, between them and after.
func TestHistory(t *testing.T) {
	rename := func(fields map[string]json.RawMessage) error {
		fields["name"] = fields["title"]
		delete(fields, "title")
		return nil
	}
	shout := func(fields map[string]json.RawMessage) error {
		if string(fields["name"]) == `"fails"` {
			return errors.New("it is not to be")
		}
		fields["name"] = json.RawMessage(strings.ToUpper(string(fields["name"])))
		return nil
	}
	k := kindSpec{kind: KindCohort, read: readCohort, history: []upgrade{rename, shout}}
	for data, want := range map[string]string{
		`{"title":"first"}`:             "FIRST",
		`{"$form":1,"name":"second"}`:   "SECOND",
		`{"$form":2,"name":"as it is"}`: "as it is",
		`{"$form":3,"name":"later"}`:    `the cohort "7" has form 3, and this program knows 2: a newer version of the program wrote it`,
		`{"$form":1,"name":"fails"}`:    `reading the cohort "7", which an older version of the program wrote: it is not to be`,
	} {
		got := ""
		e, err := k.entity(&Record{Project: 3, Kind: KindCohort, ID: "7", Data: []byte(data)})
		if err != nil {
			got = err.Error()
		} else {
			got = *e.(*Cohort).Name
		}
		if got != want {
			t.Errorf("%s reads as %q, want %q", data, got, want)
		}
	}
	written := k.record(&Cohort{ID: 7, Project: 3, Name: new("x")})
	again, err := k.entity(&written)
	if err != nil || *again.(*Cohort).Name != "x" {
		t.Errorf("%s reads as %+v: %v", written.Data, again, err)
	}
}

// TestVersionsWithoutValues: a version that notes no values, or knows of no earlier ones, can't read what this one wrote.
func TestVersionsWithoutValues(t *testing.T) {
	written := kinds[ranks[KindProject]].record(&Project{ID: 1, Name: "p", Timezone: "UTC", ValuesKnown: true})
	for steps := range projectHistory {
		older := kindSpec{kind: KindProject, read: readProject, history: projectHistory[:steps]}
		if e, err := older.entity(&written); err == nil || !strings.Contains(err.Error(), "a newer version of the program wrote it") {
			t.Errorf("after %d steps, %s reads as %+v: %v", steps, written.Data, e, err)
		}
	}
	if form := Form(); form < 23 { // the last version without had 21, and that without probes 22
		t.Errorf("the form of records is %d", form)
	}
}

// TestVersionsWithoutShards: a version that knows of no shards can't read which projects were deleted, and notes nothing about them.
func TestVersionsWithoutShards(t *testing.T) {
	row := kinds[ranks[kindRemoval]]
	written := row.record(&Removal{Project: 3, Shard: "east"})
	older := kindSpec{kind: kindRemoval, read: readRemoval}
	if e, err := older.entity(&written); err == nil || !strings.Contains(err.Error(), "a newer version of the program wrote it") {
		t.Errorf("%s reads as %+v: %v", written.Data, e, err)
	}
	before := older.record(&Removal{Project: 4})
	if e, err := row.entity(&before); err != nil || e.(*Removal).Project != 4 || e.(*Removal).Shard != "" {
		t.Errorf("%s reads as %+v: %v", before.Data, e, err)
	}
}

// TestBrokenProject: a project with a record that can't be read is left out whole, and comes back whole when the record can be read again.
func TestBrokenProject(t *testing.T) {
	k := numberedKey(1, 1)
	records := func() []Record {
		return []Record{
			kinds[ranks[KindProject]].record(&Project{ID: 1, Name: "one", Timezone: "UTC"}),
			kinds[ranks[KindKey]].record(&k), kinds[ranks[KindProject]].record(&Project{ID: 2, Name: "two", Timezone: "UTC"}),
		}
	}
	good := newDraft(&Snapshot{})
	if broken := good.load(records()); len(broken) != 0 {
		t.Fatal(broken)
	}
	before := good.finish(1)
	d := newDraft(before)
	broken := d.load([]Record{{Project: 1, Kind: KindInsight, ID: "7", Data: []byte(`{`)}})
	after := d.finish(2)
	if broken[1] == nil || after.Project(1) != nil || after.KeyByHash(k.Hash) != nil || after.Project(2) == nil || !after.broken[1] {
		t.Errorf("broken %v, and the project, its key and the other one are %v, %v and %v", broken, after.Project(1), after.KeyByHash(k.Hash), after.Project(2))
	}
	if before.Project(1) == nil || before.KeyByHash(k.Hash) == nil || before.broken[1] {
		t.Error("the snapshot before has changed")
	}
}

// FuzzRecord checks that any content of a store is refused or shown, and that what is shown can be written and read again.
func FuzzRecord(f *testing.F) {
	for _, k := range kinds {
		for _, id := range []string{"", "7", "5/6", "e/1", "event/0/\"x\""} {
			f.Add(string(k.kind), id, `{"id":7,"name":"n","timezone":"UTC","hash":"`+strings.Repeat("ab", 32)+`","default":1,"values":null,"secrets":[]}`)
		}
	}
	f.Fuzz(func(t *testing.T, kind, id, data string) {
		rank, known := ranks[Kind(kind)]
		if !known || data == "" {
			return
		}
		rec := Record{Project: 1, Kind: Kind(kind), ID: id, Data: []byte(data)}
		d := newDraft(&Snapshot{})
		_ = d.load([]Record{kinds[ranks[KindProject]].record(&Project{ID: 1, Name: "p", Timezone: "UTC"})})
		broken := d.load([]Record{rec})
		snap := d.finish(1)
		if len(broken) > 0 {
			return
		}
		snap.Projects()
		e, err := kinds[rank].entity(&rec)
		if err != nil {
			return
		}
		again := kinds[rank].record(e)
		if _, err := kinds[rank].entity(&again); err != nil {
			t.Errorf("%s %q %s is written as %s: %v", kind, id, data, again.Data, err)
		}
	})
}
