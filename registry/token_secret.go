package registry

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// TokenSecret is what the tokens for browsers of a project are signed with. A project has at most two: the newest signs, the one
// before it is believed until it is rotated out.
type TokenSecret struct {
	ID        string // stands in tokens
	Secret    [32]byte
	CreatedAt time.Time
}

// String names the secret without giving it away.
func (s TokenSecret) String() string { return "token secret " + s.ID }

// GoString is String: a secret is not for logs.
func (s TokenSecret) GoString() string { return s.String() }

// tokenSecrets is how many secrets of a project are believed.
const tokenSecrets = 2

// TokenSecret returns the secret that signs a project's tokens, and makes one when there is none. An unknown project is ErrNotFound.
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

// RotateTokenSecret gives a project a new secret for its tokens. Tokens that the secret before it has signed are believed until the
// next rotation, or with revoke no more from now on. An unknown project is ErrNotFound.
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
	err = r.write(ctx, project, func(tx Tx) error {
		if _, err := tx.Project(ctx, project); err != nil {
			return fmt.Errorf("project %d: %w", project, err)
		}
		known, err := tx.TokenSecrets(ctx, project)
		if err != nil {
			return err
		}
		secrets = change(known)
		return tx.PutTokenSecrets(ctx, project, secrets)
	}, func(d *draft) {
		if p, _ := d.project(project); p != nil {
			p.tokenSecrets = secrets
		}
	})
	return secrets, err
}

// newTokenSecret makes a secret that is newer than those known, whatever the clock says.
func newTokenSecret(now time.Time, known []TokenSecret) TokenSecret {
	s := TokenSecret{ID: randomText(keyIDBytes), CreatedAt: moment(now)}
	if len(known) > 0 && !s.CreatedAt.After(known[0].CreatedAt) {
		s.CreatedAt = known[0].CreatedAt.Add(time.Microsecond)
	}
	_, _ = rand.Read(s.Secret[:]) // documented never to fail
	return s
}
