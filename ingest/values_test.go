package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// values is an ingest.Values in memory.
type values struct {
	known, lost bool
	begun       int
	kinds       map[ingest.LearnedProperty]physical.Kinds // by the property without type and kinds
	types       map[ingest.LearnedProperty]string
	refuse      error
}

func newValues() *values {
	return &values{kinds: map[ingest.LearnedProperty]physical.Kinds{}, types: map[ingest.LearnedProperty]string{}}
}

func (v *values) Known() bool { return v.known }

func (v *values) Changed() (list []ingest.LearnedProperty) {
	for p, typ := range v.types {
		p.Type, p.Kinds = typ, v.kinds[p]
		list = append(list, p)
	}
	return list
}

func (v *values) Begin(context.Context) error {
	v.known = true
	v.begun++
	return nil
}

func (v *values) Widen(_ context.Context, found []ingest.LearnedProperty, lost bool) error {
	if v.refuse != nil {
		return v.refuse
	}
	v.lost = v.lost || lost
	for _, p := range found {
		place := ingest.LearnedProperty{Scope: p.Scope, GroupTypeIndex: p.GroupTypeIndex, Name: p.Name}
		v.kinds[place] |= p.Kinds
		if p.Type != "" {
			v.types[place] = p.Type
		}
	}
	return nil
}

// of lists the known kinds of a scope's properties.
func (v *values) of(scope string) (list []string) {
	for p, kinds := range v.kinds {
		if p.Scope == scope {
			list = append(list, fmt.Sprintf("%s %d %07b", p.Name, p.GroupTypeIndex, kinds))
		}
	}
	slices.Sort(list)
	return list
}

func alone(t *testing.T) *ingest.Ingester {
	t.Helper()
	i := ingest.New(client(t))
	i.Alone = true
	return i
}

// TestValuesAreNotedFirst: the kinds of a batch's values are noted before any of it is written, including values that people and groups get in other ways than
// by their own records.
func TestValuesAreNotedFirst(t *testing.T) {
	i, noted := alone(t), newValues()
	p := project()
	kinds := func(scope, name string, group int) physical.Kinds {
		return noted.kinds[ingest.LearnedProperty{Scope: scope, GroupTypeIndex: group, Name: name}]
	}
	var want func() bool
	i.Before(func(table string) error {
		if !want() {
			return fmt.Errorf("%s is written before the kinds are noted: %v %v %v", table, noted.of("event"), noted.of("person"), noted.of("group"))
		}
		return nil
	})
	options := ingest.Options{Project: p, LearnTypes: true, Values: noted}
	step := func(lines string, is func() bool) {
		t.Helper()
		want = is
		if report := deliver(t, i, options, captured(t, lines)); report.Bad > 0 {
			t.Error(report.BadLines)
		}
		if !is() {
			t.Errorf("%s: noted are %v %v %v", lines, noted.of("event"), noted.of("person"), noted.of("group"))
		}
	}
	step(`{"event":"a","distinct_id":"x","properties":{"v":"text","none":null,"$browser":"Firefox","$set":{"s":{"deep":1}},"$set_once":{"o":true}}}`, func() bool {
		return kinds("event", "v", 0) == physical.Texts && kinds("event", "none", 0) == 0 && kinds("person", "s", 0) == physical.Objects &&
			kinds("person", "o", 0) == physical.Booleans && kinds("person", "$browser", 0) == physical.Texts && kinds("person", "$initial_browser", 0) == physical.Texts
	})
	step(`{"event":"a","distinct_id":"x","properties":{"v":12345678901234567}}
		{"event":"a","distinct_id":"x","properties":{"v":[1]}}
		{"event":"a","distinct_id":"x","properties":{"w":1.5,"x":1e3,"y":7}}`, func() bool {
		return kinds("event", "v", 0) == physical.Texts|physical.BigWholes|physical.Arrays && kinds("event", "w", 0) == physical.Floats &&
			kinds("event", "x", 0) == physical.Wholes|physical.Floats && kinds("event", "y", 0) == physical.Wholes
	})
	options.GroupTypes = []ingest.GroupType{{Name: "org", Index: 1}}
	step(`{"event":"$groupidentify","distinct_id":"x","properties":{"$group_type":"org","$group_key":"o","$group_set":{"g":{"a":1}}}}`, func() bool {
		return kinds("group", "g", 1) == physical.Objects
	})
	if noted.begun != 1 || noted.lost {
		t.Errorf("begun %d times, lost %t", noted.begun, noted.lost)
	}
	if got := noted.types[ingest.LearnedProperty{Scope: "event", Name: "w"}]; got != "Numeric" {
		t.Errorf("w is noted as %q", got)
	}
}

