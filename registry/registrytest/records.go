package registrytest

import (
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testKeys(t exam) {
	s := open(t)
	p := addProject(t, s)
	bare, full := newKey(p.ID, "bare"), newKey(p.ID, "full")
	full.Kind = registry.Secret
	full.ExpiresAt = at.Add(time.Hour)
	full.Fixed, full.Endpoints = `{"customer":"' \" ; --"}`, []string{"daily", "weekly"}
	full.CreatedBy = "bare"
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.InsertKey(ctx, bare), tx.InsertKey(ctx, full))
	})
	expect(t, s, registry.ProjectRecord{Project: p, Keys: []registry.Key{bare, full}})

	full.Hash, full.Mask = registry.HashKey("rolled"), "phs_...wxyz"
	full.Label, full.Scopes = "renamed", []string{"endpoint:read", "query:read"}
	full.ExpiresAt, full.LastUsedAt, full.LastRolledAt, full.RevokedAt = time.Time{}, at.Add(time.Second), at.Add(2*time.Second), at.Add(3*time.Second)
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.UpdateKey(ctx, full) })
	expect(t, s, registry.ProjectRecord{Project: p, Keys: []registry.Key{bare, full}})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Key(ctx, "full")
		if diff := cmp.Diff(full, got); diff != "" {
			t.Errorf("Key(full) (-want +got):\n%s", diff)
		}
		for kind, want := range map[registry.KeyKind]int{registry.Personal: 1, registry.Secret: 0} { // the secret one is revoked
			if got, err := tx.CountKeys(ctx, p.ID, kind); got != want || err != nil {
				t.Errorf("CountKeys(%s) = %d, %v, want %d", kind, got, err, want)
			}
		}
		return err
	})
}

func testKeyConflicts(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	secret := func(project int64, id, label string) registry.Key {
		k := newKey(project, id)
		k.Kind, k.Label = registry.Secret, label
		return k
	}
	revoked := secret(p.ID, "revoked", "old")
	revoked.RevokedAt = at
	taken := newKey(p.ID, "taken")
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		var all []error
		for _, k := range []registry.Key{
			taken, secret(p.ID, "a", "backend"), revoked,
			// None of these is in the way of another.
			secret(p.ID, "again", "old"), secret(other.ID, "elsewhere", "backend"), secret(p.ID, "empty", ""), secret(p.ID, "empty2", ""),
		} {
			all = append(all, tx.InsertKey(ctx, k))
		}
		personal := newKey(p.ID, "personal")
		personal.Label = "backend"
		return errors.Join(append(all, tx.InsertKey(ctx, personal))...)
	})
	sameHash := newKey(p.ID, "other")
	sameHash.Hash = taken.Hash
	for _, tt := range []struct {
		field string
		key   registry.Key
	}{
		{registry.ConflictID, func() registry.Key { k := newKey(p.ID, "taken"); k.Hash = registry.HashKey("fresh"); return k }()},
		{registry.ConflictHash, sameHash},
		{registry.ConflictLabel, secret(p.ID, "b", "backend")},
	} {
		t.sub(tt.field, func(t exam) {
			refuse(t, s, &registry.ConflictError{Field: tt.field}, func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, tt.key) })
		})
	}
}

func testKeyUsed(t exam) {
	s := open(t)
	p := addProject(t, s)
	k := newKey(p.ID, "k")
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, k) })
	for _, tt := range []struct {
		id    string
		at    time.Time
		moved bool
	}{
		{"k", at, true},
		{"k", at.Add(time.Hour), true},
		{"k", at.Add(time.Hour), false},
		{"k", at.Add(time.Minute), false},
		{"unknown", at, false},
	} {
		revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
			moved, err := tx.KeyUsed(ctx, tt.id, tt.at)
			if moved != tt.moved {
				t.Errorf("KeyUsed(%s, %s) = %t, want %t", tt.id, tt.at, moved, tt.moved)
			}
			return err
		})
		if (revision != 0) != tt.moved {
			t.Errorf("KeyUsed(%s, %s) has revision %d", tt.id, tt.at, revision)
		}
	}
	k.LastUsedAt = at.Add(time.Hour)
	expect(t, s, registry.ProjectRecord{Project: p, Keys: []registry.Key{k}})
}

