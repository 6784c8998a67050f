package registrytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testEndpoints(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	full := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{
		Project: shop.ID, Name: "daily", Query: odd("1"), Description: "Größe — ≤ 1", FreshnessSeconds: 900, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"},
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, Columns: []registry.Column{{Name: "n", Type: "integer", ClickHouse: "UInt8"}},
		OptionalBreakdowns: []string{"plan", "a"}, DeprecatedAt: at.Add(time.Minute), SunsetAt: at.Add(time.Hour), CreatedBy: "key",
	}, at.Add(time.Second)))(t)
	same(t, "a new endpoint", registry.Endpoint{
		ID: full.ID, Project: shop.ID, Name: "daily", Active: true, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"}, CurrentVersion: 1,
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, CreatedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Second), CreatedBy: "key",
		Versions: []registry.Version{{
			ID: full.Versions[0].ID, Number: 1, Query: odd("1"), Description: "Größe — ≤ 1", FreshnessSeconds: 900, Active: true,
			Columns:   []registry.Column{{Name: "n", Type: "integer", ClickHouse: "UInt8"}},
			CreatedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Second), CreatedBy: "key", PublishedAt: at.Add(time.Second),
			DeprecatedAt: at.Add(time.Minute), SunsetAt: at.Add(time.Hour), OptionalBreakdowns: []string{"plan", "a"},
		}},
	}, full)
	bare := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "Bare", Query: odd("1"), Inactive: true}, at))(t)
	same(t, "endpoints", []registry.Endpoint{full, bare}, p.settled()[0].Endpoints)
	if bare.Versions[0].Columns != nil || p.other.Snapshot().Endpoint(shop.ID, "Bare").Versions[0].Columns != nil {
		t.Error("columns that are not known have become none")
	}

	later := at.Add(time.Hour)
	full = *must(p.UpdateEndpoint(ctx, shop.ID, "daily", registry.EndpointUpdate{
		Version: 1, Description: new(""), FreshnessSeconds: new(1), Active: new(false), Columns: []registry.Column{}, DeprecatedAt: &time.Time{}, SunsetAt: &later,
		OptionalBreakdowns: &[]string{}, Tags: &[]string{"c"}, RateLimit: &registry.Rate{},
	}, later))(t)
	for n := 2; n <= 11; n++ { // ten and more sort as numbers
		full = *must(p.UpdateEndpoint(ctx, shop.ID, "daily", registry.EndpointUpdate{Query: odd(strconv.Itoa(n)), Draft: n == 7, By: "another"}, later))(t)
	}
	full = *must(p.Promote(ctx, shop.ID, "daily", 3, nil, later))(t)
	if len(full.Versions) != 11 || full.CurrentVersion != 3 || !full.Versions[6].Draft() || full.Versions[0].Active || string(full.Versions[10].Query) != string(odd("11")) {
		t.Errorf("the endpoint is %+v", full)
	}
	same(t, "endpoints", []registry.Endpoint{full, bare}, p.settled()[0].Endpoints)

	if err := p.DeleteEndpoint(ctx, shop.ID, "daily", later); err != nil {
		t.Fatal(err)
	}
	again := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("1")}, later))(t)
	same(t, "endpoints", []registry.Endpoint{again, bare}, p.settled()[0].Endpoints)
}

