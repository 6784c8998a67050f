package api

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// errPeerCaller refuses a key that does not exist or is revoked or expired, and a token that exceeds its key.
var errPeerCaller = errors.New("the key or token is not valid here")

// ForPeer returns the caller on whose behalf another server asks. It does not take the other server's word for what the caller may do: it looks that up in
// this server's registry.
func (t *Tokens) ForPeer(snap *registry.Snapshot, asked *execution.PeerRequest, now time.Time) (*Caller, error) {
	project := snap.Project(asked.Project)
	raw, err := hex.DecodeString(asked.Caller.Hash)
	if err != nil || project == nil || len(raw) != len(registry.Key{}.Hash) {
		return nil, errPeerCaller
	}
	key := snap.KeyByHash([len(registry.Key{}.Hash)]byte(raw))
	if key == nil || key.ID != asked.Caller.ID || key.Project != project.ID || !key.RevokedAt.IsZero() || key.Expired(now) {
		return nil, errPeerCaller
	}
	c := &Caller{Caller: execution.Caller{Project: project, Key: key, Snapshot: snap, Start: now}}
	token := asked.Caller.Token
	if token == nil {
		return c, nil
	}
	bound := &registry.Key{
		ID: key.ID, Hash: key.Hash, Kind: registry.Secret, Project: key.Project, Scopes: key.Scopes, ExpiresAt: token.Expires, Fixed: token.Fixed,
		Endpoints: token.Endpoints,
	}
	made := &Token{Key: *bound, id: token.Share, secret: token.Secret}
	if key.Kind != registry.Secret || len(token.Endpoints) == 0 || bound.Expired(now) || within(key, bound) != nil || made.issuer(snap, now) == nil {
		return nil, errPeerCaller
	}
	if rate := token.Rate(); token.Share != "" {
		if rate.Queries <= 0 || rate.Per < time.Duration(rate.Queries) {
			return nil, errPeerCaller
		}
		made.Share = t.share(project.ID, token.Share, rate)
	}
	c.Token = made
	c.Key, c.TokenSecret, c.Share = &made.Key, made.secret, made.Share
	return c, nil
}