func testTokenSecrets(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	secret := func(id string, age time.Duration) registry.TokenSecret {
		return registry.TokenSecret{ID: id, Secret: registry.HashKey(id), CreatedAt: at.Add(-age)}
	}
	theirs := []registry.TokenSecret{secret("theirs", 0)}
	put := func(project int64, secrets ...registry.TokenSecret) {
		t.Helper()
		write(t, s, func(ctx context.Context, tx registry.Tx) error {
			if err := tx.PutTokenSecrets(ctx, project, secrets); err != nil {
				return err
			}
			got, err := tx.TokenSecrets(ctx, project)
			if diff := cmp.Diff(secrets, got); diff != "" {
				t.Errorf("TokenSecrets() (-want +got):\n%s", diff)
			}
			return err
		})
		if project == p.ID {
			expect(t, s, registry.ProjectRecord{Project: p, TokenSecrets: secrets}, registry.ProjectRecord{Project: other, TokenSecrets: theirs})
		}
	}
	put(other.ID, theirs...)
	put(p.ID, secret("z", 0), secret("a", time.Hour))
	put(p.ID, secret("b", 0), secret("z", time.Minute)) // one stays
	put(p.ID)
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictID}, func(ctx context.Context, tx registry.Tx) error {
		return tx.PutTokenSecrets(ctx, p.ID, theirs)
	})
	refuse(t, s, registry.ErrNotFound, func(ctx context.Context, tx registry.Tx) error {
		return tx.PutTokenSecrets(ctx, 9, []registry.TokenSecret{secret("nowhere", 0)})
	})
}

func testEndpoints(t exam) {
	s := open(t)
	p := addProject(t, s)
	e, bare := newEndpoint(p.ID, "e", "daily"), newEndpoint(p.ID, "bare", "Bare")
	bare.Active, bare.DerivedFromInsight, bare.Tags, bare.CreatedBy, bare.RateLimit = false, "", []string{}, "", registry.Rate{}
	bare.Versions[0] = registry.Version{
		ID: "bare-1", Number: 1, Query: bare.Versions[0].Query, FreshnessSeconds: 900, CreatedAt: at, UpdatedAt: at, // a draft, and switched off
	}
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.InsertEndpoint(ctx, e), tx.InsertEndpoint(ctx, bare))
	})
	expect(t, s, registry.ProjectRecord{Project: p, Endpoints: []registry.Endpoint{e, bare}})

	later := at.Add(time.Hour)
	e.Active, e.Tags, e.CurrentVersion, e.UpdatedAt, e.RateLimit = false, []string{"c"}, 11, later, registry.Rate{Queries: 1, Per: time.Hour}
	v := e.Versions[0]
	v.Description, v.FreshnessSeconds, v.Active, v.Columns, v.UpdatedAt = "", 1, false, []registry.Column{}, later
	v.PublishedAt, v.DeprecatedAt, v.SunsetAt, v.OptionalBreakdowns = later, time.Time{}, later, nil
	e.Versions = []registry.Version{v}
	for n := 2; n <= 11; n++ { // ten and more sort as numbers
		e.Versions = append(e.Versions, newVersion("e", n))
	}
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		all := []error{tx.UpdateVersion(ctx, "e", v), tx.UpdateEndpoint(ctx, e)}
		for _, v := range e.Versions[1:] {
			all = append(all, tx.InsertVersion(ctx, "e", v))
		}
		return errors.Join(all...)
	})
	expect(t, s, registry.ProjectRecord{Project: p, Endpoints: []registry.Endpoint{e, bare}})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Endpoint(ctx, p.ID, "daily")
		if diff := cmp.Diff(e, got, anyOrder); diff != "" {
			t.Errorf("Endpoint(daily) (-want +got):\n%s", diff)
		}
		return err
	})

	again := newEndpoint(p.ID, "e2", "daily")
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.DeleteEndpoint(ctx, "e", later), tx.InsertEndpoint(ctx, again))
	})
	expect(t, s, registry.ProjectRecord{Project: p, Endpoints: []registry.Endpoint{again, bare}})
}

