// Package signin lets people sign in to the console: an operator gets a code that works once, and the page exchanges it for a key that expires.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// CodeLife is how long a code works.
	CodeLife = 5 * time.Minute
	// maxCodes is the most codes that are valid at a time. A new one replaces the oldest.
	maxCodes = 100
	// codesName is the name under which codes are stored, and that of the lock that protects them.
	codesName = "console-codes"
)

// Grant is what a session key may do.
type Grant struct {
	Project int64         `json:"project"`
	Scopes  []string      `json:"scopes"`
	Life    time.Duration `json:"life"` // of the key, from the exchange
}

// Store stores the codes: a subset of a registry's methods.
type Store interface {
	Lock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	Keep(ctx context.Context, name string, data []byte) error
	Kept(ctx context.Context, name string) ([]byte, error)
}

// Codes are the codes that were issued but not exchanged yet. Their hashes are in the registry, so a code works on any server that shares it, but only once
// on all of them together. It is safe for concurrent use.
type Codes struct {
	store   Store
	holder  string
	looking chan struct{} // holds one token: wrong codes cause only one read of the store at a time
}

// newCodes returns the codes in a store.
func newCodes(store Store) *Codes {
	return &Codes{store: store, holder: rand.Text(), looking: make(chan struct{}, 1)}
}

// code is a code as stored.
type code struct {
	Hash    string    `json:"hash"` // SHA-256, in hexadecimal digits
	Expires time.Time `json:"expires"`
	Grant   Grant     `json:"grant"`
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// Issue returns a new code for a grant, and when it expires.
func (c *Codes) Issue(ctx context.Context, grant Grant, now time.Time) (text string, expires time.Time, err error) {
	text, expires = rand.Text(), now.Add(CodeLife) // at least 128 random bits
	err = c.change(ctx, now, func(codes []code) ([]code, error) {
		if len(codes) >= maxCodes {
			codes = slices.Delete(codes, 0, len(codes)-maxCodes+1)
		}
		return append(codes, code{hashOf(text), expires.UTC(), grant}), nil
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("keeping a code: %w", err)
	}
	return text, expires, nil
}

// use calls open with the grant of a code, and deletes the code once that has succeeded; until then the code remains valid. ok is false if the code is
// wrong, used or expired. An error may also mean that the code could not be deleted: the caller then has to undo what open did, since the code may be used
// again. Codes are compared by their hashes, so the time this takes does not reveal how much of a code is right.
func (c *Codes) use(ctx context.Context, text string, now time.Time, open func(Grant) error) (ok bool, err error) {
	hash := hashOf(text)
	isIt := func(each code) bool { return each.Hash == hash }
	codes, err := c.look(ctx, now)
	if err != nil || !slices.ContainsFunc(codes, isIt) {
		return false, err
	}
	err = c.change(ctx, now, func(codes []code) ([]code, error) {
		found := slices.IndexFunc(codes, isIt)
		if found < 0 {
			return codes, nil
		}
		ok = true
		if err := open(codes[found].Grant); err != nil {
			return nil, err
		}
		return slices.Delete(codes, found, found+1), nil
	})
	if err != nil {
		return ok, fmt.Errorf("using a code: %w", err)
	}
	return ok, nil
}

// look reads the codes without taking the lock.
func (c *Codes) look(ctx context.Context, now time.Time) ([]code, error) {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return c.read(ctx, now)
}

// read returns the valid codes, oldest first.
func (c *Codes) read(ctx context.Context, now time.Time) ([]code, error) {
	data, err := c.store.Kept(ctx, codesName)
	if err != nil {
		return nil, err
	}
	var codes []code
	if len(data) > 0 && json.Unmarshal(data, &codes) != nil {
		codes = nil // written by another version; their holders ask for new ones
	}
	return slices.DeleteFunc(codes, func(each code) bool { return !now.Before(each.Expires) }), nil
}

// change replaces the valid codes with the result of to, while holding the lock. If to fails, they remain unchanged.
func (c *Codes) change(ctx context.Context, now time.Time, to func([]code) ([]code, error)) error {
	_, release, err := c.store.Lock(ctx, codesName, c.holder)
	if err != nil {
		return err
	}
	defer release()
	codes, err := c.read(ctx, now)
	if err != nil {
		return err
	}
	if codes, err = to(codes); err != nil {
		return err
	}
	var data []byte
	if len(codes) > 0 {
		if data, err = json.Marshal(codes); err != nil {
			return err
		}
	}
	// to has already acted, so this continues even if the client has left.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), codeTimeout, errNoAnswer)
	defer cancel()
	return c.store.Keep(ctx, codesName, data)
}