// TestValuesWithoutNote: what cannot be noted is not written.
func TestValuesWithoutNote(t *testing.T) {
	i, noted := alone(t), newValues()
	noted.refuse = errors.New("no room")
	p := project()
	options := ingest.Options{Project: p, LearnTypes: true, Values: noted, Now: now}
	records := captured(t, `{"event":"a","distinct_id":"x","properties":{"v":"text"}}`)
	if _, err := i.Deliver(t.Context(), options, records); !errors.Is(err, noted.refuse) {
		t.Fatal(err)
	}
	if got := ask(t, client(t), p, "SELECT count() FROM events"); got[0] != "[0]" {
		t.Errorf("events: %v", got)
	}
	noted.refuse = nil
	deliver(t, i, options, records)
	if diff := cmp.Diff([]string{"v 0 0000001"}, noted.of("event")); diff != "" {
		t.Error(diff)
	}
}

// TestValuesFromTheFirst: kinds are noted from the first event on, or not at all. New kinds of properties whose kinds are known are noted even if those of
// others are not.
func TestValuesFromTheFirst(t *testing.T) {
	const line = `{"event":"a","distinct_id":"x","timestamp":"2024-01-01","properties":{"v":"text","w":[1]}}`
	load := func(i *ingest.Ingester, options ingest.Options, lines string) {
		t.Helper()
		options.Now = now
		if _, err := i.Import(t.Context(), options, ingesttest.Lines(lines)); err != nil {
			t.Fatal(err)
		}
	}
	for name, before := range map[string]string{
		"events": line, "a person": `{"type":"person","distinct_ids":["y"],"properties":{"age":30}}`,
		"a group": `{"type":"group","group_type":"org","group_key":"o","properties":{"size":3}}`,
	} {
		p := project()
		load(alone(t), ingest.Options{Project: p, LearnTypes: true}, before) // by an earlier version
		noted := newValues()
		known := []ingest.LearnedProperty{{Scope: "event", Name: "w", Type: "String", Kinds: physical.Texts}, {Scope: "event", Name: "v", Type: "String"}}
		load(alone(t), ingest.Options{Project: p, LearnTypes: true, Values: noted, KnownTypes: known}, strings.Replace(line, `"x"`, `"z"`, 1))
		if diff := cmp.Diff([]string{"w 0 0100000"}, noted.of("event")); diff != "" || noted.known {
			t.Errorf("after %s: known %t %s", name, noted.known, diff)
		}
	}

	noted, shared := newValues(), ingest.New(client(t)) // others may write there
	load(shared, ingest.Options{Project: project(), LearnTypes: true, Values: noted}, line)
	if noted.known || len(noted.kinds) > 0 {
		t.Errorf("where others write: known %t, %v", noted.known, noted.kinds)
	}
	noted = newValues()
	load(alone(t), ingest.Options{Project: project(), LearnTypes: true, Values: noted, DryRun: true}, line)
	if noted.known || len(noted.kinds) > 0 {
		t.Errorf("by a dry run: known %t, %v", noted.known, noted.kinds)
	}
	noted = newValues()
	load(alone(t), ingest.Options{Project: project(), Values: noted}, line)
	if !noted.known || !noted.lost || len(noted.kinds) > 0 {
		t.Errorf("without types: known %t, lost %t, %v", noted.known, noted.lost, noted.kinds)
	}
	noted = newValues()
	load(alone(t), ingest.Options{Project: project(), Values: noted, LearnTypes: true, MaxTypes: 1}, line)
	if diff := cmp.Diff([]string{"v 0 0000001"}, noted.of("event")); diff != "" || !noted.lost {
		t.Errorf("without room: lost %t %s", noted.lost, diff)
	}
}