// testTables: the tables of materialized versions, their fills, and what takes them away.
func testTables(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	on, off := registry.TableUpdate{On: new(true)}, registry.TableUpdate{On: new(false)}
	tables := func() (all []*registry.Table) {
		t.Helper()
		for _, v := range p.settled()[0].Endpoints[0].Versions {
			all = append(all, v.Table)
		}
		if shown := p.Snapshot().Endpoint(shop.ID, "daily"); shown != nil && len(shown.Versions) != len(all) {
			t.Errorf("the endpoint has %d versions, and %d in the store", len(shown.Versions), len(all))
		}
		return all
	}
	update := func(u registry.EndpointUpdate, when time.Time) {
		t.Helper()
		must(p.UpdateEndpoint(ctx, shop.ID, "daily", u, when))(t)
	}
	buckets := map[string]string{"timestamp": "hour"}
	e := must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("1"), Table: registry.TableUpdate{On: new(true), Buckets: buckets}}, at))(t)
	made := tables()[0]
	same(t, "a new table", &registry.Table{ID: made.ID, Buckets: buckets, Pending: at.UnixMilli()}, made)

	begun := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	if !begun.Running || begun.Pending <= made.Pending {
		t.Errorf("the fill that was begun is %+v", begun)
	}
	if must(p.SwapFill(ctx, shop.ID, e.ID, 1, made.Pending, registry.Table{}))(t) {
		t.Error("a fill that was given up is read")
	}
	if !must(p.SwapFill(ctx, shop.ID, e.ID, 1, begun.Pending, registry.Table{AsOf: at, Took: time.Second, Rows: 3, Of: "x"}))(t) {
		t.Error("a fill is not read")
	}
	filled := &registry.Table{ID: made.ID, Buckets: buckets, Fill: begun.Pending, AsOf: at, Took: time.Second, Rows: 3, Of: "x"}
	same(t, "a table that was filled", filled, tables()[0])

	update(registry.EndpointUpdate{Description: new("other"), Table: registry.TableUpdate{On: new(true)}}, at)
	same(t, "a table after another description", filled, tables()[0])
	again := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	if !must(p.FailFill(ctx, shop.ID, e.ID, 1, again.Pending, "no room", at.Add(time.Second)))(t) {
		t.Error("a fill did not fail")
	}
	failed := *filled
	failed.Errors, failed.LastError, failed.LastErrorAt = 1, "no room", at.Add(time.Second)
	same(t, "a table whose fill failed", &failed, tables()[0])

	for _, fill := range []int64{0, again.Pending} {
		if err := p.LoseFill(ctx, shop.ID, e.ID, 1, fill, at); err != nil {
			t.Fatal(err)
		}
		same(t, "a table that lost a fill which nothing reads", &failed, tables()[0])
	}
	if err := p.LoseFill(ctx, shop.ID, e.ID, 1, filled.Fill, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	lost := failed
	lost.Fill, lost.Rows, lost.Pending = 0, 0, at.Add(time.Minute).UnixMilli()
	same(t, "a table that is lost", &lost, tables()[0])

	later := at.Add(time.Hour)
	update(registry.EndpointUpdate{Table: registry.TableUpdate{Buckets: map[string]string{"timestamp": "week"}}}, later)
	same(t, "a table with other buckets", &registry.Table{ID: made.ID, Buckets: map[string]string{"timestamp": "week"}, Pending: later.UnixMilli()}, tables()[0])
	update(registry.EndpointUpdate{Query: odd("2")}, later)
	all := tables()
	if all[0] == nil || all[1] == nil || all[1].ID == made.ID {
		t.Fatalf("a new version and the old one have the tables %+v", all)
	}
	same(t, "the buckets of a new version", map[string]string{"timestamp": "week"}, all[1].Buckets)
	update(registry.EndpointUpdate{Query: odd("3"), Draft: true}, later)
	update(registry.EndpointUpdate{Query: odd("4"), Table: registry.TableUpdate{Impossible: true}}, later)
	update(registry.EndpointUpdate{Version: 3, Table: on}, later)
	if all = tables(); all[2] == nil || all[3] != nil {
		t.Errorf("a draft that is to be materialized, and a version that can't be, have the tables %+v", all[2:])
	}
	update(registry.EndpointUpdate{Version: 3, Table: off}, later)
	update(registry.EndpointUpdate{Version: 2, Active: new(false), Table: on}, later)
	if all = tables(); all[0] == nil || all[1] != nil || all[2] != nil {
		t.Errorf("after versions were switched off there are the tables %+v", all)
	}
	if got := p.Snapshot().Materialized(shop.ID); len(got) != 1 || got[0].Number != 1 {
		t.Errorf("materialized are %+v", got)
	}
	update(registry.EndpointUpdate{Active: new(false), Table: on}, later)
	if all = tables(); slices.ContainsFunc(all, func(t *registry.Table) bool { return t != nil }) {
		t.Errorf("after the endpoint was switched off there are the tables %+v", all)
	}
	p.refused("a fill of a version without a table", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 1, later); return err })
	if err := p.LoseFill(ctx, shop.ID, e.ID, 1, filled.Fill, later); err != nil {
		t.Errorf("a version without a table lost a fill: %v", err)
	}
	p.refused("a fill of no version", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 9, later); return err })

	update(registry.EndpointUpdate{Version: 1, Active: new(true)}, later)
	update(registry.EndpointUpdate{Active: new(true)}, later)
	update(registry.EndpointUpdate{Version: 1, Table: on}, later)
	if table := tables()[0]; table == nil || table.Pending <= again.Pending {
		t.Errorf("a version that is materialized again has the table %+v", table)
	}
	if err := p.DeleteEndpoint(ctx, shop.ID, "daily", later); err != nil {
		t.Fatal(err)
	}
	p.refused("a fill of an endpoint that is deleted", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 1, later); return err })
	if got := p.Snapshot().Materialized(shop.ID); len(got) != 0 || !p.Snapshot().KnowsEndpoint(shop.ID, e.ID) || p.Snapshot().KnowsEndpoint(shop.ID, "x") {
		t.Errorf("after the endpoint was deleted, materialized are %+v", got)
	}
}

