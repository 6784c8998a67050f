package registry_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// family is a project with a key that can make others.
type family struct {
	*registry.Registry

	t       *testing.T
	project int64
	texts   map[string]string // of keys by label
}

func newFamily(t *testing.T) *family {
	t.Helper()
	r, p := fresh(t)
	return &family{Registry: r, t: t, project: p.ID, texts: map[string]string{}}
}

// create makes a key, as the key with the label by asks; "" is an operator.
func (f *family) create(by, label string, n registry.NewKey, scopes ...string) error {
	n.Project, n.Label, n.Scopes = f.project, label, scopes
	if by != "" {
		n.Grantor = f.key(by)
		n.CreatedBy = n.Grantor.ID
	}
	_, text, err := f.CreateKey(f.t.Context(), n, now)
	if err == nil {
		f.texts[label] = text
	}
	return err
}

func (f *family) mustCreate(by, label string, n registry.NewKey, scopes ...string) *registry.Key {
	f.t.Helper()
	if err := f.create(by, label, n, scopes...); err != nil {
		f.t.Fatalf("%s: %v", label, err)
	}
	return f.key(label)
}

func (f *family) key(label string) *registry.Key {
	for _, k := range f.Snapshot().Keys(f.project) {
		if k.Label == label {
			return k
		}
	}
	return nil
}

// works returns the labels of the keys whose texts open the project.
func (f *family) works() (labels []string) {
	for label, text := range f.texts {
		if f.Snapshot().KeyByHash(registry.HashKey(text)) != nil {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}

func (f *family) check(what string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.works()); diff != "" {
		f.t.Errorf("%s: keys that work (-want +got):\n%s", what, diff)
	}
}

func denied(err error) bool {
	_, ok := errors.AsType[*registry.DeniedError](err)
	return ok
}

func lacks(err error) bool {
	_, ok := errors.AsType[*registry.ScopeError](err)
	return ok
}

func mistaken(err error) bool {
	_, ok := errors.AsType[*registry.FieldError](err)
	return ok
}

// TestKeysEndWithTheirMaker: what is made with a key that was lent for a time is of no use afterwards.
func TestKeysEndWithTheirMaker(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(f *family) error
		want []string
	}{
		{"revoked", func(f *family) error {
			_, err := f.RevokeKey(t.Context(), f.key("customer").ID, now)
			return err
		}, []string{"operator", "other"}},
		{"rolled", func(f *family) error {
			_, text, err := f.RollKey(t.Context(), f.key("customer").ID, nil, now)
			f.texts["customer"] = text
			return err
		}, []string{"customer", "operator", "other"}},
		{"loses a scope", func(f *family) error {
			_, err := f.UpdateKey(t.Context(), f.key("customer").ID, registry.KeyUpdate{Scopes: []string{"project:write", "endpoint:read"}}, now)
			return err
		}, []string{"b", "customer", "operator", "other"}},
		{"has another label", func(f *family) error {
			_, err := f.UpdateKey(t.Context(), f.key("customer").ID, registry.KeyUpdate{Label: new("customer")}, now)
			return err
		}, []string{"a", "b", "customer", "operator", "other"}},
		{"one of them is revoked", func(f *family) error {
			_, err := f.RevokeKey(t.Context(), f.key("a").ID, now)
			return err
		}, []string{"b", "customer", "operator", "other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFamily(t)
			f.mustCreate("", "operator", registry.NewKey{}, "*")
			f.mustCreate("", "customer", registry.NewKey{}, "project:write", "query:read", "endpoint:read")
			f.mustCreate("operator", "other", registry.NewKey{}, "query:read")
			f.mustCreate("customer", "a", registry.NewKey{}, "query:read")
			if b := f.mustCreate("customer", "b", registry.NewKey{}, "endpoint:read", "project:read"); b.Parent != f.key("customer").ID || b.Payer() != b.Parent {
				t.Errorf("b ends with %q, and %q pays for it", b.Parent, b.Payer())
			}
			f.t = t
			if err := tt.end(f); err != nil {
				t.Fatal(err)
			}
			f.check(tt.name, tt.want...)
		})
	}
}