// TestValuesOfALateImport: an import takes into account what others have noted since it began. So it notes what it brings for a property that has kinds by now,
// whether or not it learns types itself, all values are noted, or there is room for more types.
func TestValuesOfALateImport(t *testing.T) {
	other := []ingest.LearnedProperty{{Scope: "event", Name: "other", Type: "String"}}
	for name, tt := range map[string]struct {
		options ingest.Options // as of when it began
		all     bool           // all values are noted still
	}{
		"learns no types":         {ingest.Options{}, true},
		"there is no more room":   {ingest.Options{LearnTypes: true, KnownTypes: other, MaxTypes: 1}, true},
		"not all is noted":        {ingest.Options{LearnTypes: true}, false},
		"not all, and known then": {ingest.Options{LearnTypes: true, KnownTypes: []ingest.LearnedProperty{{Scope: "event", Name: "p", Type: "String"}}}, false},
	} {
		i, noted := alone(t), newValues()
		tt.options.Project, tt.options.Values, tt.options.Now = project(), noted, now
		meanwhile := ingest.Options{Project: tt.options.Project, LearnTypes: true, Values: noted}
		deliver(t, i, meanwhile, captured(t, `{"event":"a","distinct_id":"x","properties":{"p":"x"}}`))
		noted.known = tt.all
		if _, err := i.Import(t.Context(), tt.options, ingesttest.Lines(
			`{"event":"a","distinct_id":"x","timestamp":"2024-01-01","properties":{"p":5}}`,
		)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"p 0 0000011"}, noted.of("event")); diff != "" || noted.lost {
			t.Errorf("%s: lost %t %s", name, noted.lost, diff)
		}
	}
}

// TestValuesOfChanges: a change of a person notes kinds too.
func TestValuesOfChanges(t *testing.T) {
	i, noted := alone(t), newValues()
	p := project()
	options := ingest.Options{Project: p, LearnTypes: true, Values: noted, Now: now}
	deliver(t, i, options, captured(t, `{"event":"a","distinct_id":"x","properties":{"$set":{"s":"text"}}}`))
	var id uuid.UUID
	if err := id.UnmarshalText([]byte(strings.Trim(ask(t, client(t), p, "SELECT id FROM person")[0], `["]`))); err != nil {
		t.Fatal(err)
	}
	set := captured(t, `{"event":"a","distinct_id":"x","properties":{"s":{"a":1}}}`)[0].Properties
	if _, err := i.Change(t.Context(), options, ingest.Change{Person: id, Set: set}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s 0 1000001"}, noted.of("person")); diff != "" {
		t.Error(diff)
	}
}

// TestNotesBeginAfterWhatBrokeOff: when notes begin, the tables have what an earlier, interrupted batch left unwritten.
func TestNotesBeginAfterWhatBrokeOff(t *testing.T) {
	c := client(t)
	intents := ingest.IntentDir(t.TempDir())
	options := ingest.Options{Project: project(), Now: now}
	killed := alone(t)
	killed.Intents = intents
	killed.Before(func(string) error { return errors.New("the server was killed") })
	if _, err := killed.Deliver(t.Context(), options, captured(t, `{"event":"e","distinct_id":"x","properties":{"$set":{"a":1}}}`)); err == nil {
		t.Fatal("the batch did not break off")
	}
	next := alone(t)
	next.Intents = intents
	begun := false
	err := next.BeginNotes(t.Context(), options, func(context.Context) error {
		begun = true
		if diff := cmp.Diff([]string{`{"a":1} 0`}, propertiesOfAll(t, c, options.Project)); diff != "" {
			t.Errorf("properties when notes begin (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil || !begun {
		t.Errorf("begun: %t, %v", begun, err)
	}
	if err := next.BeginNotes(t.Context(), options, func(context.Context) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("notes that cannot be kept: %v", err)
	}
}