func testEndpointConflicts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	p.endpoint(shop.ID, "daily")
	p.endpoint(shop.ID, "Daily") // another name
	p.endpoint(other.ID, "daily")
	taken := &registry.FieldError{Field: "name", Code: registry.CodeUnique}
	p.refused("a taken name", taken, func() error {
		_, err := p.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("")}, at)
		return err
	})
	p.refused("a batch with a taken name", taken, func() error {
		return p.Apply(t.Context(), shop.ID, registry.Batch{
			NewEndpoints: []registry.NewEndpoint{{Name: "fresh", Query: odd("")}, {Name: "fresh", Query: odd("")}}, Deleted: []string{"daily"},
		}, at)
	})
	p.endpoint(shop.ID, "late")
	if _, err := p.other.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: shop.ID, Name: "late", Query: odd("")}, at); err == nil {
		t.Error("two processes gave the same name")
	}
	// Each makes a version on top of the other's, whatever it has seen.
	for n, r := range []*registry.Registry{p.Registry, p.other, p.Registry, p.other} {
		e := must(r.UpdateEndpoint(t.Context(), shop.ID, "late", registry.EndpointUpdate{Query: odd(fmt.Sprint("v", n))}, at))(t)
		if e.CurrentVersion != n+2 {
			t.Errorf("update %d made version %d", n, e.CurrentVersion)
		}
	}
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.settled()
}

func testVariables(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	v := *must(p.CreateVariable(ctx, registry.NewVariable{
		Project: shop.ID, Name: "Customer", Type: registry.VariableList, Default: json.RawMessage(`{"a":[9007199254740993,1.5,null,true,"<x>",18446744073709551615]}`),
		Values: json.RawMessage(`["x",1,2.5,null]`), IsMulti: true, CreatedBy: "key",
	}, at))(t)
	same(t, "a new variable", registry.Variable{
		ID: v.ID, Project: shop.ID, Name: "Customer", CodeName: "customer", Type: registry.VariableList, IsMulti: true, CreatedAt: at, CreatedBy: "key",
		Default: map[string]any{"a": []any{int64(9007199254740993), 1.5, nil, true, "<x>", uint64(18446744073709551615)}}, Values: []any{"x", int64(1), 2.5, nil},
	}, v)
	bare := *must(p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "region", Type: registry.VariableString}, at.Add(time.Second)))(t)
	elsewhere := *must(p.CreateVariable(ctx, registry.NewVariable{Project: other.ID, Name: "customer", Type: registry.VariableString}, at))(t)
	are := func(want ...registry.Variable) {
		t.Helper()
		all := p.settled()
		same(t, "variables", [][]registry.Variable{want, {elsewhere}}, [][]registry.Variable{all[0].Variables, all[1].Variables})
	}
	are(v, bare)
	taken := &registry.FieldError{Field: "code_name", Code: registry.CodeUnique}
	p.refused("a taken code name", taken, func() error {
		_, err := p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "CUSTOMER", Type: registry.VariableString}, at)
		return err
	})
	v = *must(p.UpdateVariable(ctx, shop.ID, v.ID, registry.VariableUpdate{
		Name: new("Customer, renamed"), Type: new(registry.VariableNumber), Default: json.RawMessage(`7`), Values: json.RawMessage(`null`), IsMulti: new(false),
	}))(t)
	if v.CodeName != "customer" || v.Default != int64(7) || v.Values != nil {
		t.Errorf("the changed variable is %+v", v)
	}
	if err := p.DeleteVariable(ctx, shop.ID, bare.ID); err != nil {
		t.Fatal(err)
	}
	are(v)
	bare = *must(p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "region", Type: registry.VariableString}, at.Add(time.Minute)))(t)
	are(v, bare)
}
