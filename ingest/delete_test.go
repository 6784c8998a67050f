package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
)

// remove deletes people, and returns those that it found, and who was there when the persons were hidden.
func remove(t *testing.T, c *clickhouse.Client, options ingest.Options, gone bool, who ingest.Named) (found []ingest.Gone, left []string) {
	t.Helper()
	err := ingest.New(c).Delete(t.Context(), options, who, gone, func(_ context.Context, list []ingest.Gone) error {
		found = list
		return nil
	}, func(context.Context, []ingest.Gone) error {
		left = peopleOf(t, c, options.Project)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, left
}

// peopleOf lists the distinct ids with their persons.
func peopleOf(t *testing.T, c *clickhouse.Client, project int64) []string {
	t.Helper()
	return ask(t, c, project, `SELECT distinct_id, toJSONString(properties) FROM
		(SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id2 GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) i
		JOIN (SELECT id, argMax(properties, version) AS properties FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0) p
		ON p.id = i.person_id ORDER BY distinct_id`)
}

// TestDelete: a person is found by any of its names, with all of them; a later event with one of them makes a new person.
func TestDelete(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Now: now}
	const lines = `{"event":"a","distinct_id":"anon","properties":{"$set":{"plan":"pro"}}}
		{"event":"$identify","distinct_id":"ann","properties":{"$anon_distinct_id":"anon"}}
		{"event":"a","distinct_id":"bob","properties":{"$set":{"plan":"free"}}}`
	deliver(t, ingest.New(c), options, captured(t, lines))
	other := ingest.Options{Project: project(), Now: now}
	deliver(t, ingest.New(c), other, captured(t, lines))
	all := []string{`["ann", "{\"plan\":\"pro\"}"]`, `["anon", "{\"plan\":\"pro\"}"]`, `["bob", "{\"plan\":\"free\"}"]`}

	found, left := remove(t, c, options, false, ingest.Named{DistinctIDs: []string{"anon", "nobody"}})
	if len(found) != 1 || len(found[0].Names) != 2 || found[0].Names[0].Name != "ann" {
		t.Errorf("found %+v, want Ann with both names", found)
	}
	if diff := cmp.Diff(all, left); diff != "" {
		t.Errorf("people after they were only looked for (-want +got):\n%s", diff)
	}
	found, left = remove(t, c, options, true, ingest.Named{Persons: []uuid.UUID{found[0].ID, uuid.New()}, DistinctIDs: []string{"ann"}})
	if len(found) != 1 {
		t.Errorf("deleted %+v, want Ann once", found)
	}
	if diff := cmp.Diff(all[2:], left); diff != "" {
		t.Errorf("people after the deletion (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, peopleOf(t, c, other.Project)); diff != "" {
		t.Errorf("people of another project (-want +got):\n%s", diff)
	}
	if found, _ = remove(t, c, options, true, ingest.Named{Persons: []uuid.UUID{found[0].ID}, DistinctIDs: []string{"anon"}}); len(found) != 0 {
		t.Errorf("deleted %+v again", found)
	}

	deliver(t, ingest.New(c), options, captured(t, `{"event":"b","distinct_id":"anon"}`))
	want := []string{`["anon", "{}"]`, all[2]}
	if diff := cmp.Diff(want, peopleOf(t, c, options.Project)); diff != "" {
		t.Errorf("people after another event (-want +got):\n%s", diff)
	}
	// Earlier events belong to whoever has the distinct id now, as in PostHog.
	overrides := ask(t, c, options.Project, "SELECT distinct_id, argMax(person_id, version) FROM person_distinct_id_overrides GROUP BY distinct_id")
	if want := fmt.Sprintf("[%q, %q]", "anon", ingest.PersonUUID(options.Project, "anon")); !slices.Contains(overrides, want) {
		t.Errorf("the overrides are %v, want %s among them", overrides, want)
	}
}

// TestDeliverLate: captured events that arrived before a deletion do not bring the person back, however they name it, and do not come back themselves if they
// are deleted too. Later ones count.
func TestDeliverLate(t *testing.T) {
	c := client(t)
	late := now.Add(-time.Minute)
	for _, tt := range []struct {
		name    string
		events  time.Time // until when they are deleted
		arrived time.Time
		stored  int
		people  []string
	}{
		{"with the events", now, late, 0, nil},
		{"without the events", time.Time{}, late, 1, nil},
		{"after an earlier deletion with the events", late.Add(-time.Second), late, 1, nil},
		{"after the deletion", now, now.Add(time.Second), 2, []string{`["ann", "{\"plan\":\"pro\"}"]`, `["eve", "{\"plan\":\"pro\"}"]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := ingest.Options{Project: project(), Now: now, Deletions: func() ingest.Deletions {
				return ingest.Deletions{Late: map[string]ingest.Late{"ann": {Until: now, EventsUntil: tt.events}}, Epoch: 1}
			}}
			records := captured(t, `{"event":"a","distinct_id":"ann","properties":{"$set":{"plan":"pro"}}}
				{"event":"$identify","distinct_id":"eve","properties":{"$anon_distinct_id":"ann"}}`)
			for n := range records {
				records[n].Arrived = tt.arrived
			}
			report := deliver(t, ingest.New(c), options, records)
			if diff := cmp.Diff(tt.people, peopleOf(t, c, options.Project)); diff != "" {
				t.Errorf("people (-want +got):\n%s", diff)
			}
			stored := ask(t, c, options.Project, "SELECT event, distinct_id, person_mode FROM events")
			if len(stored) != tt.stored || report.Dropped != 2-tt.stored {
				t.Errorf("stored are %v, and %d were dropped; want %d of 2 events", stored, report.Dropped, tt.stored)
			}
		})
	}
}

// TestDeliverAfterDeletion: rows that ClickHouse had before the deletion are accepted again, although it skips the same batch if it comes twice.
func TestDeliverAfterDeletion(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Now: now}
	const lines = `{"event":"a","distinct_id":"ann","uuid":"0193a1de-0000-7000-8000-000000000009"}`
	deliver(t, ingest.New(c), options, captured(t, lines))
	remove(t, c, options, true, ingest.Named{DistinctIDs: []string{"ann"}})
	for _, table := range []string{"events", "person", "person_distinct_id2", "person_distinct_id_overrides"} {
		if err := c.Delete(t.Context(), clickhouse.Deletion{Table: table, Project: options.Project}); err != nil {
			t.Fatal(err)
		}
	}
	options.Deletions = func() ingest.Deletions { return ingest.Deletions{Epoch: 7} }
	deliver(t, ingest.New(c), options, captured(t, lines))
	if got := peopleOf(t, c, options.Project); len(got) != 1 {
		t.Errorf("people are %v, want Ann", got)
	}
	if got := ask(t, c, options.Project, "SELECT count() FROM events"); got[0] != "[1]" {
		t.Errorf("there are %v events, want one", got)
	}
}

// TestBrokenOffAfterDeletion: a batch with what ClickHouse had before the deletion is completed with all of it.
func TestBrokenOffAfterDeletion(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Now: now}
	intents := ingest.IntentDir(t.TempDir())
	const lines = `{"event":"a","distinct_id":"ann","uuid":"0193a1de-0000-7000-8000-000000000009"}`
	deliver(t, ingest.New(c), options, captured(t, lines))
	remove(t, c, options, true, ingest.Named{DistinctIDs: []string{"ann"}})
	for _, table := range []string{"events", "person", "person_distinct_id2"} {
		if err := c.Delete(t.Context(), clickhouse.Deletion{Table: table, Project: options.Project}); err != nil {
			t.Fatal(err)
		}
	}
	options.Deletions = func() ingest.Deletions { return ingest.Deletions{Epoch: 7} }
	killed := ingest.New(c)
	killed.Intents = intents
	killed.Before(func(table string) error {
		if table == "events" {
			return errors.New("the server was killed")
		}
		return nil
	})
	if _, err := killed.Deliver(t.Context(), options, captured(t, lines)); err == nil {
		t.Fatal("the batch did not break off")
	}
	next := ingest.New(c)
	next.Intents = intents
	deliver(t, next, options, captured(t, `{"event":"b","distinct_id":"bob"}`))
	if diff := cmp.Diff([]string{`["a"]`, `["b"]`}, ask(t, c, options.Project, "SELECT event FROM events ORDER BY event")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDeleteAgain: a person that comes back after everything about it was erased can be deleted again.
func TestDeleteAgain(t *testing.T) {
	c := client(t)
	epoch := int64(0)
	options := ingest.Options{Project: project(), Now: now, Deletions: func() ingest.Deletions { return ingest.Deletions{Epoch: epoch} }}
	for range 2 {
		deliver(t, ingest.New(c), options, captured(t, `{"event":"a","distinct_id":"ann"}`))
		if got := peopleOf(t, c, options.Project); len(got) != 1 {
			t.Errorf("people are %v, want Ann", got)
		}
		err := ingest.New(c).Delete(t.Context(), options, ingest.Named{DistinctIDs: []string{"ann"}}, true, func(context.Context, []ingest.Gone) error {
			epoch++
			return nil
		}, func(context.Context, []ingest.Gone) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := peopleOf(t, c, options.Project); len(got) != 0 {
			t.Errorf("people after the deletion: %v", got)
		}
		for _, table := range []string{"events", "person", "person_distinct_id2", "person_distinct_id_overrides"} {
			if err := c.Delete(t.Context(), clickhouse.Deletion{Table: table, Project: options.Project}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDeleteFails: a deletion that learns that another server has written, and then fails, leaves it to the next batch to complete what that server left, and
// to look people up again.
func TestDeleteFails(t *testing.T) {
	const first = `{"event":"a","distinct_id":"ann","properties":{"$set":{"plan":"pro"}}}
		{"event":"a","distinct_id":"anon","properties":{"$set":{"n":1}}}`
	killed := errors.New("the server was killed")
	tests := []struct {
		name, other string
		before      func(table string) error
		err         error
		want        []string
	}{
		{
			"written by another server", `{"event":"b","distinct_id":"ann","properties":{"$set":{"city":"Rome"}}}`, nil, nil,
			[]string{`["ann", "{\"city\":\"Rome\",\"plan\":\"pro\",\"x\":1}"]`, `["anon", "{\"n\":1}"]`},
		},
		{
			"left unfinished by another server", `{"event":"$identify","distinct_id":"ann","properties":{"$anon_distinct_id":"anon"}}`,
			func(table string) error {
				if table == "person" {
					return killed
				}
				return nil
			},
			killed,
			[]string{`["ann", "{\"n\":1,\"plan\":\"pro\",\"x\":1}"]`, `["anon", "{\"n\":1,\"plan\":\"pro\",\"x\":1}"]`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t)
			options := ingest.Options{Project: project(), Now: now}
			intents := &unreadableIntents{IntentDir: ingest.IntentDir(t.TempDir())}
			one, other := ingest.New(c), ingest.New(c)
			one.Intents, other.Intents = intents, intents.IntentDir
			deliver(t, one, options, captured(t, first))
			if tt.before != nil {
				other.Before(tt.before)
			}
			if _, err := other.Deliver(t.Context(), options, captured(t, tt.other)); !errors.Is(err, tt.err) {
				t.Fatalf("the other server's batch: %v, want %v", err, tt.err)
			}

			one.Forget(options.Project)
			intents.err = errors.New("the registry is away")
			nothing := func(context.Context, []ingest.Gone) error { return nil }
			if err := one.Delete(t.Context(), options, ingest.Named{DistinctIDs: []string{"nobody"}}, true, nothing, nothing); !errors.Is(err, intents.err) {
				t.Fatalf("the deletion: %v, want %v", err, intents.err)
			}
			intents.err = nil
			deliver(t, one, options, captured(t, `{"event":"c","distinct_id":"ann","properties":{"$set":{"x":1}}}`))
			if diff := cmp.Diff(tt.want, peopleOf(t, c, options.Project)); diff != "" {
				t.Errorf("people (-want +got):\n%s", diff)
			}
		})
	}
}

// unreadableIntents can't be read while err is set.
type unreadableIntents struct {
	ingest.IntentDir
	err error
}

func (u *unreadableIntents) Load(ctx context.Context, project int64) ([]byte, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.IntentDir.Load(ctx, project)
}
