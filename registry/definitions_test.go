package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	nodes "github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

func TestCreateProject(t *testing.T) {
	r := openAt(t, sqlitetest.Path(t), quiet)
	required := &registry.FieldError{Field: "name", Code: registry.CodeRequired, Message: "This field is required."}
	noZone := func(name string) *registry.FieldError {
		return &registry.FieldError{Field: "timezone", Code: registry.CodeNotChoice, Message: `"` + name + `" is not a valid choice.`}
	}
	tests := []struct {
		name    string
		given   registry.NewProject
		want    *registry.Project
		mistake *registry.FieldError
	}{
		{"with defaults", registry.NewProject{Name: " Shop "}, &registry.Project{ID: 1, Name: "Shop", Timezone: "UTC", CreatedAt: moment}, nil},
		{
			"with everything, of the same name",
			registry.NewProject{Name: "Shop", Timezone: "Asia/Kathmandu", WeekStart: 1},
			&registry.Project{ID: 2, Name: "Shop", Timezone: "Asia/Kathmandu", WeekStart: 1, CreatedAt: moment},
			nil,
		},
		{"no name", registry.NewProject{Name: " "}, nil, required},
		{"long name", registry.NewProject{Name: strings.Repeat("x", 201)}, nil, &registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 200 characters."}},
		{"unknown zone", registry.NewProject{Name: "x", Timezone: "Mars/Base"}, nil, noZone("Mars/Base")},
		{"a zone of the machine", registry.NewProject{Name: "x", Timezone: "Local"}, nil, noZone("Local")},
		{"a fixed offset", registry.NewProject{Name: "x", Timezone: "Fixed/UTC+01:00:00"}, nil, noZone("Fixed/UTC+01:00:00")},
		{"a zone that ClickHouse does not know", registry.NewProject{Name: "x", Timezone: "America/Coyhaique"}, nil, noZone("America/Coyhaique")},
		{
			"a zone in another case",
			registry.NewProject{Name: "x", Timezone: "europe/berlin"},
			nil,
			&registry.FieldError{
				Field: "timezone", Code: registry.CodeNotChoice,
				Message: `"europe/berlin" is not a valid choice. Perhaps you meant "Europe/Berlin"?`,
			},
		},
		{"a path for a zone", registry.NewProject{Name: "x", Timezone: "../etc/passwd"}, nil, noZone("../etc/passwd")},
		{"week start -1", registry.NewProject{Name: "x", WeekStart: -1}, nil, &registry.FieldError{Field: "week_start_day", Code: registry.CodeTooSmall, Message: "Ensure this value is greater than or equal to 0."}},
		{"week start 2", registry.NewProject{Name: "x", WeekStart: 2}, nil, &registry.FieldError{Field: "week_start_day", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 1."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.CreateProject(t.Context(), tt.given, now)
			if diff := cmp.Diff(tt.mistake, mistake(t, err)); diff != "" {
				t.Errorf("CreateProject() mistake (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("CreateProject() (-want +got):\n%s", diff)
			}
			if tt.want == nil {
				return
			}
			if diff := cmp.Diff(tt.want, r.Snapshot().Project(tt.want.ID)); diff != "" {
				t.Errorf("Project() (-want +got):\n%s", diff)
			}
			if got := r.Snapshot().Schema(tt.want.ID).Location.String(); got != tt.want.Timezone {
				t.Errorf("the location is %s, want %s", got, tt.want.Timezone)
			}
		})
	}
	if got := len(r.Snapshot().Projects()); got != 2 {
		t.Errorf("there are %d projects, want 2", got)
	}
}

func TestUpdateProject(t *testing.T) {
	r, created := fresh(t)
	p := created.ID
	tests, none, zone, week := `[{"key": "email", "type": "person", "operator": "not_icontains", "value": "@shop.example"}]`, "[ ]", "Asia/Tokyo", 1
	before := r.Snapshot().Schema(p)
	got, err := r.UpdateProject(t.Context(), p, registry.ProjectChange{Timezone: &zone, WeekStart: &week, TestAccountFilters: &tests})
	if err != nil {
		t.Fatal(err)
	}
	after := r.Snapshot().Schema(p)
	if before == after || after.Project != *got || got.WeekStart != 1 || after.Location.String() != zone || got.Name != before.Project.Name {
		t.Errorf("the project is %+v, its schema %+v", got, after)
	}
	want := &nodes.Condition{At: "test_account_filters", All: []nodes.Condition{{
		At:     "test_account_filters.0",
		Filter: &nodes.Property{Type: "person", Key: "email", Operator: "not_icontains", Value: "@shop.example"},
	}}}
	if diff := cmp.Diff(want, after.TestAccounts); diff != "" {
		t.Errorf("the condition against test accounts (-want +got):\n%s", diff)
	}
	if got, err = r.UpdateProject(t.Context(), p, registry.ProjectChange{TestAccountFilters: &none}); err != nil || got.TestAccountFilters != "" {
		t.Errorf("an empty list makes %+v, %v", got, err)
	}
	bad := func(field, text, message string) {
		t.Helper()
		change := registry.ProjectChange{TestAccountFilters: &text}
		if field == "path_cleaning_filters" {
			change = registry.ProjectChange{PathCleaningFilters: &text}
		}
		_, err := r.UpdateProject(t.Context(), p, change)
		if diff := cmp.Diff(&registry.FieldError{Field: field, Code: registry.CodeInvalid, Message: message}, mistake(t, err)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", field, text, diff)
		}
	}
	bad("test_account_filters", `{}`, "test_account_filters: JSON parse error - 1 validation error for Project\n"+
		"project.test_account_filters\n  Input should be a valid list [type=list_type]")
	bad("test_account_filters", `[{"key": "x", "typ": "person", "value": 1}]`, "test_account_filters.0.typ: JSON parse error - 1 validation error for Project\n"+
		"project.test_account_filters.0.typ\n  Extra inputs are not permitted [type=extra_forbidden]: did you mean 'type'?")
	bad("path_cleaning_filters", `[{"regex": "("}]`, "path_cleaning_filters.0.regex: JSON parse error - 1 validation error for Project\n"+
		"project.path_cleaning_filters.0.regex\n  Input should be a regular expression in the syntax of RE2: error parsing regexp: missing closing ): `(` [type=value_error]")
	if _, err := r.UpdateProject(t.Context(), 99, registry.ProjectChange{}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a project that is not there gives %v", err)
	}
}

func TestCreateVariable(t *testing.T) {
	r, p := fresh(t)
	field := func(field string, code registry.Code, message string) *registry.FieldError {
		return &registry.FieldError{Field: field, Code: code, Message: message}
	}
	text := registry.VariableString
	tests := []struct {
		name    string
		given   registry.NewVariable
		want    *registry.Variable
		mistake *registry.FieldError
	}{
		{"bare", registry.NewVariable{Name: " Region ", Type: text}, &registry.Variable{Name: "Region", CodeName: "region", Type: text}, nil},
		{
			"with everything",
			registry.NewVariable{Name: "Customer's Name_2 (über)", Type: registry.VariableList, Default: json.RawMessage(`"acme"`), Values: json.RawMessage(`["acme", 1, 1.5, null]`), IsMulti: true, CreatedBy: "key"},
			&registry.Variable{
				Name: "Customer's Name_2 (über)", CodeName: "customers_name_2_über", Type: registry.VariableList, Default: "acme",
				Values: []any{"acme", int64(1), 1.5, nil}, IsMulti: true, CreatedBy: "key",
			},
			nil,
		},
		{"null default and values", registry.NewVariable{Name: "n", Type: text, Default: json.RawMessage(`null`), Values: json.RawMessage(`null`)}, &registry.Variable{Name: "n", CodeName: "n", Type: text}, nil},
		{"an integer of 64 bits", registry.NewVariable{Name: "u", Type: registry.VariableNumber, Default: json.RawMessage(`18446744073709551615`)}, &registry.Variable{Name: "u", CodeName: "u", Type: registry.VariableNumber, Default: uint64(18446744073709551615)}, nil},
		{"several values of a text", registry.NewVariable{Name: "m", Type: text, IsMulti: true}, &registry.Variable{Name: "m", CodeName: "m", Type: text}, nil},
		{
			"a check that changes it",
			registry.NewVariable{Name: "c", Type: text, Default: json.RawMessage(`"a"`), Check: func(v *registry.Variable) error { v.Default = v.Default.(string) + "b"; return nil }},
			&registry.Variable{Name: "c", CodeName: "c", Type: text, Default: "ab"}, nil,
		},
		{
			"a check that refuses",
			registry.NewVariable{Name: "d", Type: text, Check: func(*registry.Variable) error { return field("default_value", registry.CodeInvalid, "no") }},
			nil, field("default_value", registry.CodeInvalid, "no"),
		},
		{"the code name of another", registry.NewVariable{Name: "REGION!", Type: text}, nil, field("code_name", registry.CodeUnique, "Variable with this code name already exists")},
		{"no name", registry.NewVariable{Type: text}, nil, field("name", registry.CodeRequired, "This field is required.")},
		{"long name", registry.NewVariable{Name: strings.Repeat("x", 401), Type: text}, nil, field("name", registry.CodeTooLong, "Ensure this field has no more than 400 characters.")},
		{"name without a code name", registry.NewVariable{Name: "!?", Type: text}, nil, field("name", registry.CodeInvalid, "The name must have a letter or a digit.")},
		{"no type", registry.NewVariable{Name: "x"}, nil, field("type", registry.CodeRequired, "This field is required.")},
		{"unknown type", registry.NewVariable{Name: "x", Type: "Text"}, nil, field("type", registry.CodeNotChoice, `"Text" is not a valid choice.`)},
		{"broken default", registry.NewVariable{Name: "x", Type: text, Default: json.RawMessage(`{`)}, nil, field("default_value", registry.CodeInvalid, "Value must be valid JSON.")},
		{"two defaults", registry.NewVariable{Name: "x", Type: text, Default: json.RawMessage(`1 2`)}, nil, field("default_value", registry.CodeInvalid, "Value must be valid JSON.")},
		{"values are no list", registry.NewVariable{Name: "x", Type: text, Values: json.RawMessage(`{}`)}, nil, field("values", registry.CodeInvalid, "Expected a list of items.")},
		{"a value that is an object", registry.NewVariable{Name: "x", Type: text, Values: json.RawMessage(`["a", {"label": "b"}]`)}, nil, field("values", registry.CodeInvalid, "Values must be strings, numbers, booleans or null.")},
		{"broken values", registry.NewVariable{Name: "x", Type: text, Values: json.RawMessage(`[`)}, nil, field("values", registry.CodeInvalid, "Value must be valid JSON.")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.given.Project = p.ID
			got, err := r.CreateVariable(t.Context(), tt.given, now)
			if diff := cmp.Diff(tt.mistake, mistake(t, err)); diff != "" {
				t.Errorf("CreateVariable() mistake (-want +got):\n%s", diff)
			}
			if tt.want == nil {
				return
			}
			tt.want.Project, tt.want.CreatedAt = p.ID, moment
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(registry.Variable{}, "ID")); diff != "" {
				t.Errorf("CreateVariable() (-want +got):\n%s", diff)
			}
			s := r.Snapshot()
			if diff := cmp.Diff([]*registry.Variable{got, got}, []*registry.Variable{s.VariableByCode(p.ID, got.CodeName), s.VariableByID(p.ID, got.ID)}); diff != "" {
				t.Errorf("lookups (-created +found):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]any{"region": nil, "n": nil, "customers_name_2_über": "acme", "u": uint64(18446744073709551615), "m": nil, "c": "ab"}, r.Snapshot().VariableDefaults(p.ID)); diff != "" {
		t.Errorf("VariableDefaults() (-want +got):\n%s", diff)
	}
	if _, err := r.CreateVariable(t.Context(), registry.NewVariable{Project: 9, Name: "x", Type: text}, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("CreateVariable() in an unknown project = %v, want %v", err, registry.ErrNotFound)
	}
}

func TestUpdateAndDeleteVariable(t *testing.T) {
	r, p := fresh(t)
	first := must(r.CreateVariable(t.Context(), registry.NewVariable{Project: p.ID, Name: "First", Type: registry.VariableNumber, Default: json.RawMessage(`5`)}, now))(t)
	second := must(r.CreateVariable(t.Context(), registry.NewVariable{Project: p.ID, Name: "Second", Type: registry.VariableString}, now.Add(time.Minute)))(t)

	got := must(r.UpdateVariable(t.Context(), p.ID, first.ID, registry.VariableUpdate{Name: new(" Renamed")}))(t)
	want := *first
	want.Name = "Renamed"
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("renaming (-want +got):\n%s", diff)
	}
	got = must(r.UpdateVariable(t.Context(), p.ID, first.ID, registry.VariableUpdate{
		Type: new(registry.VariableList), Default: json.RawMessage(`null`), Values: json.RawMessage(`["a"]`), IsMulti: new(true),
	}))(t)
	want.Type, want.Default, want.Values, want.IsMulti = registry.VariableList, nil, []any{"a"}, true
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("changing the rest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*registry.Variable{got, second}, r.Snapshot().Variables(p.ID)); diff != "" {
		t.Errorf("Variables() (-want +got):\n%s", diff)
	}

	_, err := r.UpdateVariable(t.Context(), p.ID, first.ID, registry.VariableUpdate{Type: new(registry.VariableType("x"))})
	if diff := cmp.Diff(&registry.FieldError{Field: "type", Code: registry.CodeNotChoice, Message: `"x" is not a valid choice.`}, mistake(t, err)); diff != "" {
		t.Errorf("an unknown type (-want +got):\n%s", diff)
	}
	refused := errors.New("refused")
	_, err = r.UpdateVariable(t.Context(), p.ID, first.ID, registry.VariableUpdate{Values: json.RawMessage(`["b"]`), Check: func(v *registry.Variable) error {
		if diff := cmp.Diff([]any{"b"}, v.Values); diff != "" {
			t.Errorf("what is checked (-want +got):\n%s", diff)
		}
		return refused
	}})
	if !errors.Is(err, refused) || r.Snapshot().VariableByID(p.ID, first.ID).Values[0] != "a" {
		t.Errorf("a refused update gives %v and %v", err, r.Snapshot().VariableByID(p.ID, first.ID).Values)
	}
	if _, err := r.UpdateVariable(t.Context(), p.ID, "x", registry.VariableUpdate{}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("UpdateVariable() of an unknown one = %v, want %v", err, registry.ErrNotFound)
	}
	if err := r.DeleteVariable(t.Context(), p.ID, first.ID); err != nil {
		t.Errorf("DeleteVariable() = %v", err)
	}
	if err := r.DeleteVariable(t.Context(), p.ID, first.ID); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("DeleteVariable() again = %v, want %v", err, registry.ErrNotFound)
	}
	if diff := cmp.Diff([]*registry.Variable{second}, r.Snapshot().Variables(p.ID)); diff != "" {
		t.Errorf("Variables() after a deletion (-want +got):\n%s", diff)
	}
}

func TestPropertiesAndGroupTypes(t *testing.T) {
	r, p := fresh(t)
	empty := r.Snapshot().Schema(p.ID)
	amount := registry.PropertyDefinition{Scope: registry.EventProperty, Name: "amount", Type: registry.PropertyNumeric}
	asText := amount
	asText.Type = registry.PropertyString
	size := registry.PropertyDefinition{Scope: registry.GroupProperty, GroupTypeIndex: 4, Name: "size", Type: registry.PropertyNumeric}
	nameless := registry.PropertyDefinition{Scope: registry.PersonProperty, Type: registry.PropertyBoolean}
	company, team := registry.GroupType{Name: "company", Index: 4}, registry.GroupType{Name: "team", Index: 0}

	if err := r.Learn(t.Context(), p.ID, []registry.PropertyDefinition{size, asText, amount, nameless}, []registry.GroupType{company, team}); err != nil {
		t.Fatalf("Learn() = %v", err)
	}
	learned := r.Snapshot().Schema(p.ID)
	want := &registry.ProjectSchema{
		Project: *p, Location: time.UTC,
		Properties: []registry.PropertyDefinition{asText, size, nameless}, // event, group, person
		GroupTypes: []registry.GroupType{team, company},
	}
	sameZone := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, learned, sameZone); diff != "" {
		t.Errorf("Schema() (-want +got):\n%s", diff)
	}
	if len(empty.Properties) != 0 {
		t.Error("an older snapshot changed")
	}

	before := r.Snapshot().Revision
	if err := r.Learn(t.Context(), p.ID, []registry.PropertyDefinition{amount}, []registry.GroupType{team}); err != nil {
		t.Fatalf("Learn() of what is known = %v", err)
	}
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	if got := r.Snapshot(); got.Revision != before+1 || got.Schema(p.ID) != learned {
		t.Errorf("learning nothing new made revision %d of %d, or another schema", got.Revision, before)
	}

	if err := r.SetProperty(t.Context(), p.ID, amount); err != nil {
		t.Fatalf("SetProperty() = %v", err)
	}
	if diff := cmp.Diff([]registry.PropertyDefinition{amount, size, nameless}, r.Snapshot().PropertyDefinitions(p.ID)); diff != "" {
		t.Errorf("PropertyDefinitions() (-want +got):\n%s", diff)
	}
}

func TestPropertiesAndGroupTypesRefuse(t *testing.T) {
	r, p := fresh(t)
	if err := r.Learn(t.Context(), p.ID, nil, []registry.GroupType{{Name: "company", Index: 1}}); err != nil {
		t.Fatal(err)
	}
	set := func(d registry.PropertyDefinition) func() error {
		return func() error { return r.SetProperty(t.Context(), p.ID, d) }
	}
	learn := func(g registry.GroupType) func() error {
		return func() error {
			d := registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyNumeric}
			return r.Learn(t.Context(), p.ID, []registry.PropertyDefinition{d}, []registry.GroupType{g})
		}
	}
	def := func(scope registry.PropertyScope, group int, name string, typ registry.PropertyType) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: scope, GroupTypeIndex: group, Name: name, Type: typ}
	}
	field := func(field string, code registry.Code, message string) *registry.FieldError {
		return &registry.FieldError{Field: field, Code: code, Message: message}
	}
	contradiction := field("group_type", registry.CodeUnique, "Another group type has this name or this index already.")
	tests := []struct {
		name string
		do   func() error
		want *registry.FieldError
	}{
		{"no name", set(def("event", 0, "", "String")), field("name", registry.CodeRequired, "This field is required.")},
		{"long name", set(def("event", 0, strings.Repeat("x", 401), "String")), field("name", registry.CodeTooLong, "Ensure this field has no more than 400 characters.")},
		{"scope", set(def("session", 0, "x", "String")), field("type", registry.CodeNotChoice, `"session" is not a valid choice.`)},
		{"type", set(def("event", 0, "x", "Integer")), field("property_type", registry.CodeNotChoice, `"Integer" is not a valid choice.`)},
		{"group index of an event's property", set(def("event", 1, "x", "String")), field("group_type_index", registry.CodeInvalid, "Only a group property has a group type index.")},
		{"group index 5", set(def("group", 5, "x", "String")), field("group_type_index", registry.CodeTooLarge, "Ensure this value is less than or equal to 4.")},
		{"group type without a name", learn(registry.GroupType{}), field("group_type", registry.CodeRequired, "This field is required.")},
		{"group type of a long name", learn(registry.GroupType{Name: strings.Repeat("x", 401)}), field("group_type", registry.CodeTooLong, "Ensure this field has no more than 400 characters.")},
		{"group type -1", learn(registry.GroupType{Name: "x", Index: -1}), field("group_type_index", registry.CodeTooSmall, "Ensure this value is greater than or equal to 0.")},
		{"group type at two indexes", learn(registry.GroupType{Name: "company", Index: 0}), contradiction},
		{"group index with two names", learn(registry.GroupType{Name: "firm", Index: 1}), contradiction},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mistake(t, tt.do())); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
	if err := r.SetProperty(t.Context(), 9, def("event", 0, "x", "String")); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("SetProperty() in an unknown project = %v, want %v", err, registry.ErrNotFound)
	}
	if got := r.Snapshot().PropertyDefinitions(p.ID); len(got) != 0 {
		t.Errorf("refused calls left %v", got)
	}
}

// FuzzDecodeJSON checks that a value reads the same after it was written: a store must give back what it was given.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{`1`, `1.0`, `-0`, `1e2`, `1e18`, `1e20`, `1e400`, `9223372036854775808`, `1e19`, `-9223372036854775808.0`, `"ä\ud800"`, `[{"a":null}]`, `1 2`, ``, `{"a":1,"a":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := registry.DecodeJSON([]byte(text))
		if err != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%q was read and can't be written: %v", text, err)
		}
		second, err := registry.DecodeJSON(written)
		if err != nil {
			t.Fatalf("%q was written as %q, which can't be read: %v", text, written, err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%q reads another way after it was written as %q (-first +second):\n%s", text, written, diff)
		}
	})
}
