package ingest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// modelPerson and model implement the rules of persons in their plainest form.
type modelPerson struct {
	ids        []string
	properties map[string]int
	created    time.Time
	identified bool
}

type model struct {
	owner  map[string]*modelPerson
	events []modelEvent
}

type modelEvent struct {
	name, id, mode string
	properties     string
}

func (m *model) create(at time.Time, ids ...string) {
	p := &modelPerson{properties: map[string]int{}, created: at}
	for _, id := range ids {
		m.join(p, id)
	}
}

func (m *model) join(p *modelPerson, id string) {
	m.owner[id] = p
	p.ids = append(p.ids, id)
}

// input is what a client sends.
type input struct {
	name, id, other string
	at              time.Time
	personless      bool
	set, once       map[string]int
	unset           []string
}

func (m *model) apply(in input) {
	target := m.owner[in.id]
	if in.personless {
		if in.other != "" {
			return // dropped
		}
		mode := "propertyless"
		if target != nil && in.at.Sub(target.created) > time.Minute {
			mode = "force_upgrade"
		}
		m.events = append(m.events, modelEvent{in.name, in.id, mode, "{}"})
		return
	}
	if in.other != "" && in.other != in.id {
		source := m.owner[in.other]
		switch {
		case source == nil && target == nil:
			m.create(in.at, in.id, in.other)
		case source == nil:
			m.join(target, in.other)
		case target == nil:
			m.join(source, in.id)
		case source == target:
		case source.identified && in.name != "$merge_dangerously":
		default:
			for key, value := range source.properties {
				if _, ok := target.properties[key]; !ok {
					target.properties[key] = value
				}
			}
			if source.created.Before(target.created) {
				target.created = source.created
			}
			for _, id := range source.ids {
				m.join(target, id)
			}
		}
		m.owner[in.id].identified = true
	}
	if m.owner[in.id] == nil {
		m.create(in.at, in.id)
	}
	p := m.owner[in.id]
	for key, value := range in.once {
		if _, ok := p.properties[key]; !ok {
			p.properties[key] = value
		}
	}
	maps.Copy(p.properties, in.set)
	for _, key := range in.unset {
		delete(p.properties, key)
	}
	m.events = append(m.events, modelEvent{in.name, in.id, "full", asJSON(p.properties)})
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// record is the event as it comes from a client.
func (in *input) record(n int) record.Record {
	properties := map[string]any{"$set": in.set, "$set_once": in.once, "$unset": in.unset}
	switch in.name {
	case "$identify":
		properties["$anon_distinct_id"] = in.other
	case "$create_alias", "$merge_dangerously":
		properties["alias"] = in.other
	}
	if in.personless {
		properties["$process_person_profile"] = false
	}
	r, err := new(record.Parser).Parse([]byte(asJSON(map[string]any{
		"event": in.name, "distinct_id": in.id, "timestamp": in.at.Format(time.RFC3339), "properties": properties,
		"uuid": uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)).String(),
	})))
	if err != nil {
		panic(err)
	}
	r.Arrived = arrived.Add(time.Duration(n) * time.Second)
	return r
}

func randomInput(r *rand.Rand, people int) input {
	id := func() string { return fmt.Sprintf("p%d", r.IntN(people)) }
	properties := func() map[string]int {
		out := map[string]int{}
		for range r.IntN(3) {
			out[string(rune('a'+r.IntN(4)))] = r.IntN(100)
		}
		return out
	}
	in := input{
		name: "e", id: id(), set: properties(), once: properties(), unset: slices.Sorted(maps.Keys(properties())),
		at: time.Date(2024, 3, 4, 10, 0, r.IntN(600), 0, time.UTC), personless: r.IntN(4) == 0,
	}
	switch r.IntN(10) {
	case 0, 1:
		in.name, in.other = "$identify", id()
	case 2:
		in.name, in.other = "$create_alias", id()
	case 3:
		in.name, in.other = "$merge_dangerously", id()
	}
	return in
}

