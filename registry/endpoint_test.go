package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

func TestCreateEndpoint(t *testing.T) {
	r, p := fresh(t)
	given := registry.NewEndpoint{
		Project: p.ID, Name: "daily-n_1", Query: []byte(` { "kind": "HogQLQuery",  "query": "select 1" } `), Description: "What", Tags: []string{" B", "a", "b", " "},
		DerivedFromInsight: "AbCd1234", Columns: []registry.Column{{Name: "1", Type: "integer"}}, CreatedBy: "key",
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute},
	}
	got := must(r.CreateEndpoint(t.Context(), given, now))(t)
	want := &registry.Endpoint{
		Project: p.ID, Name: "daily-n_1", Active: true, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"}, CurrentVersion: 1,
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, CreatedAt: moment, UpdatedAt: moment, CreatedBy: "key", Versions: []registry.Version{{
			Number: 1, Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select 1"}`), Description: "What", FreshnessSeconds: 86400, Active: true,
			Columns: []registry.Column{{Name: "1", Type: "integer"}}, CreatedAt: moment, UpdatedAt: moment, CreatedBy: "key", PublishedAt: moment,
		}},
	}
	withoutIDs := cmp.Options{cmpopts.IgnoreFields(registry.Endpoint{}, "ID"), cmpopts.IgnoreFields(registry.Version{}, "ID")}
	if diff := cmp.Diff(want, got, withoutIDs); diff != "" {
		t.Errorf("CreateEndpoint() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, r.Snapshot().Endpoint(p.ID, "daily-n_1")); diff != "" {
		t.Errorf("Endpoint() (-created +found):\n%s", diff)
	}
	if got.ID == "" || got.ID == got.Versions[0].ID {
		t.Errorf("the ids are %q and %q", got.ID, got.Versions[0].ID)
	}
	given.Name, given.Inactive = "off", true
	if off := must(r.CreateEndpoint(t.Context(), given, now))(t); off.Active || !off.Versions[0].Active {
		t.Errorf("made switched off: endpoint %t, version %t", off.Active, off.Versions[0].Active)
	}
}

