package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Claims are what a token for browsers says. It is signed, not encrypted: who holds it can read it.
type Claims struct {
	jwt.RegisteredClaims

	Project   int64           `json:"project"`
	Key       string          `json:"key"`                 // id of the secret key that it was issued to
	Endpoints []string        `json:"endpoints"`           // names, sorted
	Variables json.RawMessage `json:"variables,omitempty"` // as in the field Fixed of a key
	Origins   []string        `json:"origins,omitempty"`
	Rate      string          `json:"rate,omitempty"`
}

// Token is a token whose signature was found right. It is immutable, but for what is left of its rate.
type Token struct {
	// What it may do, as a secret key that is bound. Its id and hash are those of the key that it was issued to.
	Key     registry.Key
	id      string
	secret  string   // id of the secret that signed it
	origins []string // none: it is not for pages of other sites
	// How much of its key's rate is for it; nil when that is not said.
	Share *execution.Share
}

// issuer returns the key that a token was issued to, nil when that is revoked, rolled or expired since, may no longer run endpoints,
// or the token's secret is no longer believed.
func (t *Token) issuer(snap *registry.Snapshot, now time.Time) *registry.Key {
	key := snap.KeyByHash(t.Key.Hash)
	if key == nil || key.ID != t.Key.ID || key.Expired(now) || !key.Allows("endpoint:read") {
		return nil
	}
	for i := range snap.TokenSecrets(key.Project) {
		if snap.TokenSecrets(key.Project)[i].ID == t.secret {
			return key
		}
	}
	return nil
}

const (
	MaxTokenText = 8 << 10 // bytes
	// tokenMemory is what the tokens that were verified may take, in bytes. One that is forgotten is verified again, and its rate
	// begins anew; that of its key still bounds it.
	tokenMemory = 16 << 20
)

// Tokens remembers the tokens that were verified by the hash of their text, so that each is parsed once. It survives reloads.
type Tokens struct {
	verified *cache.Memo[*Token]
	parser   *jwt.Parser
	// shares are what is left of the rates of tokens, whether they come with a request of a client or of another server.
	shares *cache.Memo[*execution.Share]
	mu     sync.Mutex // held to add a token or its rate, so that each has one
	// Sharing has all nodes share the rates of tokens; nil: they are those of this process. Set it before Tokens is used.
	Sharing *execution.Sharing
}

// NewTokens remembers no tokens yet.
func NewTokens() *Tokens {
	return &Tokens{
		verified: cache.NewMemo(tokenMemory, (*Token).size),
		shares:   cache.NewMemo(tokenMemory, func(*execution.Share) int { return 256 }),
		// Times are looked at with each request, not when the token is parsed.
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation()),
	}
}

// size is about what a token takes in memory, in bytes.
func (t *Token) size() int {
	size := len(t.Key.Fixed) + 512
	for _, texts := range [][]string{t.Key.Endpoints, t.origins} {
		for _, text := range texts {
			size += len(text) + 16
		}
	}
	return size
}

// isToken tells tokens from keys: a token has three parts.
func isToken(text string) bool {
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2
}

// Find returns the token of a text. Its time, its key and its origins are for the caller to look at.
func (t *Tokens) Find(snap *registry.Snapshot, text string) (*Token, error) {
	if len(text) > MaxTokenText {
		return nil, errBadToken
	}
	var room [1 << 10]byte // keeps the conversion off the heap for tokens of a usual length
	sum := sha256.Sum256(append(room[:0], text...))
	if known, ok := t.verified.Get(sum[:]); ok {
		return known, nil
	}
	found, err := t.verify(snap, text)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.verified.Get(sum[:]); ok {
		return known, nil
	}
	t.verified.Put(sum[:], found)
	return found, nil
}

// share is what is left of the rate of a token.
func (t *Tokens) share(project int64, token string, rate registry.Rate) *execution.Share {
	name := fmt.Appendf(nil, "%d %d %d %s", project, rate.Queries, rate.Per, token)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.shares.Get(name); ok {
		return known
	}
	made := t.Sharing.NewShare(token, rate)
	t.shares.Put(name, made)
	return made
}