func testEndpointConflicts(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.InsertEndpoint(ctx, newEndpoint(p.ID, "e", "daily")),
			tx.InsertEndpoint(ctx, newEndpoint(p.ID, "upper", "Daily")), // another name
			tx.InsertEndpoint(ctx, newEndpoint(other.ID, "other", "daily")))
	})
	for field, fn := range map[string]func(ctx context.Context, tx registry.Tx) error{
		registry.ConflictEndpointName: func(ctx context.Context, tx registry.Tx) error {
			return tx.InsertEndpoint(ctx, newEndpoint(p.ID, "fresh", "daily"))
		},
		registry.ConflictID: func(ctx context.Context, tx registry.Tx) error {
			return tx.InsertEndpoint(ctx, newEndpoint(p.ID, "e", "fresh"))
		},
		registry.ConflictVersion: func(ctx context.Context, tx registry.Tx) error {
			v := newVersion("e", 1)
			v.ID = "fresh"
			return tx.InsertVersion(ctx, "e", v)
		},
	} {
		t.sub(field, func(t exam) { refuse(t, s, &registry.ConflictError{Field: field}, fn) })
	}
}

func testExecuted(t exam) {
	s := open(t)
	p := addProject(t, s)
	e := newEndpoint(p.ID, "e", "daily")
	e.CurrentVersion, e.Versions = 2, append(e.Versions, newVersion("e", 2))
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.InsertEndpoint(ctx, e) })
	for _, tt := range []struct {
		id      string
		version int
		at      time.Time
		moved   bool
	}{
		{"e", 2, at.Add(time.Hour), true},
		{"e", 1, at, true}, // the endpoint's own time stays
		{"e", 2, at, false},
		{"e", 3, at, false},
		{"unknown", 1, at, false},
	} {
		revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
			moved, err := tx.EndpointExecuted(ctx, tt.id, tt.version, tt.at)
			if moved != tt.moved {
				t.Errorf("EndpointExecuted(%s, %d, %s) = %t, want %t", tt.id, tt.version, tt.at, moved, tt.moved)
			}
			return err
		})
		if (revision != 0) != tt.moved {
			t.Errorf("EndpointExecuted(%s, %d, %s) has revision %d", tt.id, tt.version, tt.at, revision)
		}
	}
	e.LastExecutedAt, e.Versions[0].LastExecutedAt, e.Versions[1].LastExecutedAt = at.Add(time.Hour), at, at.Add(time.Hour)
	expect(t, s, registry.ProjectRecord{Project: p, Endpoints: []registry.Endpoint{e}})
}

func testVariables(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	v, bare, elsewhere := newVariable(p.ID, "v", "customer"), newVariable(p.ID, "bare", "region"), newVariable(other.ID, "o", "customer")
	bare.Type, bare.Default, bare.Values, bare.IsMulti, bare.CreatedBy = registry.VariableString, nil, nil, false, ""
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.InsertVariable(ctx, v), tx.InsertVariable(ctx, bare), tx.InsertVariable(ctx, elsewhere))
	})
	there := registry.ProjectRecord{Project: other, Variables: []registry.Variable{elsewhere}}
	expect(t, s, registry.ProjectRecord{Project: p, Variables: []registry.Variable{v, bare}}, there)
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictCodeName}, func(ctx context.Context, tx registry.Tx) error {
		return tx.InsertVariable(ctx, newVariable(p.ID, "fresh", "customer"))
	})
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictID}, func(ctx context.Context, tx registry.Tx) error {
		return tx.InsertVariable(ctx, newVariable(p.ID, "v", "fresh"))
	})

	v.Name, v.Type, v.Default, v.Values, v.IsMulti = "Customer, renamed", registry.VariableNumber, int64(7), nil, false
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.UpdateVariable(ctx, v), tx.DeleteVariable(ctx, p.ID, "bare"))
	})
	expect(t, s, registry.ProjectRecord{Project: p, Variables: []registry.Variable{v}}, there)
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Variable(ctx, p.ID, "v")
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("Variable(v) (-want +got):\n%s", diff)
		}
		return err
	})
}