func TestCreateEndpointRefuses(t *testing.T) {
	r, p := fresh(t)
	ok := registry.NewEndpoint{Project: p.ID, Name: "taken", Query: query("select 1")}
	must(r.CreateEndpoint(t.Context(), ok, now))(t)
	badName := func(name string) *registry.FieldError {
		return &registry.FieldError{Field: "name", Code: registry.CodeInvalid, Message: "Invalid name '" + name + "'. Must start with a letter, contain only " +
			"alphanumeric characters, hyphens, or underscores, and be between 1 and 128 characters long."}
	}
	named := func(name string) registry.NewEndpoint { n := ok; n.Name = name; return n }
	with := func(change func(*registry.NewEndpoint)) registry.NewEndpoint {
		n := named("another")
		change(&n)
		return n
	}
	asking := func(text string) registry.NewEndpoint {
		return with(func(n *registry.NewEndpoint) { n.Query = json.RawMessage(text) })
	}
	fresh := func(seconds int) registry.NewEndpoint {
		return with(func(n *registry.NewEndpoint) {
			n.Name, n.FreshnessSeconds = "f"+strings.Repeat("x", seconds%100), seconds
		})
	}
	queryRequired := &registry.FieldError{Field: "query", Code: registry.CodeRequired, Message: "This field is required."}
	noObject := &registry.FieldError{Field: "query", Code: registry.CodeInvalid, Message: "Query must be a JSON object."}
	tests := []struct {
		name     string
		endpoint registry.NewEndpoint
		want     *registry.FieldError
	}{
		{"no name", named(""), &registry.FieldError{Field: "name", Code: registry.CodeRequired, Message: "This field is required."}},
		{"name with a space", named("a b"), badName("a b")},
		{"name with a digit first", named("1a"), badName("1a")},
		{"name with a line end", named("a\n"), badName("a\n")},
		{"name of 128", named("a" + strings.Repeat("b", 127)), nil},
		{"name of 129", named("a" + strings.Repeat("b", 128)), badName("a" + strings.Repeat("b", 128))},
		{"name taken", named("taken"), &registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "An endpoint with this name already exists for this team."}},
		{"no query", asking(""), queryRequired},
		{"null query", asking(" null "), queryRequired},
		{"query is no object", asking(`"select 1"`), noObject},
		{"query is broken", asking(`{"a":`), noObject},
		{"freshness 1", fresh(1), nil},
		{"freshness 604800", fresh(604800), nil},
		{"freshness -1", with(func(n *registry.NewEndpoint) { n.FreshnessSeconds = -1 }), &registry.FieldError{Field: "data_freshness_seconds", Code: registry.CodeTooSmall, Message: "Ensure this value is greater than or equal to 1."}},
		{"freshness 604801", fresh(604801), &registry.FieldError{Field: "data_freshness_seconds", Code: registry.CodeTooLarge, Message: "Ensure this value is less than or equal to 604800."}},
		{"long insight id", with(func(n *registry.NewEndpoint) { n.DerivedFromInsight = "1234567890abc" }), &registry.FieldError{Field: "derived_from_insight", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 12 characters."}},
		{"long tag", with(func(n *registry.NewEndpoint) { n.Tags = []string{strings.Repeat("x", 256)} }), &registry.FieldError{Field: "tags", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 255 characters."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.CreateEndpoint(t.Context(), tt.endpoint, now)
			if diff := cmp.Diff(tt.want, mistake(t, err)); diff != "" {
				t.Errorf("CreateEndpoint() mistake (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := r.CreateEndpoint(t.Context(), with(func(n *registry.NewEndpoint) { n.Project = 9 }), now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("CreateEndpoint() in an unknown project = %v, want %v", err, registry.ErrNotFound)
	}
}

func TestUpdateEndpoint(t *testing.T) {
	later := moment.Add(time.Hour)
	never := func(json.RawMessage) bool { return false }
	always := func(json.RawMessage) bool { return true }
	base := registry.NewEndpoint{
		Name: "e", Query: query("select 1"), Description: "first", FreshnessSeconds: 900, Tags: []string{"a"},
		Columns: []registry.Column{{Name: "1", Type: "integer"}}, CreatedBy: "maker", RateLimit: registry.Rate{Queries: 60, Per: time.Minute},
	}
	second := func(e *registry.Endpoint) { // the second version that each case begins with
		v := e.Versions[0]
		v.Number, v.Query, v.Columns, v.CreatedBy = 2, query("select 2"), nil, "maker"
		e.CurrentVersion, e.Versions = 2, append(e.Versions, v)
	}
	third := func(sql string, change func(*registry.Version)) func(*registry.Endpoint) {
		return func(e *registry.Endpoint) {
			v := registry.Version{
				Number: 3, Query: query(sql), Description: "first", FreshnessSeconds: 900, Active: true, CreatedAt: later, UpdatedAt: later, CreatedBy: "changer", PublishedAt: later,
			}
			if change != nil {
				change(&v)
			}
			e.CurrentVersion, e.Versions = 3, append(e.Versions, v)
		}
	}
	version := func(number int, change func(*registry.Version)) func(*registry.Endpoint) {
		return func(e *registry.Endpoint) {
			change(&e.Versions[number-1])
			e.Versions[number-1].UpdatedAt = later
		}
	}
	tests := []struct {
		name   string
		update registry.EndpointUpdate
		want   func(*registry.Endpoint)
	}{
		{"nothing", registry.EndpointUpdate{}, nil},
		{"tags", registry.EndpointUpdate{Tags: &[]string{"C ", "b", "", "c"}}, func(e *registry.Endpoint) { e.Tags = []string{"c", "b"} }},
		{"no tags", registry.EndpointUpdate{Tags: &[]string{}}, func(e *registry.Endpoint) { e.Tags = []string{} }},
		{"a rate", registry.EndpointUpdate{RateLimit: &registry.Rate{Queries: 5, Per: time.Hour}}, func(e *registry.Endpoint) {
			e.RateLimit = registry.Rate{Queries: 5, Per: time.Hour}
		}},
		{"no rate, beside a version's field", registry.EndpointUpdate{Version: 1, RateLimit: new(registry.Rate), FreshnessSeconds: new(1)}, func(e *registry.Endpoint) {
			e.RateLimit = registry.Rate{}
			version(1, func(v *registry.Version) { v.FreshnessSeconds = 1 })(e)
		}},
		{"description of the newest", registry.EndpointUpdate{Description: new("new")}, version(2, func(v *registry.Version) { v.Description = "new" })},
		{"freshness of the newest", registry.EndpointUpdate{FreshnessSeconds: new(1)}, version(2, func(v *registry.Version) { v.FreshnessSeconds = 1 })},
		{"the endpoint off", registry.EndpointUpdate{Active: new(false)}, func(e *registry.Endpoint) { e.Active = false }},
		{"a version off", registry.EndpointUpdate{Version: 1, Active: new(false)}, version(1, func(v *registry.Version) { v.Active = false })},
		{"description and freshness of a version", registry.EndpointUpdate{Version: 1, Description: new(""), FreshnessSeconds: new(60)}, version(1, func(v *registry.Version) {
			v.Description, v.FreshnessSeconds = "", 60
		})},
		{"columns", registry.EndpointUpdate{Columns: []registry.Column{{Name: "2", Type: "integer"}}}, version(2, func(v *registry.Version) {
			v.Columns = []registry.Column{{Name: "2", Type: "integer"}}
		})},
		{"the same query with its keys in another order", registry.EndpointUpdate{Query: []byte(`{"query": "select 2", "kind":"HogQLQuery"}`)}, nil},
		{"a query that the caller finds the same", registry.EndpointUpdate{Query: query("select /* two */ 2"), SameQuery: always}, nil},
		{"the query of an older version", registry.EndpointUpdate{Query: query("select 1"), By: "changer"}, third("select 1", nil)},
		{"a query that the caller finds another", registry.EndpointUpdate{Query: query("select 2"), SameQuery: never, By: "changer"}, third("select 2", nil)},
		{"a new query with its own settings", registry.EndpointUpdate{
			Query: query("select 3"), Description: new("third"), FreshnessSeconds: new(3), Columns: []registry.Column{{Name: "3", Type: "integer"}}, By: "changer", Active: new(false),
		}, func(e *registry.Endpoint) {
			third("select 3", func(v *registry.Version) {
				v.Description, v.FreshnessSeconds, v.Columns = "third", 3, []registry.Column{{Name: "3", Type: "integer"}}
			})(e)
			e.Active = false
		}},
		{"a draft", registry.EndpointUpdate{Query: query("select 3"), Draft: true, FreshnessSeconds: new(3), By: "changer"}, func(e *registry.Endpoint) {
			third("select 3", func(v *registry.Version) { v.FreshnessSeconds, v.PublishedAt = 3, time.Time{} })(e)
			e.CurrentVersion = 2
		}},
		{"a draft of the current query", registry.EndpointUpdate{Query: query("select 2"), Draft: true, By: "changer"}, func(e *registry.Endpoint) {
			third("select 2", func(v *registry.Version) { v.PublishedAt = time.Time{} })(e)
			e.CurrentVersion = 2
		}},
		{"deprecated, with an end", registry.EndpointUpdate{Version: 1, DeprecatedAt: &now, SunsetAt: &later}, version(1, func(v *registry.Version) {
			v.DeprecatedAt, v.SunsetAt = moment, later
		})},
		{"no longer deprecated", registry.EndpointUpdate{DeprecatedAt: &time.Time{}}, version(2, func(*registry.Version) {})},
		{"optional breakdowns", registry.EndpointUpdate{OptionalBreakdowns: &[]string{"b", "a", "b"}}, version(2, func(v *registry.Version) {
			v.OptionalBreakdowns = []string{"b", "a"}
		})},
	}
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := must(r.CreateProject(t.Context(), registry.NewProject{Name: tt.name}, now))(t)
			start := base
			start.Project = p.ID
			want := *must(r.CreateEndpoint(t.Context(), start, now))(t)
			must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 2"), By: "maker"}, now))(t)
			second(&want)
			want.UpdatedAt = later
			if tt.want != nil {
				tt.want(&want)
			}

			got := must(r.UpdateEndpoint(t.Context(), p.ID, "e", tt.update, later))(t)
			ids := make(map[string]bool)
			for _, v := range got.Versions {
				ids[v.ID] = true
			}
			if len(ids) != len(want.Versions) {
				t.Errorf("%d versions have %d ids", len(want.Versions), len(ids))
			}
			if diff := cmp.Diff(&want, got, cmpopts.IgnoreFields(registry.Version{}, "ID")); diff != "" {
				t.Errorf("UpdateEndpoint() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, r.Snapshot().Endpoint(p.ID, "e")); diff != "" {
				t.Errorf("Endpoint() (-updated +found):\n%s", diff)
			}
			checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
		})
	}
}

// TestColumnsThatAreNotDescribed: a query that is sent again while ClickHouse is unavailable keeps the known types of its columns.
func TestColumnsThatAreNotDescribed(t *testing.T) {
	r := openAt(t, sqlitetest.Path(t), quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "p"}, now))(t)
	known := []registry.Column{{Name: "a", Type: "integer", ClickHouse: "Int64"}, {Name: "b", Type: "unknown"}}
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1"), Columns: known}, now))(t)
	tests := []struct {
		name        string
		given, want []registry.Column
	}{
		{"unknown types", []registry.Column{{Name: "a", Type: "unknown"}, {Name: "b", Type: "unknown"}}, known},
		{
			"a known and an unknown one",
			[]registry.Column{{Name: "a", Type: "unknown"}, {Name: "b", Type: "string", ClickHouse: "String"}},
			[]registry.Column{known[0], {Name: "b", Type: "string", ClickHouse: "String"}},
		},
		{"another name", []registry.Column{{Name: "a", Type: "unknown"}, {Name: "c", Type: "unknown"}}, []registry.Column{known[0], {Name: "c", Type: "unknown"}}},
		{"another number of columns", []registry.Column{{Name: "a", Type: "unknown"}}, []registry.Column{{Name: "a", Type: "unknown"}}},
	}
	for _, tt := range tests {
		e := must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 1"), Columns: tt.given}, now))(t)
		if diff := cmp.Diff(tt.want, e.Current().Columns); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestOptionalBreakdownsOfANewVersion: a new version keeps the optional breakdowns of the one before, as far as its query has them.
func TestOptionalBreakdownsOfANewVersion(t *testing.T) {
	r := openAt(t, sqlitetest.Path(t), quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "p"}, now))(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1"), OptionalBreakdowns: []string{"plan", "city"}}, now))(t)
	isPlan := func(name string) bool { return name == "plan" }
	for _, tt := range []struct {
		name   string
		update registry.EndpointUpdate
		want   []string
	}{
		{"a draft", registry.EndpointUpdate{Query: query("select 2"), Draft: true, HasBreakdown: isPlan}, []string{"plan"}},
		{"a version", registry.EndpointUpdate{Query: query("select 3"), HasBreakdown: isPlan}, []string{"plan"}},
		{"one that says which", registry.EndpointUpdate{Query: query("select 4"), HasBreakdown: isPlan, OptionalBreakdowns: &[]string{}}, []string{}},
		{"after that", registry.EndpointUpdate{Query: query("select 5"), HasBreakdown: isPlan}, []string{}},
	} {
		e := must(r.UpdateEndpoint(t.Context(), p.ID, "e", tt.update, now))(t)
		if diff := cmp.Diff(tt.want, e.Versions[len(e.Versions)-1].OptionalBreakdowns); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if first := r.Snapshot().Endpoint(p.ID, "e").Version(1); len(first.OptionalBreakdowns) != 2 {
		t.Errorf("the first version has %v", first.OptionalBreakdowns)
	}
}

func TestUpdateEndpointRefuses(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	unknown := func(text string) *registry.FieldError {
		return &registry.FieldError{Field: "version", Code: registry.CodeInvalid, Message: text}
	}
	tests := []struct {
		name   string
		update registry.EndpointUpdate
		want   *registry.FieldError
	}{
		{"version 2 of 1", registry.EndpointUpdate{Version: 2, Description: new("x")}, unknown("Version 2 not found")},
		{"version -1", registry.EndpointUpdate{Version: -1}, unknown("Version -1 not found")},
		{"query of a version", registry.EndpointUpdate{Version: 1, Query: query("select 2")}, &registry.FieldError{
			Field: "query", Code: registry.CodeInvalid, Message: "Cannot change query when targeting a specific version. Query changes create a new version.",
		}},
		{"broken query", registry.EndpointUpdate{Query: []byte(`[]`)}, &registry.FieldError{Field: "query", Code: registry.CodeInvalid, Message: "Query must be a JSON object."}},
		{"an end before the deprecation", registry.EndpointUpdate{DeprecatedAt: &now, SunsetAt: new(now.Add(-time.Second))}, &registry.FieldError{
			Field: "sunset_at", Code: registry.CodeInvalid, Message: "A version cannot end before it is deprecated.",
		}},
		{"a draft without a query", registry.EndpointUpdate{Draft: true, Description: new("x")}, &registry.FieldError{
			Field: "draft", Code: registry.CodeInvalid, Message: "A draft needs a query.",
		}},
		{"freshness 0", registry.EndpointUpdate{FreshnessSeconds: new(0)}, &registry.FieldError{
			Field: "data_freshness_seconds", Code: registry.CodeTooSmall, Message: "Ensure this value is greater than or equal to 1.",
		}},
		{"long tag", registry.EndpointUpdate{Tags: &[]string{strings.Repeat("x", 256)}}, &registry.FieldError{
			Field: "tags", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 255 characters.",
		}},
	}
	before := records(r.Snapshot())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.UpdateEndpoint(t.Context(), p.ID, "e", tt.update, now)
			if diff := cmp.Diff(tt.want, mistake(t, err)); diff != "" {
				t.Errorf("UpdateEndpoint() mistake (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := r.UpdateEndpoint(t.Context(), p.ID, "x", registry.EndpointUpdate{}, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("UpdateEndpoint() of an unknown one = %v, want %v", err, registry.ErrNotFound)
	}
	if diff := cmp.Diff(before, records(r.Snapshot())); diff != "" {
		t.Errorf("refused updates changed something (-before +after):\n%s", diff)
	}
}

func TestDeleteEndpointFreesTheName(t *testing.T) {
	r, p := fresh(t)
	e := registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}
	first := must(r.CreateEndpoint(t.Context(), e, now))(t)
	must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 2")}, now))(t)
	if err := r.DeleteEndpoint(t.Context(), p.ID, "e", now); err != nil {
		t.Fatalf("DeleteEndpoint() = %v", err)
	}
	if s := r.Snapshot(); s.Endpoint(p.ID, "e") != nil || len(s.Endpoints(p.ID)) != 0 {
		t.Error("the deleted endpoint is still there")
	}
	if err := r.DeleteEndpoint(t.Context(), p.ID, "e", now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("DeleteEndpoint() again = %v, want %v", err, registry.ErrNotFound)
	}
	again := must(r.CreateEndpoint(t.Context(), e, now))(t)
	if again.ID == first.ID || again.CurrentVersion != 1 {
		t.Errorf("the new endpoint has id %s (the old one: %s) and version %d", again.ID, first.ID, again.CurrentVersion)
	}
}

func TestEndpointVersion(t *testing.T) {
	e := registry.Endpoint{CurrentVersion: 2, Versions: []registry.Version{{Number: 1}, {Number: 2}}}
	for number, want := range map[int]*registry.Version{0: &e.Versions[1], 1: &e.Versions[0], 2: &e.Versions[1], 3: nil, -1: nil} {
		if got := e.Version(number); got != want {
			t.Errorf("Version(%d) = %v, want %v", number, got, want)
		}
	}
	if e.Current() != &e.Versions[1] {
		t.Error("Current() is not the newest version")
	}
}

func TestEndpointsAreNewestFirst(t *testing.T) {
	r, p := fresh(t)
	for i, name := range []string{"b", "c", "a", "same1", "same2"} {
		at := now.Add(time.Duration(min(i, 3)) * time.Minute)
		must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: name, Query: query("select 1")}, at))(t)
	}
	var got []string
	for _, e := range r.Snapshot().Endpoints(p.ID) {
		got = append(got, e.Name)
	}
	if diff := cmp.Diff([]string{"same2", "same1", "a", "c", "b"}, got); diff != "" {
		t.Errorf("Endpoints() (-want +got):\n%s", diff)
	}
}