// errBadToken says that a token is none of ours.
var errBadToken = unauthenticated("authentication_failed", "The token is invalid.")

// verify checks the signature of a token. Whatever it says counts only because it is signed, and the key that it was issued to
// bounds it all the same.
func (t *Tokens) verify(snap *registry.Snapshot, text string) (*Token, error) {
	var claims Claims
	var issuer *registry.Key
	var secret registry.TokenSecret
	_, err := t.parser.ParseWithClaims(text, &claims, func(parsed *jwt.Token) (any, error) {
		if issuer = snap.KeyByID(claims.Project, claims.Key); issuer == nil || !issuer.RevokedAt.IsZero() || issuer.Kind != registry.Secret {
			return nil, errors.New("its key is gone")
		}
		for _, known := range snap.TokenSecrets(claims.Project) {
			if known.ID == parsed.Header["kid"] {
				secret = known
				return SigningKey(known, issuer), nil
			}
		}
		return nil, errors.New("its secret is gone")
	})
	if err != nil || claims.ExpiresAt == nil || claims.ID == "" || len(claims.Endpoints) == 0 {
		return nil, errBadToken
	}
	found := &Token{
		Key: registry.Key{
			ID: issuer.ID, Hash: issuer.Hash, Kind: registry.Secret, Project: issuer.Project, Scopes: issuer.Scopes, ExpiresAt: claims.ExpiresAt.Time,
			Fixed: string(claims.Variables), Endpoints: claims.Endpoints,
		},
		id: claims.ID, secret: secret.ID, origins: claims.Origins,
	}
	if err := within(issuer, &found.Key); err != nil {
		return nil, errBadToken
	}
	if claims.Rate != "" {
		rate, err := registry.ParseRate(claims.Rate)
		if err != nil {
			return nil, errBadToken
		}
		found.Share = t.share(issuer.Project, claims.ID, rate)
	}
	return found, nil
}

// SigningKey is what tokens of a key are signed with. The hash of the key is a part of it, so that rolling the key ends them.
func SigningKey(secret registry.TokenSecret, issuer *registry.Key) []byte {
	mac := hmac.New(sha256.New, secret.Secret[:])
	mac.Write(issuer.Hash[:])
	return mac.Sum(nil)
}

// within checks that a key may do nothing that its issuer may not.
func within(issuer, key *registry.Key) error {
	for _, name := range key.Endpoints {
		if !issuer.MayRun(name) {
			return fmt.Errorf("endpoint %s", name)
		}
	}
	if issuer.Fixed == "" {
		return nil
	}
	outer, err := FixedValues(issuer)
	if err != nil {
		return err
	}
	inner, err := FixedValues(key)
	if err != nil {
		return err
	}
	for name, value := range outer {
		if raw, ok := inner[name]; !ok || string(CompactJSON(raw)) != string(CompactJSON(value)) {
			return fmt.Errorf("variable %s", name)
		}
	}
	return nil
}

// Sign writes a token.
func Sign(claims *Claims, secret registry.TokenSecret, issuer *registry.Key) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	token.Header["kid"] = secret.ID
	text, err := token.SignedString(SigningKey(secret, issuer))
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text, nil
}

// believe makes a token the caller's key, if it stands. What is wrong with a token that was once good is told to pages of its
// origins too.
func (t *Tokens) believe(h http.Header, r *http.Request, text string, c *Caller) error {
	token, err := t.Find(c.Snapshot, text)
	if err != nil {
		return err
	}
	if err := allowOrigin(h, r, token.origins); err != nil {
		return err
	}
	switch {
	case token.Key.Expired(c.Start):
		return unauthenticated("authentication_failed", "The token has expired.")
	case token.issuer(c.Snapshot, c.Start) == nil:
		return unauthenticated("authentication_failed", "The token was revoked.")
	}
	c.Key, c.Token, c.TokenSecret, c.Share = &token.Key, token, token.secret, token.Share
	return nil
}
