package registrytest

import (
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testKeys(t exam) {
	p := newPair(t)
	shop := p.project()
	bare := p.key(registry.NewKey{Project: shop.ID, Label: "bare"})
	full := p.key(registry.NewKey{
		Project: shop.ID, Kind: registry.Secret, Label: "full ' \" ; --", ExpiresAt: at.Add(24 * time.Hour), Fixed: map[string]any{"customer": "' \" ; -- <b>"},
		Endpoints: []string{"weekly", "daily"}, CreatedBy: bare.ID,
	})
	same(t, "a personal key", registry.Key{
		ID: bare.ID, User: 1, Kind: registry.Personal, Label: "bare", Mask: bare.Mask, Hash: bare.Hash, Project: shop.ID,
		Scopes: []string{"endpoint:read", "query:read"}, CreatedAt: at,
	}, bare)
	keysAre := func(want ...registry.Key) {
		t.Helper()
		slices.SortFunc(want, func(a, b registry.Key) int { return strings.Compare(a.ID, b.ID) })
		same(t, "keys", want, p.settled()[0].Keys)
		for _, k := range want {
			if found := p.other.Snapshot().KeyByHash(k.Hash); (found != nil) != k.RevokedAt.IsZero() {
				t.Errorf("key %s, revoked %v, is found: %t", k.Label, k.RevokedAt, found != nil)
			}
		}
	}
	keysAre(bare, full)
	old := full.Hash
	rolled, text, err := p.RollKey(t.Context(), full.ID, nil, at.Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	full.Hash, full.Mask, full.LastRolledAt = registry.HashKey(text), rolled.Mask, at.Add(2*time.Second)
	keysAre(bare, full)
	if p.other.Snapshot().KeyByHash(old) != nil {
		t.Error("the text before it was rolled still works")
	}
	must(p.UpdateKey(t.Context(), full.ID, registry.KeyUpdate{Label: new("renamed"), Scopes: []string{"endpoint:read"}}, at))(t)
	full.Label, full.Scopes = "renamed", []string{"endpoint:read"}
	keysAre(bare, full)
	must(p.RevokeKey(t.Context(), full.ID, at.Add(3*time.Second)))(t)
	full.RevokedAt = at.Add(3 * time.Second)
	keysAre(bare, full)
}

func testKeyConflicts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	secret := func(project int64, label string) registry.NewKey {
		return registry.NewKey{Project: project, Kind: registry.Secret, Label: label, Scopes: []string{"endpoint:read"}}
	}
	p.key(secret(shop.ID, "backend"))
	revoked := p.key(secret(shop.ID, "old"))
	must(p.RevokeKey(t.Context(), revoked.ID, at))(t)
	// None of these is in the way of another.
	again := p.key(secret(shop.ID, "old"))
	for _, n := range []registry.NewKey{secret(other.ID, "backend"), secret(shop.ID, ""), secret(shop.ID, ""), {Project: shop.ID, Label: "backend"}} {
		p.key(n)
	}
	taken := &registry.FieldError{Field: "label", Code: registry.CodeUnique}
	p.refused("a taken label", taken, func() error { _, _, err := p.CreateKey(t.Context(), secret(shop.ID, "backend"), at); return err })
	p.refused("a label that is changed to a taken one", taken, func() error {
		_, err := p.UpdateKey(t.Context(), again.ID, registry.KeyUpdate{Label: new("backend")}, at)
		return err
	})
	// The other registry has not seen the taken label when it asks for it.
	p.key(secret(shop.ID, "fresh"))
	if _, _, err := p.other.CreateKey(t.Context(), secret(shop.ID, "fresh"), at); err == nil {
		t.Error("two processes gave the same label")
	}
	p.settled()
}

func testUsers(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	var users []int64
	for _, n := range []registry.NewKey{
		{Project: shop.ID}, {Project: shop.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"}}, {Project: other.ID}, {Project: shop.ID},
	} {
		users = append(users, p.key(n).User)
	}
	same(t, "users", []int64{1, 0, 2, 3}, users)
	k, _, err := p.other.CreateKey(t.Context(), registry.NewKey{Project: other.ID, Scopes: []string{"*"}}, at)
	if err != nil || k.User != 4 {
		t.Errorf("another process gave the user %d: %v", k.User, err)
	}
}

func testTokenSecrets(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	theirs := must(p.TokenSecret(t.Context(), other.ID, at))(t)
	are := func(want ...registry.TokenSecret) {
		t.Helper()
		all := p.settled()
		same(t, "secrets", [][]registry.TokenSecret{want, {theirs}}, [][]registry.TokenSecret{all[0].Secrets, all[1].Secrets})
	}
	first := must(p.TokenSecret(t.Context(), shop.ID, at))(t)
	are(first)
	same(t, "the secret for another process", first, must(p.other.TokenSecret(t.Context(), shop.ID, at))(t))
	second := must(p.RotateTokenSecret(t.Context(), shop.ID, false, at))(t) // at the same time: it is newer all the same
	are(second, first)
	third := must(p.RotateTokenSecret(t.Context(), shop.ID, false, at.Add(time.Hour)))(t)
	are(third, second)
	fourth := must(p.RotateTokenSecret(t.Context(), shop.ID, true, at.Add(2*time.Hour)))(t)
	are(fourth)
}
