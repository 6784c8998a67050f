package ingest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// membersToday are the members of cohorts by all their distinct ids; storedMembers counts the rows behind them.
const (
	membersToday = `SELECT m.cohort_id, arrayStringConcat(p.ids, '+') FROM (SELECT DISTINCT cohort_id, person_id FROM person_static_cohort) m
		JOIN (SELECT person_id, arraySort(groupArray(distinct_id)) AS ids FROM (
			SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id2 GROUP BY distinct_id) GROUP BY person_id) p
		ON m.person_id = p.person_id ORDER BY ALL`
	storedMembers = `SELECT count() FROM person_static_cohort`
)

// TestImportCohorts imports files one after the other into one project, whole, line by line, and both again.
func TestImportCohorts(t *testing.T) {
	const people = `{"type":"person","distinct_ids":["x","x2"]}
{"event":"a","distinct_id":"y","timestamp":"2024-01-01T00:00:00Z"}
{"type":"person","distinct_ids":["z"]}
`
	tests := []struct {
		name   string
		file   string
		want   []string
		stored string
	}{
		{
			"people by any of their ids, each once",
			people + `{"type":"cohort","cohort_id":5,"distinct_ids":["x2","y","x"]}
{"type":"cohort","cohort_id":5,"distinct_ids":["x"]}
{"type":"cohort","cohort_id":6,"distinct_ids":["x","x"]}`,
			[]string{`[5, "x+x2"]`, `[5, "y"]`, `[6, "x+x2"]`},
			"[3]",
		},
		{
			"who becomes another person brings the cohorts along",
			people + `{"type":"cohort","cohort_id":5,"distinct_ids":["z","y"]}
{"type":"cohort","cohort_id":6,"distinct_ids":["z"]}
{"type":"person","distinct_ids":["y","z"]}
{"type":"person","distinct_ids":["x","y"]}`,
			[]string{`[5, "x+x2+y+z"]`, `[6, "x+x2+y+z"]`},
			"",
		},
		{
			"who identifies",
			people + `{"type":"cohort","cohort_id":5,"distinct_ids":["z"]}
{"event":"$identify","distinct_id":"y","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"z"}}`,
			[]string{`[5, "y+z"]`},
			"",
		},
	}
	for _, tt := range tests {
		for way, files := range map[string][]string{"whole": {tt.file}, "line by line": strings.Split(tt.file, "\n")} {
			t.Run(tt.name+", "+way, func(t *testing.T) {
				c := client(t)
				options := ingest.Options{Project: project(), Cohorts: []int64{5, 6}}
				for _, file := range slices.Concat(files, files) {
					load(t, c, options, file)
				}
				if diff := cmp.Diff(tt.want, ask(t, c, options.Project, membersToday)); diff != "" {
					t.Errorf("members (-want +got):\n%s", diff)
				}
				if got := ask(t, c, options.Project, storedMembers)[0]; tt.stored != "" && got != tt.stored {
					t.Errorf("%s rows, want %s", got, tt.stored)
				}
			})
		}
	}
}

