package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testProperties(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	def := func(scope registry.PropertyScope, group int, name string, typ registry.PropertyType) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: scope, GroupTypeIndex: group, Name: name, Type: typ}
	}
	amount, fresh := def(registry.EventProperty, 0, "amount", registry.PropertyNumeric), def(registry.EventProperty, 0, "fresh", registry.PropertyNumeric)
	first := []registry.PropertyDefinition{ // in order
		def(registry.EventProperty, 0, "", registry.PropertyString), def(registry.EventProperty, 0, "Amount", registry.PropertyString), amount,
		def(registry.EventProperty, 0, "x/\" \x00 <b>", registry.PropertyBoolean), def(registry.GroupProperty, 0, "amount", registry.PropertyBoolean),
		def(registry.GroupProperty, 4, "amount", registry.PropertyDateTime), def(registry.PersonProperty, 0, "amount", registry.PropertyString),
	}
	want := slices.Clone(first)
	as := func(d registry.PropertyDefinition, typ registry.PropertyType) registry.PropertyDefinition {
		d.Type = typ
		return d
	}
	for _, step := range []struct {
		name   string
		do     func() error
		change func()
	}{
		{"learning what is new", func() error { return p.Learn(t.Context(), shop.ID, first, nil) }, func() {}},
		{"learning never replaces", func() error {
			return p.Learn(t.Context(), shop.ID, []registry.PropertyDefinition{as(amount, registry.PropertyString), fresh, as(fresh, registry.PropertyString)}, nil)
		}, func() { want = slices.Insert(want, 3, fresh) }},
		{"setting replaces", func() error { return p.SetProperty(t.Context(), shop.ID, as(amount, registry.PropertyBoolean)) }, func() { want[2].Type = registry.PropertyBoolean }},
		{"nothing", func() error { return p.Learn(t.Context(), shop.ID, nil, nil) }, nil},
		{"what is there", func() error { return p.SetProperty(t.Context(), shop.ID, fresh) }, nil},
	} {
		before := p.Snapshot().Revision
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if step.change != nil {
			step.change()
		} else if got := p.Snapshot().Revision; got != before {
			t.Errorf("%s: revision %d after %d", step.name, got, before)
		}
		all := p.settled()
		same(t, step.name, want, all[0].Properties)
		if other.ID != 2 || len(all[1].Properties) != 0 {
			t.Errorf("%s: another project has %v", step.name, all[1].Properties)
		}
	}
}

// testPropertyValues: kinds of values add up, and count for a property whose values are noted from the first one on.
func testPropertyValues(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	type kinds map[registry.PropertyDefinition]physical.Kinds
	at := func(scope registry.PropertyScope, group int, name string) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: scope, GroupTypeIndex: group, Name: name}
	}
	values := func(d registry.PropertyDefinition, typ registry.PropertyType, k physical.Kinds) registry.PropertyValues {
		d.Type = typ
		return registry.PropertyValues{PropertyDefinition: d, Kinds: k}
	}
	old, x, y, z := at(registry.EventProperty, 0, "old"), at(registry.EventProperty, 0, "x"), at(registry.GroupProperty, 3, "x"), at(registry.PersonProperty, 0, "z")
	long := at(registry.EventProperty, 0, strings.Repeat("é", 401))
	typed := old
	typed.Type = registry.PropertyBoolean
	widen := func(lost bool, list ...registry.PropertyValues) func() error {
		return func() error { return p.Widen(t.Context(), shop.ID, list, lost) }
	}
	for _, step := range []struct {
		name  string
		do    func() error
		known bool
		want  kinds
		types int
		still bool // nothing is written
	}{
		{"before all values are noted", widen(false, values(old, registry.PropertyNumeric, physical.Wholes)), false, kinds{}, 1, false},
		{"again", widen(false, values(old, "", physical.Wholes)), false, kinds{}, 1, true},
		{"beginning", func() error { return p.KnowValues(t.Context(), shop.ID) }, true, kinds{}, 1, false},
		{"beginning again", func() error { return p.KnowValues(t.Context(), shop.ID) }, true, kinds{}, 1, true},
		{
			"what is new", widen(false, values(x, registry.PropertyString, physical.Texts), values(y, registry.PropertyNumeric, physical.Floats)), true,
			kinds{x: physical.Texts, y: physical.Floats},
			3, false,
		},
		{"what is there", widen(false, values(x, registry.PropertyNumeric, physical.Texts)), true, kinds{x: physical.Texts, y: physical.Floats}, 3, true},
		{
			"more", widen(false, values(x, "", physical.Objects), values(old, "", physical.Texts)), true,
			kinds{x: physical.Texts | physical.Objects, y: physical.Floats, old: physical.Texts},
			3, false,
		},
		{
			"another type", func() error { return p.SetProperty(t.Context(), shop.ID, typed) }, true,
			kinds{x: physical.Texts | physical.Objects, y: physical.Floats, old: physical.Texts},
			3, false,
		},
		{
			"a name that is too long", widen(false, values(long, registry.PropertyString, physical.Texts)), true,
			kinds{x: physical.Texts | physical.Objects, y: physical.Floats, old: physical.Texts},
			3, true,
		},
		{
			"lost ones", widen(true, values(y, "", physical.Texts), values(z, registry.PropertyString, physical.Texts)), false,
			kinds{x: physical.Texts | physical.Objects, y: physical.Floats | physical.Texts, old: physical.Texts},
			4, false,
		},
	} {
		before := p.Snapshot().Revision
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if got := p.Snapshot().Revision; (got == before) != step.still {
			t.Errorf("%s: revision %d after %d", step.name, got, before)
		}
		_ = p.settled()
		schema := p.Snapshot().Schema(shop.ID)
		if schema.Project.ValuesKnown != step.known || len(schema.Properties) != step.types {
			t.Errorf("%s: known %t, %d types", step.name, schema.Project.ValuesKnown, len(schema.Properties))
		}
		same(t, step.name, step.want, kinds(schema.Values))
		for d, k := range step.want {
			same(t, step.name, k, p.Snapshot().ValuesOf(shop.ID, d))
		}
		if of := p.Snapshot().Schema(other.ID); len(of.Values) > 0 || of.Project.ValuesKnown {
			t.Errorf("%s: another project has %v", step.name, of.Values)
		}
	}
	for name, do := range map[string]func() error{
		"widening": func() error { return p.Widen(t.Context(), 9, nil, false) },
		"knowing":  func() error { return p.KnowValues(t.Context(), 9) },
	} {
		if err := do(); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s of no project: %v", name, err)
		}
	}
}

