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

// Claims are the claims of a token for browsers. A token is signed, not encrypted: whoever holds it can read it.
type Claims struct {
	jwt.RegisteredClaims

	Project   int64           `json:"project"`
	Key       string          `json:"key"`                 // id of the secret key that it was issued for
	Endpoints []string        `json:"endpoints"`           // names, sorted
	Variables json.RawMessage `json:"variables,omitempty"` // like the field Fixed of a key
	Origins   []string        `json:"origins,omitempty"`
	Rate      string          `json:"rate,omitempty"`
}

// Token is a token with a valid signature. It is immutable, except for what remains of its rate.
type Token struct {
	// The token as a bound secret key. ID and hash are those of the key that it was issued for.
	Key     registry.Key
	id      string
	secret  string   // id of the secret that signed it
	origins []string // none: it is not meant for pages of other sites
	// Share is the token's part of its key's rate; nil if it has none.
	Share *execution.Share
}

// issuer returns the key that a token was issued for. It is nil if the key has since been revoked, rolled or expired or may no longer run endpoints, or if
// the secret that signed the token is no longer trusted.
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
	// tokenMemory is the most that verified tokens take in memory, in bytes. An evicted token is verified again and its rate starts anew; its key's rate
	// still bounds it.
	tokenMemory = 16 << 20
)

// Tokens remembers verified tokens by the hash of their text, so that each is parsed once. It survives reloads.
type Tokens struct {
	verified *cache.Memo[*Token]
	parser   *jwt.Parser
	// shares hold what remains of the rates of tokens, whether a client or another server sends them.
	shares *cache.Memo[*execution.Share]
	mu     sync.Mutex // held to add a token or a share, so that each exists once
	// Sharing shares the rates of tokens between all nodes; nil keeps them to this process. Set it before Tokens is used.
	Sharing *execution.Sharing
}

// NewTokens returns an empty Tokens.
func NewTokens() *Tokens {
	return &Tokens{
		verified: cache.NewMemo(tokenMemory, (*Token).size),
		shares:   cache.NewMemo(tokenMemory, func(*execution.Share) int { return 256 }),
		// Times are checked with each request, not when the token is parsed.
		parser: jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation()),
	}
}

// size is roughly how much memory a token takes, in bytes.
func (t *Token) size() int {
	size := len(t.Key.Fixed) + 512
	for _, texts := range [][]string{t.Key.Endpoints, t.origins} {
		for _, text := range texts {
			size += len(text) + 16
		}
	}
	return size
}

// isToken distinguishes tokens from keys: a token has three parts.
func isToken(text string) bool {
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2
}

// Find returns the token with this text. The caller checks its expiry, key and origins.
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

// share returns what remains of a token's rate.
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

// errBadToken says that this server did not issue the token.
var errBadToken = Unauthenticated("The token is invalid.")

// verify checks the signature of a token. Its claims count only because they are signed, and even so the key that it was issued for bounds them.
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

// SigningKey returns the secret that signs the tokens of a key. It depends on the key's hash, so rolling the key ends its tokens.
func SigningKey(secret registry.TokenSecret, issuer *registry.Key) []byte {
	mac := hmac.New(sha256.New, secret.Secret[:])
	mac.Write(issuer.Hash[:])
	return mac.Sum(nil)
}

// within checks that key allows nothing beyond issuer.
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

// Sign returns the signed text of a token.
func Sign(claims *Claims, secret registry.TokenSecret, issuer *registry.Key) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	token.Header["kid"] = secret.ID
	text, err := token.SignedString(SigningKey(secret, issuer))
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text, nil
}

// believe makes a valid token the caller's key. Pages of the token's origins may also read why a once valid token is refused.
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
		return Unauthenticated("The token has expired.")
	case token.issuer(c.Snapshot, c.Start) == nil:
		return Unauthenticated("The token was revoked.")
	}
	c.Key, c.Token, c.TokenSecret, c.Share = &token.Key, token, token.secret, token.Share
	return nil
}