// TestImportCohortsAgain: whoever was taken out of a cohort is put back by the line that put them there first.
func TestImportCohortsAgain(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Cohorts: []int64{5}}
	load(t, c, options, `{"type":"person","distinct_ids":["x"]}`)
	for range 2 {
		load(t, c, options, `{"type":"cohort","cohort_id":5,"distinct_ids":["x"]}`)
		if diff := cmp.Diff([]string{`[5, "x"]`}, ask(t, c, options.Project, membersToday)); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
		if err := c.Delete(t.Context(), clickhouse.Deletion{Table: physical.StaticMembers, Project: options.Project, Where: "cohort_id = 5"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimeOfBatches: rows say when their batch was written. Who fills a cohort looks for the persons that were merged meanwhile, even by a long import.
func TestTimeOfBatches(t *testing.T) {
	c := client(t)
	i := ingest.New(c)
	i.Batches(1, 100)
	i.Before(func(string) error {
		time.Sleep(5 * time.Millisecond)
		return nil
	})
	options := ingest.Options{Project: project(), Now: now}
	if _, err := i.Import(t.Context(), options, ingesttest.Lines(`{"type":"person","distinct_ids":["x"]}`, `{"type":"person","distinct_ids":["y"]}`)); err != nil {
		t.Fatal(err)
	}
	const apart = "SELECT max(_timestamp) >= min(_timestamp) + toIntervalMillisecond(5) FROM person"
	if got := ask(t, c, options.Project, apart); got[0] != "[1]" {
		t.Error("two batches have the same time")
	}
}

// TestTimeAfterWaiting: the rows of an import that waited for another one do not say that they were written before that.
func TestTimeAfterWaiting(t *testing.T) {
	const wait = 100 * time.Millisecond
	i := ingest.New(client(t))
	var first sync.Once
	writing := make(chan struct{})
	i.Before(func(string) error {
		first.Do(func() {
			close(writing)
			time.Sleep(wait)
		})
		return nil
	})
	options := ingest.Options{Project: project(), Now: now}
	add := func(name string) error {
		_, err := i.Import(t.Context(), options, ingesttest.Lines(fmt.Sprintf(`{"type":"person","distinct_ids":[%q]}`, name)))
		return err
	}
	one := make(chan error, 1)
	go func() { one <- add("x") }()
	select {
	case <-writing:
	case err := <-one:
		t.Fatalf("the first import ended early: %v", err)
	}
	if err := errors.Join(add("y"), <-one); err != nil {
		t.Fatal(err)
	}
	const late = "SELECT max(_timestamp) >= fromUnixTimestamp64Micro(%d) FROM person"
	if got := ask(t, client(t), options.Project, fmt.Sprintf(late, now.Add(wait/2).UnixMicro())); got[0] != "[1]" {
		t.Error("the import that waited has the time at which it was called")
	}
}

func TestImportCohortsReport(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Cohorts: []int64{5}, Now: now}
	lines := []string{
		`{"type":"person","distinct_ids":["x"]}`,
		`{"type":"person","distinct_ids":["y"]}`,
		`{"type":"cohort","cohort_id":5,"distinct_ids":["x"]}`,
		`{"type":"cohort","cohort_id":6,"distinct_ids":["x"]}`,
		`{"type":"cohort","cohort_id":5,"distinct_ids":["y","nobody"]}`,
		`{"type":"cohort","cohort_id":5,"distinct_ids":["a","b","c","d","e","f","g"]}`,
		`{"type":"cohort","distinct_ids":["x"]}`,
		`{"type":"cohort","cohort_id":0,"distinct_ids":["x"]}`,
		`{"type":"cohort","cohort_id":5.5,"distinct_ids":["x"]}`,
		`{"type":"cohort","cohort_id":5}`,
		`{"type":"cohort","cohort_id":5,"distinct_ids":"x"}`,
	}
	want := ingest.Report{
		Persons: 2, People: 2, Line: 6, Cohorts: 1, Members: 1, Filled: map[int64]bool{5: true}, Bad: 8,
		BadLines: []ingest.BadLine{
			{7, "it has no cohort_id"},
			{8, `its cohort_id "0" is not a cohort's number`},
			{9, `its cohort_id "5.5" is not a cohort's number`},
			{10, "a cohort line needs distinct_ids"},
			{11, "its distinct_ids are not a list of names"},
			{4, "the project has no cohort 6"},
			{5, `no person has the distinct id "nobody"`},
			{6, `no person has the distinct ids "a", "b", "c", "d", "e" and 2 more`},
		},
	}
	report, err := ingest.New(c).Import(t.Context(), options, ingesttest.Lines(lines...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, report, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if report, err = ingest.New(c).Import(t.Context(), options, ingesttest.Lines(lines[2])); err != nil || report.Cohorts != 1 || report.Members != 0 {
		t.Errorf("report of a line that was imported before: %+v, %v", report, err)
	}
	if diff := cmp.Diff([]string{`[5, "x"]`}, ask(t, c, options.Project, membersToday)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	options.Project = project()
	load(t, c, options, lines[0])
	if got := ask(t, c, options.Project, storedMembers); got[0] != "[0]" {
		t.Errorf("another project has %s rows of members", got[0])
	}
}
