package registry_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestHashKey(t *testing.T) {
	for _, tt := range []struct{ name, key, want string }{
		{"empty", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"short", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"longer than the room kept for it", strings.Repeat("a", 200), "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hash := registry.HashKey(tt.key)
			if got := hex.EncodeToString(hash[:]); got != tt.want {
				t.Errorf("HashKey(%q) = %s, want %s", tt.key, got, tt.want)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	for _, tt := range []struct {
		held, asked string
		want        bool
	}{
		{"endpoint:read", "endpoint:read", true},
		{"endpoint:read", "endpoint:write", false},
		{"endpoint:write", "endpoint:read", true},
		{"endpoint:write", "endpoint:write", true},
		{"insight:write", "insight_variable:read", false},
		{"insight_variable:write", "insight:read", false},
		{"query:read endpoint:write", "endpoint:read", true},
		{"*", "organization:write", true},
		{"", "query:read", false},
		{"endpoint:write", "endpoint", false},
		{"endpoint:write", "", false},
	} {
		t.Run(tt.held+" for "+tt.asked, func(t *testing.T) {
			k := registry.Key{Scopes: strings.Fields(tt.held)}
			if got := k.Allows(tt.asked); got != tt.want {
				t.Errorf("Allows(%q) = %t, want %t", tt.asked, got, tt.want)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	for name, tt := range map[string]struct {
		expires time.Time
		want    bool
	}{
		"never":  {time.Time{}, false},
		"later":  {now.Add(1), false},
		"now":    {now, true},
		"before": {now.Add(-1), true},
	} {
		t.Run(name, func(t *testing.T) {
			k := registry.Key{ExpiresAt: tt.expires}
			if got := k.Expired(now); got != tt.want {
				t.Errorf("Expired() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestCreateKey(t *testing.T) {
	r, p := fresh(t)
	for _, tt := range []struct {
		kind   registry.KeyKind
		scopes []string
		kept   []string
		format string
	}{
		{registry.Personal, []string{"*"}, []string{"*"}, `^phx_[0-9A-Za-z]{40,48}$`},
		{"", []string{"query:read", "endpoint:write", "query:read"}, []string{"query:read", "endpoint:write"}, `^phx_[0-9A-Za-z]{40,48}$`},
		{registry.Secret, []string{"endpoint:read"}, []string{"endpoint:read"}, `^phs_[0-9A-Za-z]{40,48}$`},
	} {
		t.Run(fmt.Sprint(tt.kind, tt.scopes), func(t *testing.T) {
			expires := now.Add(time.Hour)
			k, text, err := r.CreateKey(t.Context(), registry.NewKey{
				Project: p.ID, Kind: tt.kind, Label: " backend " + string(tt.kind), Scopes: tt.scopes, ExpiresAt: expires,
			}, now)
			if err != nil {
				t.Fatalf("CreateKey() = %v", err)
			}
			if !regexp.MustCompile(tt.format).MatchString(text) {
				t.Errorf("the key is %q, want it like %s", text, tt.format)
			}
			if !slices.Equal(k.Scopes, tt.kept) {
				t.Errorf("the scopes are %q, want %q", k.Scopes, tt.kept)
			}
			if want := text[:4] + "..." + text[len(text)-4:]; k.Mask != want {
				t.Errorf("the mask is %q, want %q", k.Mask, want)
			}
			found := r.Snapshot().KeyByHash(registry.HashKey(text))
			if found == nil {
				t.Fatal("the key isn't found by its text")
			}
			if diff := cmp.Diff(k, found); diff != "" {
				t.Errorf("KeyByHash() (-created +found):\n%s", diff)
			}
			if want := strings.TrimSpace("backend " + string(tt.kind)); k.Label != want {
				t.Errorf("the label is %q, want %q", k.Label, want)
			}
			if k.CreatedAt != moment || k.ExpiresAt != expires.Truncate(time.Microsecond) {
				t.Errorf("made at %s, expires at %s", k.CreatedAt, k.ExpiresAt)
			}
		})
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	r, p := fresh(t)
	ok := registry.NewKey{Project: p.ID, Kind: registry.Secret, Label: "taken", Scopes: []string{"endpoint:read"}}
	if _, _, err := r.CreateKey(t.Context(), ok, now); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*registry.NewKey)) registry.NewKey {
		n := ok
		n.Label = "another"
		change(&n)
		return n
	}
	scopes := func(kind registry.KeyKind, scopes ...string) registry.NewKey {
		return with(func(n *registry.NewKey) { n.Kind, n.Scopes = kind, scopes })
	}
	badScope := func(scope string) *registry.FieldError {
		return &registry.FieldError{Field: "scopes", Code: registry.CodeInvalid, Message: "Invalid scope: " + scope}
	}
	tests := []struct {
		name string
		key  registry.NewKey
		want *registry.FieldError
	}{
		{"kind", with(func(n *registry.NewKey) { n.Kind = "public" }), &registry.FieldError{Field: "kind", Code: registry.CodeNotChoice, Message: `"public" is not a valid choice.`}},
		{"label of 40", with(func(n *registry.NewKey) { n.Label = strings.Repeat("ä", 40) }), nil},
		{"label of 41", with(func(n *registry.NewKey) { n.Label = strings.Repeat("ä", 41) }), &registry.FieldError{Field: "label", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 40 characters."}},
		{"label taken", with(func(n *registry.NewKey) { n.Label = "taken" }), &registry.FieldError{Field: "label", Code: registry.CodeUnique, Message: "A key with this label already exists for this project."}},
		{"label taken by a secret key", with(func(n *registry.NewKey) { n.Label, n.Kind = "taken", registry.Personal }), nil},
		{"no scopes", scopes(registry.Personal), &registry.FieldError{Field: "scopes", Code: registry.CodeRequired, Message: "This field is required."}},
		{"unknown object", scopes(registry.Personal, "query:read", "endpoints:read"), badScope("endpoints:read")},
		{"unknown action", scopes(registry.Personal, "endpoint:run"), badScope("endpoint:run")},
		{"object alone", scopes(registry.Personal, "endpoint"), badScope("endpoint")},
		{"empty scope", scopes(registry.Personal, ""), badScope("")},
		{"server's own object", scopes(registry.Personal, "internal_run:read"), badScope("internal_run:read")},
		{"wildcard of a secret key", scopes(registry.Secret, "*"), badScope("*")},
		{"write of a secret key", scopes(registry.Secret, "endpoint:write"), badScope("endpoint:write")},
		{"objects of all kinds", scopes(registry.Personal, "access_control:read", "insight_variable:write", "user:read", "wizard_session:read"), nil},
		{"over already", with(func(n *registry.NewKey) { n.ExpiresAt = now }), &registry.FieldError{Field: "expires_at", Code: registry.CodeInvalid, Message: "The time of expiry must be in the future."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := r.CreateKey(t.Context(), tt.key, now)
			if diff := cmp.Diff(tt.want, mistake(t, err)); diff != "" {
				t.Errorf("CreateKey() mistake (-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := r.CreateKey(t.Context(), with(func(n *registry.NewKey) { n.Project = 9 }), now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("CreateKey() for an unknown project = %v, want %v", err, registry.ErrNotFound)
	}
}

func TestSecretKeysOfAProjectAreLimited(t *testing.T) {
	r, p := fresh(t)
	n := registry.NewKey{Project: p.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"}}
	var last *registry.Key
	for range 50 {
		k, _, err := r.CreateKey(t.Context(), n, now)
		if err != nil {
			t.Fatal(err)
		}
		last = k
	}
	_, _, err := r.CreateKey(t.Context(), n, now)
	want := &registry.FieldError{Field: "label", Code: registry.CodeInvalid, Message: "A project can have at most 50 secret keys."}
	if diff := cmp.Diff(want, mistake(t, err)); diff != "" {
		t.Errorf("the 51st key (-want +got):\n%s", diff)
	}
	must(r.RevokeKey(t.Context(), last.ID, now))(t)
	if _, _, err := r.CreateKey(t.Context(), n, now); err != nil {
		t.Errorf("a key after one was revoked = %v", err)
	}
}

func TestRollKey(t *testing.T) {
	r, p := fresh(t)
	before, old, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Scopes: []string{"*"}, ExpiresAt: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	after, text, err := r.RollKey(t.Context(), before.ID, nil, now.Add(time.Minute))
	if err != nil {
		t.Fatalf("RollKey() = %v", err)
	}
	if r.Snapshot().KeyByHash(registry.HashKey(old)) != nil {
		t.Error("the old key still works")
	}
	if diff := cmp.Diff(after, r.Snapshot().KeyByHash(registry.HashKey(text))); diff != "" {
		t.Errorf("KeyByHash() of the new key (-rolled +found):\n%s", diff)
	}
	want := *before
	want.Hash, want.Mask, want.LastRolledAt = registry.HashKey(text), text[:4]+"..."+text[len(text)-4:], moment.Add(time.Minute)
	if diff := cmp.Diff(&want, after); diff != "" {
		t.Errorf("RollKey() (-want +got):\n%s", diff)
	}
	if _, _, err := r.RollKey(t.Context(), "nobody", nil, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("RollKey() of an unknown key = %v, want %v", err, registry.ErrNotFound)
	}
}

func TestRevokeKey(t *testing.T) {
	r, p := fresh(t)
	k, text, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	must(r.RevokeKey(t.Context(), k.ID, now))(t)
	if r.Snapshot().KeyByHash(registry.HashKey(text)) != nil {
		t.Error("the revoked key still works")
	}
	again := must(r.RevokeKey(t.Context(), k.ID, now.Add(time.Hour)))(t)
	want := *k
	want.RevokedAt = moment
	if diff := cmp.Diff(&want, again); diff != "" {
		t.Errorf("revoking twice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*registry.Key{&want}, r.Snapshot().Keys(p.ID)); diff != "" {
		t.Errorf("Keys() (-want +got):\n%s", diff)
	}
	if _, _, err := r.RollKey(t.Context(), k.ID, nil, now); !errors.Is(err, registry.ErrRevoked) {
		t.Errorf("RollKey() of a revoked key = %v, want %v", err, registry.ErrRevoked)
	}
	if _, err := r.RevokeKey(t.Context(), "nobody", now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("RevokeKey() of an unknown key = %v, want %v", err, registry.ErrNotFound)
	}
}
