package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestInterplay lets imports, deliveries, deletions and changes of people, dry runs and the end of retention take turns, even between the batches of an import.
// In one project, one ingester does it all and does not look up what is surely new; in another one, each step has its own ingester, which looks everything up,
// and there are no dry runs. Both projects come out the same.
func TestInterplay(t *testing.T) {
	c := client(t)
	seed := uint64(time.Now().UnixNano())
	one := &players{c: c, project: project(), one: ingest.New(c), intents: ingest.IntentDir(t.TempDir())}
	one.one.Alone, one.one.Intents = true, one.intents
	one.one.Batches(3, 4)
	many := &players{c: c, project: project(), intents: ingest.IntentDir(t.TempDir())}
	for _, p := range []*players{one, many} {
		p.play(t, rand.New(rand.NewPCG(seed, 1)))
	}
	if diff := gocmp.Diff(many.log, one.log); diff != "" {
		t.Errorf("seed %d: what was done (-with lookups +without):\n%s", seed, diff)
	}
	if diff := gocmp.Diff(stateOf(t, c, many.project, fewNames...), stateOf(t, c, one.project, fewNames...)); diff != "" {
		t.Errorf("seed %d: the project (-with lookups +without):\n%s", seed, diff)
	}
	if t.Failed() {
		t.Log(strings.Join(many.log, "\n"))
	}
}

// players do the same things to a project.
type players struct {
	c       *clickhouse.Client
	project int64
	one     *ingest.Ingester // nil for a new one each time
	intents ingest.Intents
	epoch   int64
	sent    []string
	log     []string
}

func (p *players) ingester() *ingest.Ingester {
	if p.one != nil {
		return p.one
	}
	i := ingest.New(p.c)
	i.Intents = p.intents
	i.Batches(3, 4)
	return i
}

func (p *players) options() ingest.Options {
	return ingest.Options{Project: p.project, Now: now, Deletions: func() ingest.Deletions { return ingest.Deletions{Epoch: p.epoch} }}
}

func (p *players) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *players) play(t *testing.T, r *rand.Rand) {
	t.Helper()
	for range 5 {
		switch r.IntN(5) {
		case 0:
			p.step(t, r)
		case 1:
			text, seed := p.lines(r, 8), r.Uint64()
			if p.one != nil {
				options := p.options()
				options.DryRun = true
				p.take(t, p.one, options, text)
			}
			p.importing(t, rand.New(rand.NewPCG(seed, 1)), text)
		default:
			p.importing(t, r, p.lines(r, 12))
		}
	}
}

// importing imports lines, with other steps between the batches.
func (p *players) importing(t *testing.T, r *rand.Rand, text string) {
	t.Helper()
	i, options := p.ingester(), p.options()
	if r.IntN(5) == 0 {
		options.EventsFrom = now.AddDate(-2, 0, 0)
	}
	options.Progress = func(ingest.Report) {
		if r.IntN(2) == 0 {
			p.step(t, r)
			if p.one == nil {
				i.Forget(p.project)
			}
		}
	}
	report := p.take(t, i, options, text)
	p.note("import: %d events, %d duplicates, %d people, %d merged, %d too old", report.Events, report.Duplicates, report.People, report.Merged, report.TooOld)
}

func (p *players) take(t *testing.T, i *ingest.Ingester, options ingest.Options, text string) ingest.Report {
	t.Helper()
	report, err := i.Import(t.Context(), options, naming{ingesttest.Lines(text), p.project})
	if err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
	return report
}

// naming yields records whose property "of" says who their person is. An event without uuid has the same one in all projects.
type naming struct {
	ingest.Reader

	project int64
}

func (n naming) Read() (record.Record, error) {
	r, err := n.Reader.Read()
	if of, ok := r.Properties.Get("of").Text(); ok {
		r.PersonID = ingest.PersonUUID(n.project, of)
	}
	if !r.HasUUID {
		r.UUID, r.HasUUID = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, r.Line)), true
	}
	return r, err
}

// step takes one turn.
func (p *players) step(t *testing.T, r *rand.Rand) {
	t.Helper()
	i, options, name, events := p.ingester(), p.options(), fewNames[r.IntN(len(fewNames))], r.IntN(2) == 0
	switch r.IntN(6) {
	case 0:
		change := ingest.Change{Person: ingest.PersonUUID(p.project, name), Set: properties(t, fmt.Sprintf(`{"k1":%d}`, r.IntN(9))), Unset: []string{"k2"}}
		_, err := i.Change(t.Context(), options, change)
		if err != nil && !errors.Is(err, ingest.ErrNoPerson) {
			t.Fatal(err)
		}
		p.note("change %s: %v", name, err)
	case 1, 2:
		p.note("delete %s: %d persons", name, p.remove(t, i, options, name, events))
	case 3:
		from := now.AddDate(-1, 0, 0)
		if err := p.c.DeleteOutdated(t.Context(), clickhouse.Kept{Project: p.project, From: from}, ""); err != nil {
			t.Fatal(err)
		}
		p.epoch++
		p.note("outdated")
	default:
		p.note("deliver: %d events", deliver(t, i, options, captured(t, p.lines(r, 5))).Events)
	}
}