// TestDeliverLikeModel delivers random events, in batches of random size, some of them again, sometimes by another process that broke
// off, and compares what is stored with a plain model.
func TestDeliverLikeModel(t *testing.T) {
	c := client(t)
	for seed := range uint64(7) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := &model{owner: map[string]*modelPerson{}}
			people := 3 + r.IntN(12)
			var records []record.Record
			for n := range 60 + r.IntN(100) {
				in := randomInput(r, people)
				m.apply(in)
				records = append(records, in.record(n))
			}
			options := ingest.Options{Project: project(), Now: now}
			intents := ingest.IntentDir(t.TempDir())
			fresh := func() *ingest.Ingester {
				i := ingest.New(c)
				i.Intents = intents
				if seed >= 6 {
					i.Rows(600) // batches are written in parts
				}
				return i
			}
			i := fresh()
			for at := 0; at < len(records); {
				size := min(1+r.IntN(30), len(records)-at)
				again := r.IntN(at + 1)
				batch := slices.Clone(records[at-again : at+size])
				if r.IntN(3) == 0 { // this one breaks off somewhere
					writes := r.IntN(5)
					i.Before(func(string) error {
						if writes--; writes < 0 {
							return fmt.Errorf("broken off")
						}
						return nil
					})
					_, err := i.Deliver(t.Context(), options, batch)
					i = fresh()
					if err != nil {
						continue
					}
				} else {
					deliver(t, i, options, batch)
				}
				at += size
			}
			compare(t, options.Project, m)
		})
	}
}

func compare(t *testing.T, project int64, m *model) {
	t.Helper()
	c := client(t)
	var wantEvents, wantIDs, wantPersons []string
	label := func(p *modelPerson) string { return strings.Join(slices.Sorted(slices.Values(p.ids)), " ") }
	for _, e := range m.events {
		person := "nobody " + ingest.PersonUUID(project, e.id).String()
		if p := m.owner[e.id]; p != nil {
			person = label(p)
		}
		wantEvents = append(wantEvents, fmt.Sprintf("%s %s %s %s: %s", e.name, e.id, e.mode, e.properties, person))
	}
	seen := map[*modelPerson]bool{}
	for id, p := range m.owner {
		wantIDs = append(wantIDs, id+": "+label(p))
		if !seen[p] {
			wantPersons = append(wantPersons, fmt.Sprintf("%s %s %s %t", label(p), asJSON(p.properties), p.created.Format(time.RFC3339), p.identified))
		}
		seen[p] = true
	}
	slices.Sort(wantIDs)
	slices.Sort(wantPersons)

	read := func(sql string) (out [][]string) {
		for _, row := range ask(t, c, project, sql) {
			var cells []string
			if err := json.Unmarshal([]byte(row), &cells); err != nil {
				t.Fatal(err)
			}
			out = append(out, cells)
		}
		return out
	}
	labels := map[string]string{} // by the id of a person
	var ids []string
	owners := read("SELECT distinct_id, toString(argMax(person_id, version)) FROM person_distinct_id2 GROUP BY distinct_id ORDER BY distinct_id")
	for _, row := range owners {
		labels[row[1]] = strings.TrimSpace(labels[row[1]] + " " + row[0])
	}
	for _, row := range owners {
		ids = append(ids, row[0]+": "+labels[row[1]])
	}
	slices.Sort(ids)
	var persons []string
	for _, row := range read("SELECT toString(id), toJSONString(argMax(properties, version)), formatDateTime(argMax(created_at, version), '%Y-%m-%dT%H:%i:%SZ'), " +
		"if(argMax(is_identified, version) = 1, 'true', 'false') FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0") {
		persons = append(persons, labels[row[0]]+" "+strings.Join(row[1:], " "))
	}
	slices.Sort(persons)
	var events []string
	for _, row := range read(`SELECT event, distinct_id, toString(person_mode), toJSONString(person_properties),
		if(o.distinct_id = '', toString(e.person_id), toString(o.person_id))
		FROM events e LEFT JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides GROUP BY distinct_id) o
		ON e.distinct_id = o.distinct_id ORDER BY e.created_at`) {
		person := labels[row[4]]
		if person == "" {
			person = "nobody " + row[4]
		}
		events = append(events, fmt.Sprintf("%s: %s", strings.Join(row[:4], " "), person))
	}
	for _, part := range []struct {
		name      string
		want, got []string
	}{{"distinct ids", wantIDs, ids}, {"persons", wantPersons, persons}, {"events", wantEvents, events}} {
		if diff := gocmp.Diff(part.want, part.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", part.name, diff)
		}
	}
}