// TestKeysMakeNoMoreThanTheyAre: neither scopes, nor time, nor keys of keys.
func TestKeysMakeNoMoreThanTheyAre(t *testing.T) {
	f := newFamily(t)
	soon := now.Add(time.Hour).Truncate(time.Microsecond)
	f.mustCreate("", "customer", registry.NewKey{ExpiresAt: soon}, "project:write", "query:read")
	if k := f.mustCreate("customer", "made", registry.NewKey{}, "project:write"); !k.ExpiresAt.Equal(soon) {
		t.Errorf("a key that says nothing expires at %s, want %s", k.ExpiresAt, soon)
	}
	if k := f.mustCreate("customer", "shorter", registry.NewKey{ExpiresAt: now.Add(time.Minute)}, "query:read"); !k.ExpiresAt.Before(soon) {
		t.Errorf("a key that is to expire sooner expires at %s", k.ExpiresAt)
	}
	f.mustCreate("", "victim", registry.NewKey{}, "query:read")
	f.mustCreate("", "weak", registry.NewKey{}, "endpoint:read")
	roll := func(by, label string) error {
		_, _, err := f.RollKey(t.Context(), f.key(label).ID, f.key(by), now)
		return err
	}
	widen := func(by, label string, scopes ...string) error {
		_, err := f.UpdateKey(t.Context(), f.key(label).ID, registry.KeyUpdate{Scopes: scopes, Grantor: f.key(by)}, now)
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"a scope that it lacks":             {f.create("customer", "x", registry.NewKey{}, "insight:read"), lacks},
		"every scope":                       {f.create("customer", "x", registry.NewKey{}, "*"), lacks},
		"a later end":                       {f.create("customer", "x", registry.NewKey{ExpiresAt: soon.Add(time.Second)}, "query:read"), mistaken},
		"a key of a key":                    {f.create("made", "x", registry.NewKey{}, "project:write"), denied},
		"rolling another's":                 {roll("customer", "victim"), denied},
		"rolling what has more":             {roll("customer", "weak"), lacks},
		"scopes for another's":              {widen("customer", "weak", "endpoint:read", "query:read"), denied},
		"scopes for itself":                 {widen("customer", "customer", "project:write", "query:read", "endpoint:read"), lacks},
		"scopes for its maker":              {widen("made", "customer", "project:write", "query:read", "endpoint:read"), lacks},
		"rolling its maker":                 {roll("made", "customer"), lacks},
		"rolling a sibling":                 {roll("made", "shorter"), lacks},
		"scopes for what it made, too many": {widen("customer", "made", "project:write", "insight:read"), lacks},
	} {
		if !tt.want(tt.err) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	f.check("what was refused", "customer", "made", "shorter", "victim", "weak")
	if err := widen("customer", "made", "project:write", "query:read"); err != nil {
		t.Errorf("scopes for what it made: %v", err)
	}
	if err := roll("customer", "made"); err != nil {
		t.Errorf("rolling what it made: %v", err)
	}
	before := f.key("customer")
	if err := roll("customer", "customer"); err != nil {
		t.Errorf("rolling itself: %v", err)
	}
	n := registry.NewKey{Project: f.project, Label: "late", Scopes: []string{"query:read"}, Grantor: before}
	if _, _, err := f.CreateKey(t.Context(), n, now); !denied(err) {
		t.Errorf("with a key that was rolled since: %v", err)
	}
	if _, err := f.RevokeKey(t.Context(), before.ID, now); err != nil {
		t.Fatal(err)
	}
	made := f.mustCreate("", "another", registry.NewKey{}, "query:read").ID
	if _, _, err := f.RollKey(t.Context(), made, before, now); !denied(err) {
		t.Errorf("rolling with a key that was revoked since: %v", err)
	}
	if _, err := f.UpdateKey(t.Context(), made, registry.KeyUpdate{Scopes: []string{"*"}, Grantor: before}, now); !denied(err) {
		t.Errorf("giving scopes with a key that was revoked since: %v", err)
	}
	n.Kind = registry.Secret
	n.Scopes = []string{"query:read"}
	if _, _, err := f.CreateKey(t.Context(), n, now); !denied(err) {
		t.Errorf("a secret key with a key that was revoked since: %v", err)
	}
}

// TestSessionsStandForTheOperator: what is made in a session outlives it, and has no more scopes.
func TestSessionsStandForTheOperator(t *testing.T) {
	f := newFamily(t)
	hours := now.Add(12 * time.Hour)
	f.mustCreate("", "session", registry.NewKey{ExpiresAt: hours, Session: true}, "*")
	f.mustCreate("", "limited", registry.NewKey{ExpiresAt: hours, Session: true}, "project:write", "query:read")
	if k := f.mustCreate("session", "kept", registry.NewKey{ExpiresAt: now.Add(90 * 24 * time.Hour)}, "*"); k.Parent != "" || k.Session || k.ExpiresAt.Before(now.Add(80*24*time.Hour)) {
		t.Errorf("a key that is made in a session is %+v", k)
	}
	f.mustCreate("session", "forever", registry.NewKey{}, "query:read")
	if err := f.create("limited", "x", registry.NewKey{}, "*"); !lacks(err) {
		t.Errorf("a session of two scopes gives out all: %v", err)
	}
	if _, text, err := f.RollKey(t.Context(), f.key("forever").ID, f.key("limited"), now); err != nil {
		t.Errorf("rolling a key in a session: %v", err)
	} else {
		f.texts["forever"] = text
	}
	if _, _, err := f.RollKey(t.Context(), f.key("kept").ID, f.key("limited"), now); !lacks(err) {
		t.Errorf("a session of two scopes rolls a key with all: %v", err)
	}
	for _, label := range []string{"session", "limited"} {
		if _, err := f.RevokeKey(t.Context(), f.key(label).ID, now); err != nil {
			t.Fatal(err)
		}
	}
	f.check("signing out", "forever", "kept")
}

func TestKeysThatOneKeyMakes(t *testing.T) {
	f := newFamily(t)
	f.mustCreate("", "customer", registry.NewKey{}, "*")
	for range 50 {
		f.mustCreate("customer", "made", registry.NewKey{}, "query:read")
	}
	if err := f.create("customer", "x", registry.NewKey{}, "query:read"); !mistaken(err) {
		t.Errorf("one more than there may be: %v", err)
	}
	if _, err := f.RevokeKey(t.Context(), f.key("made").ID, now); err != nil {
		t.Fatal(err)
	}
	f.mustCreate("customer", "again", registry.NewKey{}, "query:read")
}
