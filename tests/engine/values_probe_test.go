package engine_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/values"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// deliverUntyped is deliverUnnoted for a server that ends before it has kept the type.
func (s *server) deliverUntyped(value string) ingest.Report {
	s.t.Helper()
	r, err := new(record.Parser).Parse([]byte(event(value)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Arrived = time.Now()
	options := s.options()
	options.Values = nil
	report, err := s.wh.Deliver(s.t.Context(), options, []record.Record{r})
	if err != nil || report.Bad > 0 {
		s.t.Fatal(err, report.BadLines)
	}
	return report
}

// deliverUnnoted takes in an event with a property x, as a version does that notes no values.
func (s *server) deliverUnnoted(value string) {
	s.t.Helper()
	for _, l := range s.deliverUntyped(value).Learned {
		if err := s.reg.SetProperty(s.t.Context(), s.project.ID, registry.PropertyDefinition{
			Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name, Type: registry.PropertyType(l.Type),
		}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// prober probes the projects of a server when it is told to.
func (s *server) prober() *values.Prober {
	p := values.New(values.Config{
		Registry: s.reg, Shards: warehouse.Only(s.wh), Places: s.exec.Places, Logger: zap.NewNop(),
		Options: s.intake.Options,
	})
	s.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return p
}

func (s *server) probe() {
	s.t.Helper()
	if err := s.prober().Round(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// beginProbe begins a probe, and returns what ends it after it has read the tables.
func (s *server) beginProbe() (end func()) {
	s.t.Helper()
	var number int64
	err := s.wh.BeginNotes(s.t.Context(), s.options(), func(ctx context.Context) (err error) {
		number, err = s.reg.BeginValuesProbe(ctx, s.project.ID)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		stored, err := s.wh.StoredValues(s.t.Context(), s.exec.Places, s.project.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		s.deliver(`[1]`) // not seen by the probe
		var list []registry.PropertyValues
		for _, l := range stored.Of(s.options().KnownTypes) {
			list = append(list, registry.PropertyValues{PropertyDefinition: registry.PropertyDefinition{
				Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name,
			}, Kinds: l.Kinds})
		}
		if err := s.reg.EndValuesProbe(s.t.Context(), s.project.ID, number, list, time.Now()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// propertyX is the property of the events of these tests.
var propertyX = registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x"}

// TestValuesArriveWhileProbed: values that come in before a probe reads the tables, and after that, before it ends, are among what is known.
func TestValuesArriveWhileProbed(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 4)
	s.deliverUnnoted(`"text"`)
	end := s.beginProbe()
	s.deliver(`true`)
	if kinds := s.reg.Snapshot().ValuesOf(s.project.ID, propertyX); kinds.Known() {
		t.Errorf("while the probe runs, the kinds are %b", kinds)
	}
	if _, sql, err := s.ask(); err != nil || !strings.Contains(sql, ".^") {
		t.Errorf("while the probe runs: %v\n%s", err, sql)
	}
	end()
	if kinds := s.reg.Snapshot().ValuesOf(s.project.ID, propertyX); kinds != physical.Texts|physical.Booleans|physical.Arrays {
		t.Errorf("the kinds are %b", kinds)
	}
	rows, sql, err := s.ask()
	if err != nil || !slices.Equal(rows, []string{"[1]", "text", "true"}) || strings.Contains(sql, ".^") {
		t.Errorf("%v %v\n%s", rows, err, sql)
	}
}

// TestProbesOfAProjectThatLostValues: what comes in while nothing can be noted is unknown after the end of a probe that began before, and known after
// another one.
func TestProbesOfAProjectThatLostValues(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 5)
	s.deliverUnnoted(`"text"`)
	end := s.beginProbe()
	if err := s.reg.Widen(t.Context(), s.project.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	typed := registry.PropertyDefinition{Scope: registry.EventProperty, Name: "y", Type: registry.PropertyString}
	if err := s.reg.SetProperty(t.Context(), s.project.ID, typed); err != nil {
		t.Fatal(err)
	}
	end()
	snap := s.reg.Snapshot()
	if kinds := snap.ValuesOf(s.project.ID, propertyX); kinds != physical.Texts|physical.Arrays {
		t.Errorf("the kinds of x are %b", kinds)
	}
	if kinds := snap.ValuesOf(s.project.ID, typed); kinds != 0 || snap.Project(s.project.ID).ValuesKnown {
		t.Errorf("the kinds of y are %b", kinds)
	}
	s.beginProbe()()
	if p := s.reg.Snapshot().Project(s.project.ID); !p.ValuesKnown || p.ValuesProbe.Open {
		t.Errorf("after another probe: %+v", p)
	}
}

// TestProber: a prober probes a project once.
func TestProber(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 6)
	s.probe()
	if p := s.reg.Snapshot().Project(s.project.ID); p.ValuesProbe.Number != 0 {
		t.Errorf("a project without properties is probed: %+v", p.ValuesProbe)
	}
	s.deliverUnnoted(`5`)
	s.probe()
	first := *s.reg.Snapshot().Project(s.project.ID)
	if !first.ValuesKnown || first.ValuesProbe.Open || first.ValuesProbe.Number != 1 || time.Since(first.ValuesProbe.Ended) > time.Hour {
		t.Errorf("after a probe: %+v", first)
	}
	if kinds := s.reg.Snapshot().ValuesOf(s.project.ID, propertyX); kinds != physical.Wholes|physical.BigWholes {
		t.Errorf("the kinds are %b", kinds)
	}
	s.probe()
	if again := *s.reg.Snapshot().Project(s.project.ID); again.ValuesProbe != first.ValuesProbe {
		t.Errorf("it is probed again: %+v", again.ValuesProbe)
	}
}

// TestProbesOfUntypedProperties: a property that has no type when a probe ends, and gets one later, has had values that nobody knows.
func TestProbesOfUntypedProperties(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 7)
	typed := propertyX
	typed.Name, typed.Type = "other", registry.PropertyString
	if err := s.reg.SetProperty(t.Context(), s.project.ID, typed); err != nil {
		t.Fatal(err)
	}
	s.deliverUntyped(`{"a":1}`)
	s.probe()
	if p := s.reg.Snapshot().Project(s.project.ID); !p.ValuesKnown || !p.ValuesProbe.Open || p.ValuesProbe.Ended.IsZero() {
		t.Errorf("after the probe: %+v", p)
	}
	s.deliver(`"text"`)
	if kinds := s.reg.Snapshot().ValuesOf(s.project.ID, propertyX); kinds != physical.Texts|physical.Earlier {
		t.Errorf("the kinds are %b", kinds)
	}
	if rows, sql, err := s.ask(); err != nil || !slices.Equal(rows, []string{"text", `{"a":1}`}) && !slices.Equal(rows, []string{`{"a":1}`, "text"}) {
		t.Errorf("%v %v\n%s", rows, err, sql)
	}
}

// TestPropertyNamesOfProbes: names that are stored as others are not known, however often they are found, and those that speak about people are none.
func TestPropertyNamesOfProbes(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 8)
	r, err := new(record.Parser).Parse([]byte(`{"event":"e","distinct_id":"u","uuid":"` + uuid.NewString() + `","timestamp":"2024-03-01T00:00:00Z",` +
		`"properties":{"x":"text","a.b":1,"c%2Ed":true,"$groups":{"org":"o"},"":5,"below":{"c":[1]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	options := s.options()
	options.Values = nil
	if _, err := s.wh.Deliver(t.Context(), options, []record.Record{r}); err != nil {
		t.Fatal(err)
	}
	stored, err := s.wh.StoredValues(t.Context(), s.exec.Places, s.project.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]physical.Kinds{}
	for _, l := range stored.Of([]ingest.LearnedProperty{{Scope: "event", Name: "c%2Ed"}, {Scope: "event", Name: "none"}, {Scope: "event", Name: "no.ne"}, {Scope: "event", Name: "$set"}}) {
		if l.Scope == "event" {
			got[l.Name] = l.Kinds
		}
	}
	want := map[string]physical.Kinds{
		"x": physical.Texts, "a.b": physical.Wholes | physical.BigWholes | physical.Earlier, "c%2Ed": physical.Booleans | physical.Earlier, "below": physical.Objects, "none": 0,
	}
	if !maps.Equal(want, got) {
		t.Errorf("found %v, want %v", got, want)
	}
}
