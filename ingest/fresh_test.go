package ingest_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// TestImportAlone imports the same into two projects, into one of them by an ingester that does not look up what is surely new. Batches break off, events are
// captured meanwhile, and another process writes: both projects come out the same.
func TestImportAlone(t *testing.T) {
	c := client(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	alone, looking := newTarget(t, c, true), newTarget(t, c, false)
	for _, to := range []*target{alone, looking} {
		to.run(t, rand.New(rand.NewPCG(seed, 1)))
	}
	if alone.fresh < 15 {
		t.Errorf("events were written without a lookup after %d imports only", alone.fresh)
	}
	for _, sql := range []string{
		"SELECT count(), uniqExact(uuid) FROM events",
		"SELECT uuid, event, distinct_id, timestamp, person_mode, toJSONString(person_properties) FROM events ORDER BY uuid",
		"SELECT distinct_id, version FROM person_distinct_id2 FINAL ORDER BY distinct_id",
		"SELECT arraySort(groupArray(distinct_id)) AS ids FROM person_distinct_id2 FINAL GROUP BY person_id ORDER BY ids",
		"SELECT arraySort(groupArray(distinct_id)) AS ids FROM person_distinct_id_overrides FINAL GROUP BY person_id ORDER BY ids",
		"SELECT toJSONString(properties) AS p, created_at, is_identified, is_deleted, version FROM person FINAL ORDER BY ALL",
	} {
		if diff := gocmp.Diff(ask(t, c, looking.project, sql), ask(t, c, alone.project, sql)); diff != "" {
			t.Errorf("%s (-with lookups +without):\n%s", sql, diff)
		}
	}
}

// target is a project with a process that writes to it, and another that sometimes does.
type target struct {
	project    int64
	one, other *ingest.Ingester
	fails      int // after how many inserts one fails; -1 for none
	fresh      int // imports after which an event would not be looked up
}

var errBreaksOff = errors.New("the insert breaks off")

func newTarget(t *testing.T, c *clickhouse.Client, alone bool) *target {
	t.Helper()
	to := &target{project: project(), one: ingest.New(c), other: ingest.New(c), fails: -1}
	intents := ingest.IntentDir(t.TempDir())
	for _, i := range []*ingest.Ingester{to.one, to.other} {
		i.Alone, i.Intents = alone, intents
		i.Batches(7, 5)
	}
	to.one.Before(func(string) error {
		if to.fails--; to.fails == -1 {
			return errBreaksOff
		}
		return nil
	})
	return to
}

func (to *target) run(t *testing.T, r *rand.Rand) {
	t.Helper()
	var sent []string
	for n := range 30 {
		var lines []string
		for range 1 + r.IntN(40) {
			if len(sent) > 0 && r.IntN(5) == 0 {
				lines = append(lines, sent[r.IntN(len(sent))])
				continue
			}
			lines = append(lines, randomLine(r))
			sent = append(sent, lines[len(lines)-1])
		}
		text := strings.Join(lines, "\n")
		options := ingest.Options{Project: to.project, Now: now.Add(time.Duration(n) * time.Hour)}
		to.fails = -1
		switch r.IntN(8) {
		case 0:
			to.fails = r.IntN(8)
			if _, err := to.one.Import(t.Context(), options, ingesttest.Lines(text)); err != nil && !errors.Is(err, errBreaksOff) {
				t.Fatal(err)
			}
			to.fails = -1
			to.take(t, to.one, options, text)
		case 1:
			deliver(t, to.one, options, captured(t, text))
		case 2:
			to.other.Forget(to.project)
			to.take(t, to.other, options, text)
			to.one.Forget(to.project)
		default:
			to.take(t, to.one, options, text)
		}
		if to.one.Alone && to.one.SurelyNew(to.project, uuid.New(), now.AddDate(-20, 0, 0)) {
			to.fresh++
		}
	}
}

func (to *target) take(t *testing.T, i *ingest.Ingester, options ingest.Options, text string) {
	t.Helper()
	report, err := i.Import(t.Context(), options, ingesttest.Lines(text))
	if err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
}

// randomLine is an event of a few people, who come and go under several ids over ten years.
func randomLine(r *rand.Rand) string {
	var id uuid.UUID
	for n := range id {
		id[n] = byte(r.IntN(256))
	}
	who, other := r.IntN(60), r.IntN(60)
	event, properties := "a", fmt.Sprintf(`"$set":{"k%d":%d}`, r.IntN(3), r.IntN(9))
	switch r.IntN(8) {
	case 0:
		event, properties = "$identify", fmt.Sprintf(`"$anon_distinct_id":"u%d"`, other)
	case 1:
		event, properties = "$create_alias", fmt.Sprintf(`"alias":"u%d"`, other)
	case 2, 3:
		properties = `"$process_person_profile":false`
	}
	at := now.Add(-time.Duration(r.IntN(10*365*24)) * time.Hour)
	return fmt.Sprintf(`{"event":%q,"distinct_id":"u%d","timestamp":%q,"uuid":%q,"properties":{%s}}`, event, who, at.Format(time.RFC3339), id, properties)
}

// TestImportAloneRemembers imports lines one by one, and forgets people in between: neither what an import wrote itself nor what was delivered meanwhile is
// taken for new.
func TestImportAloneRemembers(t *testing.T) {
	tests := []struct {
		name, first, delivered, then string
	}{
		{name: "a distinct id that joined a person", first: `{"event":"$identify","distinct_id":"u0","properties":{"$anon_distinct_id":"u1","$set":{"a":1}}}`},
		{name: "a person that another distinct id has", first: `{"event":"a","distinct_id":"u0","properties":{"of":"u1","$set":{"a":1}}}`},
		{
			name:  "events without profile",
			first: `{"event":"a","distinct_id":"u1","properties":{"$process_person_profile":false}}`,
			then:  `{"event":"$identify","distinct_id":"u0","properties":{"$anon_distinct_id":"u1"}}`,
		},
		{
			name:  "an event",
			first: `{"event":"a","distinct_id":"u1","uuid":"0193a1de-0000-7000-8000-000000000009"}`,
			then:  `{"timestamp":"2024-03-05T09:00:00Z","event":"a","distinct_id":"u1","uuid":"0193a1de-0000-7000-8000-000000000009"}`,
		},
		{name: "a person that was delivered", first: `{"event":"a","distinct_id":"u0"}`, delivered: `{"event":"a","distinct_id":"u1","properties":{"$set":{"a":1}}}`},
		{
			name: "events without profile that were delivered", first: `{"event":"a","distinct_id":"u0"}`,
			delivered: `{"event":"a","distinct_id":"u1","properties":{"$process_person_profile":false}}`,
			then:      `{"event":"$identify","distinct_id":"u0","properties":{"$anon_distinct_id":"u1"}}`,
		},
		{
			name: "an event that was delivered", first: `{"event":"a","distinct_id":"u0"}`,
			delivered: `{"event":"a","timestamp":"2024-03-04T10:00:00Z","distinct_id":"u1","uuid":"0193a1de-0000-7000-8000-000000000009"}`,
			then:      `{"timestamp":"2024-03-05T09:00:00Z","event":"a","distinct_id":"u1","uuid":"0193a1de-0000-7000-8000-000000000009"}`,
		},
	}
	c := client(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.first + "\n" + cmp.Or(tt.then, `{"event":"b","distinct_id":"u1","properties":{"$set":{"b":1}}}`)
			text = strings.ReplaceAll(text, `{"event"`, `{"timestamp":"2024-03-04T10:00:00Z","event"`)
			var states []state
			for _, alone := range []bool{false, true} {
				p := &players{c: c, project: project(), one: ingest.New(c)}
				p.one.Alone = alone
				p.one.Batches(1, 1)
				options := p.options()
				options.Progress = func(report ingest.Report) {
					if report.Line == 1 && tt.delivered != "" {
						deliver(t, p.one, options, captured(t, tt.delivered))
					}
				}
				p.take(t, p.one, options, text)
				states = append(states, stateOf(t, c, p.project, fewNames...))
			}
			if diff := gocmp.Diff(states[0], states[1]); diff != "" {
				t.Errorf("the project (-with lookups +without):\n%s", diff)
			}
		})
	}
}