// testValuesProbes: what is noted from the start of a probe, and what the probe finds, add up. A probe no longer counts once another one has begun.
func testValuesProbes(t exam) {
	p := newPair(t)
	shop := p.project()
	of := func(name string) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: registry.EventProperty, Name: name, Type: registry.PropertyString}
	}
	values := func(name string, k physical.Kinds) registry.PropertyValues {
		return registry.PropertyValues{PropertyDefinition: of(name), Kinds: k}
	}
	widen := func(lost bool, list ...registry.PropertyValues) func() error {
		return func() error { return p.Widen(t.Context(), shop.ID, list, lost) }
	}
	type kinds map[string]physical.Kinds
	type state struct {
		known, open bool
		kinds       kinds
	}
	ended, failed := at.Add(time.Hour), at.Add(2*time.Hour)
	var first, second int64
	begin := func(number *int64) func() error {
		return func() (err error) {
			*number, err = p.BeginValuesProbe(t.Context(), shop.ID)
			return err
		}
	}
	end := func(number *int64, list ...registry.PropertyValues) func() error {
		return func() error { return p.EndValuesProbe(t.Context(), shop.ID, *number, list, ended) }
	}
	const some = physical.Earlier
	for _, step := range []struct {
		name  string
		do    func() error
		want  state
		still bool // nothing is written
	}{
		{"types", func() error {
			return p.Learn(t.Context(), shop.ID, []registry.PropertyDefinition{of("a"), of("b"), of("c")}, nil)
		}, state{false, false, kinds{}}, false},
		{"beginning", begin(&first), state{true, true, kinds{"a": some, "b": some, "c": some}}, false},
		{
			"what comes meanwhile", widen(false, values("a", physical.Texts), values("new", physical.Floats)),
			state{true, true, kinds{"a": some | physical.Texts, "b": some, "c": some, "new": some | physical.Floats}},
			false,
		},
		{
			"lost ones", widen(true, values("later", physical.Texts)),
			state{false, true, kinds{"a": some | physical.Texts, "b": some, "c": some, "new": some | physical.Floats}},
			false,
		},
		{"beginning again", begin(&second), state{
			true, true, kinds{"a": some | physical.Texts, "b": some, "c": some, "new": some | physical.Floats, "later": some},
		}, false},
		{"the end of the first one", end(&first, values("a", physical.Wholes), values("later", 0)), state{
			true, true, kinds{"a": some | physical.Texts, "b": some, "c": some, "new": some | physical.Floats, "later": some},
		}, true},
		{
			"the end of the second one", end(&second, values("a", physical.Wholes), values("b", 0), values("c", some|physical.Texts), values("new", 0), values("typeless", physical.Texts)),
			state{true, true, kinds{"a": physical.Texts | physical.Wholes, "c": some | physical.Texts, "new": physical.Floats, "later": some}},
			false,
		},
		{
			"a first value while there may be earlier ones", widen(false, values("b", physical.Texts), values("typeless", physical.Objects)),
			state{true, true, kinds{
				"a": physical.Texts | physical.Wholes, "b": some | physical.Texts, "c": some | physical.Texts, "new": physical.Floats, "later": some,
				"typeless": some | physical.Objects,
			}},
			false,
		},
		{"beginning a third time", begin(&second), state{true, true, kinds{
			"a": physical.Texts | physical.Wholes, "b": some | physical.Texts, "c": some | physical.Texts, "new": physical.Floats, "later": some,
			"typeless": some | physical.Objects,
		}}, false},
		{
			"the end of the third one",
			end(&second, values("a", physical.Arrays), values("b", 0), values("c", physical.Texts), values("later", physical.Arrays), values("typeless", physical.Texts)),
			state{true, false, kinds{
				"a": physical.Texts | physical.Wholes, "b": physical.Texts, "c": physical.Texts, "new": physical.Floats, "later": physical.Arrays,
				"typeless": physical.Objects | physical.Texts,
			}},
			false,
		},
		{"a new one", widen(false, values("last", physical.Booleans)), state{true, false, kinds{
			"a": physical.Texts | physical.Wholes, "b": physical.Texts, "c": physical.Texts, "new": physical.Floats, "later": physical.Arrays,
			"typeless": physical.Objects | physical.Texts, "last": physical.Booleans,
		}}, false},
	} {
		before := p.Snapshot().Revision
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if got := p.Snapshot().Revision; (got == before) != step.still {
			t.Errorf("%s: revision %d after %d", step.name, got, before)
		}
		_ = p.settled()
		schema := p.Snapshot().Schema(shop.ID)
		got := state{schema.Project.ValuesKnown, schema.Project.ValuesProbe.Open, kinds{}}
		for d, k := range schema.Values {
			got.kinds[d.Name] = k
		}
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(state{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if err := p.FailValuesProbe(t.Context(), shop.ID, second-1, failed); err != nil {
		t.Error(err)
	}
	if got := p.Snapshot().Project(shop.ID).ValuesProbe.Ended; !got.Equal(ended) {
		t.Errorf("the last probe has ended at %s, want %s", got, ended)
	}
	if err := p.FailValuesProbe(t.Context(), shop.ID, second, failed); err != nil {
		t.Error(err)
	}
	if got := p.Snapshot().Project(shop.ID).ValuesProbe.Ended; !got.Equal(failed) {
		t.Errorf("the failed probe has ended at %s, want %s", got, failed)
	}
	for name, do := range map[string]func() error{
		"beginning": func() error {
			_, err := p.BeginValuesProbe(t.Context(), 9)
			return err
		},
		"ending":  func() error { return p.EndValuesProbe(t.Context(), 9, 1, nil, ended) },
		"failing": func() error { return p.FailValuesProbe(t.Context(), 9, 1, ended) },
	} {
		if err := do(); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s of no project: %v", name, err)
		}
	}
}

func testGroupTypes(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	company, team := registry.GroupType{Name: "company", Index: 0}, registry.GroupType{Name: "team", Index: 4}
	for _, tt := range []struct {
		project     int64
		types       []registry.GroupType
		shop, other []registry.GroupType
	}{
		{shop.ID, []registry.GroupType{company}, []registry.GroupType{company}, nil},
		{shop.ID, []registry.GroupType{company, team}, []registry.GroupType{company, team}, nil},
		{shop.ID, []registry.GroupType{team}, []registry.GroupType{company, team}, nil},
		{other.ID, []registry.GroupType{{Name: "company", Index: 1}}, []registry.GroupType{company, team}, []registry.GroupType{{Name: "company", Index: 1}}},
	} {
		if err := p.Learn(t.Context(), tt.project, nil, tt.types); err != nil {
			t.Fatal(err)
		}
		all := p.settled()
		same(t, fmt.Sprintf("after %v", tt.types), [][]registry.GroupType{tt.shop, tt.other}, [][]registry.GroupType{all[0].GroupTypes, all[1].GroupTypes})
	}
	for name, g := range map[string]registry.GroupType{"another index": {Name: "company", Index: 1}, "another name": {Name: "firm", Index: 0}} {
		p.refused(name, &registry.FieldError{Field: "group_type", Code: registry.CodeUnique}, func() error {
			return p.Learn(t.Context(), shop.ID, nil, []registry.GroupType{{Name: "fresh", Index: 2}, g})
		})
	}
}
