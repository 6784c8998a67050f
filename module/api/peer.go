package api

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// PeerCallers finds the callers for whom other servers ask, in what the registry holds here: a server is not believed who may ask what.
type PeerCallers struct {
	// shares are what is left of the rates of tokens, by the id of the token. One that is forgotten begins anew; the rate of its key bounds it all the
	// same.
	shares  *cache.Memo[*execution.Share]
	sharing *execution.Sharing
}

// NewPeerCallers returns one that knows of no token. All nodes share the rates of tokens; with a nil sharing they are those of this process.
func NewPeerCallers(sharing *execution.Sharing) *PeerCallers {
	return &PeerCallers{cache.NewMemo(tokenMemory, func(*execution.Share) int { return 256 }), sharing}
}

// errPeerCaller refuses a key that is not there, or no longer, and a token that says more than its key may.
var errPeerCaller = errors.New("nobody may ask this")

// Find is the caller of a request of another server.
func (p *PeerCallers) Find(snap *registry.Snapshot, asked *execution.PeerRequest, now time.Time) (Caller, error) {
	var c Caller
	project := snap.Project(asked.Project)
	raw, err := hex.DecodeString(asked.Caller.Hash)
	if err != nil || project == nil || len(raw) != len(registry.Key{}.Hash) {
		return c, errPeerCaller
	}
	key := snap.KeyByHash([len(registry.Key{}.Hash)]byte(raw))
	if key == nil || key.ID != asked.Caller.ID || key.Project != project.ID || !key.RevokedAt.IsZero() || key.Expired(now) {
		return c, errPeerCaller
	}
	c.Caller = execution.Caller{Project: project, Key: key, Snapshot: snap, Start: now}
	token := asked.Caller.Token
	if token == nil {
		return c, nil
	}
	bound := &registry.Key{
		ID: key.ID, Hash: key.Hash, Kind: registry.Secret, Project: key.Project, Scopes: key.Scopes, ExpiresAt: token.Expires, Fixed: token.Fixed,
		Endpoints: token.Endpoints,
	}
	if key.Kind != registry.Secret || len(token.Endpoints) == 0 || bound.Expired(now) || within(key, bound) != nil {
		return Caller{}, errPeerCaller
	}
	c.Key, c.Token = bound, &Token{Key: *bound, id: token.Share}
	if rate := token.Rate(); token.Share != "" {
		if rate.Queries <= 0 || rate.Per < time.Duration(rate.Queries) {
			return Caller{}, errPeerCaller
		}
		c.Share = p.share(project.ID, token.Share, rate)
	}
	return c, nil
}

// share is what is left of the rate of a token.
func (p *PeerCallers) share(project int64, token string, rate registry.Rate) *execution.Share {
	name := fmt.Appendf(nil, "%d %d %d %s", project, rate.Queries, rate.Per, token)
	if known, ok := p.shares.Get(name); ok {
		return known
	}
	made := p.sharing.NewShare(token, rate)
	p.shares.Put(name, made)
	return made
}