func (p *players) remove(t *testing.T, i *ingest.Ingester, options ingest.Options, name string, events bool) (persons int) {
	t.Helper()
	err := i.Delete(t.Context(), options, ingest.Named{DistinctIDs: []string{name}}, true, func(context.Context, []ingest.Gone) error {
		p.epoch++
		return nil
	}, func(ctx context.Context, list []ingest.Gone) error {
		persons = len(list)
		var names []string
		for _, one := range list {
			for _, n := range one.Names {
				names = append(names, n.Name)
			}
		}
		if !events || len(names) == 0 {
			return nil
		}
		return p.c.Delete(ctx, clickhouse.Deletion{
			Table: physical.Events, Project: p.project, Where: "distinct_id IN {names:Array(String)}",
			Params: []clickhouse.Param{clickhouse.ArrayParam("names", "String", names)},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return persons
}

var fewNames = strings.Fields("u0 u1 u2 u3 u4 u5 u6 u7 g0 g1 g2")

// lines are events of a few people, some of which were there before.
func (p *players) lines(r *rand.Rand, most int) string {
	var lines []string
	for range 1 + r.IntN(most) {
		if len(p.sent) > 0 && r.IntN(3) == 0 {
			lines = append(lines, p.sent[r.IntN(len(p.sent))])
			continue
		}
		lines = append(lines, p.line(r))
		p.sent = append(p.sent, lines[len(lines)-1])
	}
	return strings.Join(lines, "\n")
}

func (p *players) line(r *rand.Rand) string {
	var id uuid.UUID
	for n := range id {
		id[n] = byte(r.IntN(256))
	}
	who, other, of := fewNames[r.IntN(8)], fewNames[r.IntN(8)], fewNames[r.IntN(len(fewNames))]
	event, said := "a", fmt.Sprintf(`"$set":{"k%d":%d}`, r.IntN(3), r.IntN(9))
	switch r.IntN(9) {
	case 0:
		event, said = "$identify", fmt.Sprintf(`"$anon_distinct_id":%q`, other)
	case 1:
		event, said = "$merge_dangerously", fmt.Sprintf(`"alias":%q`, other)
	case 2, 3:
		said = `"$process_person_profile":false`
	case 4, 5:
		said += fmt.Sprintf(`,"of":%q`, of)
	}
	at := now.Add(-time.Duration(r.IntN(3*365*24)) * time.Hour)
	return fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,"uuid":%q,"properties":{%s}}`, event, who, at.Format(time.RFC3339), id, said)
}

// TestImportAgainAfterDeletion: what was imported, deleted and rehearsed is there again after another import by the same ingester, which does not look up what
// is surely new.
func TestImportAgainAfterDeletion(t *testing.T) {
	const text = `{"event":"a","distinct_id":"ann","timestamp":"2024-03-04T10:00:00Z","properties":{"$set":{"plan":"pro"},"of":"boss"}}
		{"event":"$identify","distinct_id":"ann","timestamp":"2024-03-04T10:01:00Z","properties":{"$anon_distinct_id":"anon"}}
		{"event":"a","distinct_id":"anon","timestamp":"2024-03-04T10:02:00Z"}
		{"event":"a","distinct_id":"bob","timestamp":"2024-03-04T10:03:00Z"}`
	c := client(t)
	for _, events := range []bool{true, false} {
		p := &players{c: c, project: project(), one: ingest.New(c)}
		p.one.Alone = true
		p.one.Batches(2, 1)
		p.take(t, p.one, p.options(), text)
		before := peopleOf(t, c, p.project)
		if n := p.remove(t, p.one, p.options(), "anon", events); n != 1 {
			t.Fatalf("%d persons are deleted", n)
		}
		dry := p.options()
		dry.DryRun = true
		left, hidden := peopleOf(t, c, p.project), ask(t, c, p.project, "SELECT count() FROM events")
		p.take(t, p.one, dry, text)
		if diff := gocmp.Diff(left, peopleOf(t, c, p.project)); diff != "" || len(left) != 1 {
			t.Errorf("people after a dry run (-before +after):\n%s", diff)
		}
		report := p.take(t, p.one, p.options(), text)
		if got := ask(t, c, p.project, "SELECT count(), uniqExact(uuid) FROM events"); got[0] != "[4, 4]" {
			t.Errorf("events after they were imported again: %s, %s before (deleted: %t)", got, hidden, events)
		}
		if want := map[bool]int{true: 1, false: 4}[events]; report.Duplicates != want {
			t.Errorf("%d duplicates, want %d", report.Duplicates, want)
		}
		if events {
			if diff := gocmp.Diff(before, peopleOf(t, c, p.project)); diff != "" {
				t.Errorf("people after they were imported again (-want +got):\n%s", diff)
			}
		}
		p.take(t, p.one, p.options(), `{"event":"z","distinct_id":"anon","timestamp":"2024-03-05T10:00:00Z"}`)
		if got := peopleOf(t, c, p.project); !slices.ContainsFunc(got, func(row string) bool { return strings.HasPrefix(row, `["anon"`) }) {
			t.Errorf("the person does not show after it came in again: %v (events deleted: %t)", got, events)
		}
	}
}
