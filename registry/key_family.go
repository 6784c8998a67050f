package registry

import (
	"slices"
	"time"
)

// A personal key that is made with another one ends with it: it expires no later, has no scopes that the other lacks, and is revoked when the other is revoked
// or rolled, or loses one of its scopes. So the holder of a key that was lent for a time keeps nothing afterwards. A session's key stands for the operator who
// gave out its code, and keys that are made with it do not end with it.

// maxMadeKeys is how many keys that were made with one key can be in use at a time.
const maxMadeKeys = 50

// Rules reports whether k may give another personal key a new text or more scopes, and so use it. A key rules itself and the keys that were made with it; a
// session's key rules all. A nil key is an operator.
func (k *Key) Rules(other *Key) bool {
	return k == nil || k.Session || k.ID == other.ID || k.ID == other.Parent
}

// Covers reports whether k has all scopes of another key.
func (k *Key) Covers(other *Key) bool { return k.mayGive(other.Scopes) == nil }

// Payer returns the id of the key whose rate the queries of k use: a key that was made with another one shares its rate, so that making keys does not raise it.
func (k *Key) Payer() string {
	if k.Parent != "" {
		return k.Parent
	}
	return k.ID
}

// checkRules refuses a write to a personal key that k does not rule. Other keys belong to the project.
func (k *Key) checkRules(other *Key) error {
	if other.Kind == Personal && !k.Rules(other) {
		return &DeniedError{Message: "A key can only be rolled or given scopes by itself, by the key that it was made with, or in a session of the console."}
	}
	return nil
}

// inherit makes n end with the key that makes it.
func (n *NewKey) inherit() error {
	by := n.Grantor
	switch {
	case by == nil || n.Kind != Personal || by.Session:
		return nil
	case by.Parent != "":
		return &DeniedError{Message: "This key was made with another key, so it can't make personal keys."}
	case n.ExpiresAt.IsZero():
		n.ExpiresAt = by.ExpiresAt
	case !by.ExpiresAt.IsZero() && n.ExpiresAt.After(by.ExpiresAt):
		return invalid("expires_at", "A key can't expire after the one that makes it: at %s.", by.ExpiresAt.Format(time.RFC3339))
	}
	n.parent = by.ID
	return nil
}

// checkGrantor refuses a new key if its grantor was revoked or rolled in the meantime, or lost the scopes, or has made as many keys as it can.
func (p *projectState) checkGrantor(n *NewKey, now time.Time) error {
	by, err := p.asking(n.Grantor)
	if by == nil || err != nil {
		return err
	}
	if err := by.mayGive(n.Scopes); err != nil {
		return err
	}
	if n.parent == "" {
		return nil
	}
	inUse := slices.DeleteFunc(p.keysMadeWith(n.parent), func(e *keyEntry) bool { return e.Expired(now) })
	if len(inUse) >= maxMadeKeys {
		return &FieldError{Code: CodeLimit, Message: "A key can make at most 50 personal keys that are in use. Revoke one first."}
	}
	return nil
}

// asking returns the current state of the key that asks, which may have changed since the request began. A key that was revoked or rolled is a *DeniedError;
// nil stands for an operator.
func (p *projectState) asking(by *Key) (*Key, error) {
	if by == nil {
		return nil, nil // an operator has no key
	}
	now := p.keys.get(by.ID)
	if now == nil || !now.RevokedAt.IsZero() || now.Hash != by.Hash {
		return nil, &DeniedError{Message: "The key of this request was revoked or rolled."}
	}
	return &now.Key, nil
}

// keysMadeWith returns the keys that were made with a key and are not revoked.
func (p *projectState) keysMadeWith(id string) []*keyEntry {
	return valuesOf(p.keys.byID, func(e *keyEntry) bool { return e.Parent == id && e.RevokedAt.IsZero() })
}

// endFamily revokes the keys that were made with a key and for which ends returns true; all if ends is nil.
func (t *tx) endFamily(of *Key, now time.Time, ends func(*Key) bool) error {
	for _, e := range t.draft.project(of.Project).keysMadeWith(of.ID) {
		if ends != nil && !ends(&e.Key) {
			continue
		}
		k := e.Key
		k.RevokedAt = moment(now)
		if err := t.put(&k); err != nil {
			return err
		}
	}
	return nil
}
