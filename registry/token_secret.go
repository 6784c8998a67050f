package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// TokenSecret signs a project's tokens for browsers. A project has at most two: the newest signs, and the one before it is accepted until it is rotated out.
type TokenSecret struct {
	ID        string // is part of tokens
	Secret    [32]byte
	CreatedAt time.Time
}

// tokenSecretList is the record of a project's secrets.
type tokenSecretList struct {
	project int64
	secrets []TokenSecret // newest first
}

// storedTokenSecret is the JSON of a secret.
type storedTokenSecret struct {
	ID        string    `json:"id"`
	Secret    string    `json:"secret"` // in hexadecimal digits
	CreatedAt time.Time `json:"created_at"`
}

func (l *tokenSecretList) stored() any {
	all := make([]storedTokenSecret, len(l.secrets))
	for i, s := range l.secrets {
		all[i] = storedTokenSecret{s.ID, hex.EncodeToString(s.Secret[:]), s.CreatedAt}
	}
	return struct {
		Secrets []storedTokenSecret `json:"secrets"`
	}{all}
}

func readTokenSecrets(rec *Record) (entity, error) {
	var stored struct {
		Secrets []storedTokenSecret `json:"secrets"`
	}
	l := &tokenSecretList{project: rec.Project}
	if err := decode(rec, &stored); err != nil {
		return nil, err
	}
	for _, s := range stored.Secrets {
		secret := TokenSecret{ID: s.ID, CreatedAt: s.CreatedAt}
		raw, err := hex.DecodeString(s.Secret)
		if err != nil || len(raw) != len(secret.Secret) {
			return nil, errors.New("a secret for tokens is not 32 bytes")
		}
		copy(secret.Secret[:], raw)
		l.secrets = append(l.secrets, secret)
	}
	return l, nil
}

func (l *tokenSecretList) name() recordName {
	return recordName{project: l.project, kind: KindTokenSecrets}
}

func (l *tokenSecretList) unique() (ids []string) {
	for _, s := range l.secrets {
		ids = append(ids, s.ID)
	}
	return ids
}

func (l *tokenSecretList) size() int        { return 0 } // there are at most two
func (l *tokenSecretList) checkSize() error { return nil }

func (l *tokenSecretList) put(_ *draft, p *projectState) (Stored, error) {
	p.tokenSecrets = l.secrets
	return Stored{1, 0}, nil
}

func (l *tokenSecretList) remove(_ *draft, p *projectState) Stored {
	p.tokenSecrets = nil
	return Stored{}
}

// String identifies the secret without revealing it.
func (s TokenSecret) String() string { return "token secret " + s.ID }

// GoString is String: a secret must not get into logs.
func (s TokenSecret) GoString() string { return s.String() }

// tokenSecrets is how many secrets of a project are accepted.
const tokenSecrets = 2

// TokenSecret returns the secret that signs a project's tokens, and makes one if there is none. An unknown project is ErrNotFound.
func (r *Registry) TokenSecret(ctx context.Context, project int64, now time.Time) (TokenSecret, error) {
	if known := r.Snapshot().TokenSecrets(project); len(known) > 0 {
		return known[0], nil
	}
	secrets, err := r.changeTokenSecrets(ctx, project, func(known []TokenSecret) []TokenSecret {
		if len(known) > 0 { // made by another process
			return known
		}
		return []TokenSecret{newTokenSecret(now, nil)}
	})
	if err != nil {
		return TokenSecret{}, fmt.Errorf("making a secret for tokens: %w", err)
	}
	return secrets[0], nil
}

// RotateTokenSecret gives a project a new secret for its tokens. Tokens that the previous secret has signed are accepted until the next rotation or, with
// revoke, no longer from now on. An unknown project is ErrNotFound.
func (r *Registry) RotateTokenSecret(ctx context.Context, project int64, revoke bool, now time.Time) (TokenSecret, error) {
	secrets, err := r.changeTokenSecrets(ctx, project, func(known []TokenSecret) []TokenSecret {
		kept := []TokenSecret{newTokenSecret(now, known)}
		if !revoke {
			kept = append(kept, known...)
		}
		return kept[:min(len(kept), tokenSecrets)]
	})
	if err != nil {
		return TokenSecret{}, fmt.Errorf("rotating the secret for tokens: %w", err)
	}
	return secrets[0], nil
}

func (r *Registry) changeTokenSecrets(ctx context.Context, project int64, change func([]TokenSecret) []TokenSecret) (secrets []TokenSecret, err error) {
	err = r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		secrets = change(p.tokenSecrets)
		return t.put(&tokenSecretList{project, secrets})
	})
	return secrets, err
}

// newTokenSecret makes a secret that is newer than the known ones, whatever the clock says.
func newTokenSecret(now time.Time, known []TokenSecret) TokenSecret {
	s := TokenSecret{ID: randomText(keyIDBytes), CreatedAt: moment(now)}
	if len(known) > 0 && !s.CreatedAt.After(known[0].CreatedAt) {
		s.CreatedAt = known[0].CreatedAt.Add(time.Microsecond)
	}
	_, _ = rand.Read(s.Secret[:]) // documented never to fail
	return s
}