func testProperties(t exam) {
	s := open(t)
	p := addProject(t, s)
	def := func(scope registry.PropertyScope, group int, name string, typ registry.PropertyType) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: scope, GroupTypeIndex: group, Name: name, Type: typ}
	}
	amount := def(registry.EventProperty, 0, "amount", registry.PropertyNumeric)
	first := []registry.PropertyDefinition{
		amount, def(registry.PersonProperty, 0, "amount", registry.PropertyString), def(registry.GroupProperty, 0, "amount", registry.PropertyBoolean),
		def(registry.GroupProperty, 4, "amount", registry.PropertyDateTime), def(registry.EventProperty, 0, "Amount", registry.PropertyString),
		def(registry.EventProperty, 0, "", registry.PropertyString),
	}
	asString, asBoolean := amount, amount
	asString.Type, asBoolean.Type = registry.PropertyString, registry.PropertyBoolean
	fresh := def(registry.EventProperty, 0, "fresh", registry.PropertyNumeric)
	freshAgain := fresh
	freshAgain.Type = registry.PropertyString
	for _, tt := range []struct {
		name          string
		defs, changed []registry.PropertyDefinition
		learn         bool
	}{
		{"learning what is new", first, first, true},
		{"learning never replaces", []registry.PropertyDefinition{asString, fresh, freshAgain}, []registry.PropertyDefinition{fresh}, true},
		{"setting replaces", []registry.PropertyDefinition{asBoolean, fresh}, []registry.PropertyDefinition{asBoolean}, false},
		{"nothing", nil, nil, true},
	} {
		revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
			changed, err := tx.PutProperties(ctx, p.ID, tt.defs, tt.learn)
			if diff := cmp.Diff(tt.changed, changed, anyOrder); diff != "" {
				t.Errorf("%s: PutProperties() (-want +got):\n%s", tt.name, diff)
			}
			return err
		})
		if (revision != 0) != (len(tt.changed) > 0) {
			t.Errorf("%s: revision %d", tt.name, revision)
		}
	}
	want := append([]registry.PropertyDefinition{asBoolean, fresh}, first[1:]...)
	expect(t, s, registry.ProjectRecord{Project: p, Properties: want})
}

func testGroupTypes(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	company, team := registry.GroupType{Name: "company", Index: 0}, registry.GroupType{Name: "team", Index: 4}
	for _, tt := range []struct {
		project      int64
		types, added []registry.GroupType
	}{
		{p.ID, []registry.GroupType{company}, []registry.GroupType{company}},
		{p.ID, []registry.GroupType{company, team}, []registry.GroupType{team}},
		{p.ID, []registry.GroupType{team}, nil},
		{other.ID, []registry.GroupType{{Name: "company", Index: 1}}, []registry.GroupType{{Name: "company", Index: 1}}},
	} {
		revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
			added, err := tx.PutGroupTypes(ctx, tt.project, tt.types)
			if diff := cmp.Diff(tt.added, added, anyOrder); diff != "" {
				t.Errorf("PutGroupTypes(%v) (-want +got):\n%s", tt.types, diff)
			}
			return err
		})
		if (revision != 0) != (len(tt.added) > 0) {
			t.Errorf("PutGroupTypes(%v) has revision %d", tt.types, revision)
		}
	}
	for name, g := range map[string]registry.GroupType{"another index": {Name: "company", Index: 1}, "another name": {Name: "firm", Index: 0}} {
		t.sub(name, func(t exam) {
			refuse(t, s, &registry.ConflictError{Field: registry.ConflictGroupType}, func(ctx context.Context, tx registry.Tx) error {
				_, err := tx.PutGroupTypes(ctx, p.ID, []registry.GroupType{{Name: "fresh", Index: 2}, g})
				return err
			})
		})
	}
	expect(t, s, registry.ProjectRecord{Project: p, GroupTypes: []registry.GroupType{company, team}},
		registry.ProjectRecord{Project: other, GroupTypes: []registry.GroupType{{Name: "company", Index: 1}}})
}
