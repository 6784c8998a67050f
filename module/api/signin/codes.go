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
	// maxCodes is the most codes that work at a time. A new one takes the place of the oldest.
	maxCodes = 100
	// codesName is the name under which codes are kept, and that of the lock that protects them.
	codesName = "console-codes"
)

// Grant is what the key of a session may do.
type Grant struct {
	Project int64         `json:"project"`
	Scopes  []string      `json:"scopes"`
	Life    time.Duration `json:"life"` // of the key, from the exchange
}

// Store is where codes are kept: a part of what a registry can do.
type Store interface {
	Lock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	Keep(ctx context.Context, name string, data []byte) error
	Kept(ctx context.Context, name string) ([]byte, error)
}

// Codes are the codes that were given out and not exchanged yet. Their hashes are in the registry, so a code works on any server that shares it, and
// once on all of them together. It is for any number of goroutines.
type Codes struct {
	store   Store
	holder  string
	looking chan struct{} // holds one token: whoever sends wrong codes has the store asked once at a time
}

// NewCodes returns those in a store.
func NewCodes(store Store) *Codes {
	return &Codes{store: store, holder: rand.Text(), looking: make(chan struct{}, 1)}
}

// code is one as it is kept.
type code struct {
	Hash    string    `json:"hash"` // SHA-256, in hexadecimal digits
	Expires time.Time `json:"expires"`
	Grant   Grant     `json:"grant"`
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// Issue returns a new code for a grant, and when it stops working.
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

// use calls open with what a code grants, and forgets the code once that has succeeded; until then the code works. ok is false for one that is wrong,
// was used or has expired. An error may also mean that the code could not be forgotten: what open did then has to be undone, since the code may be used
// again. Codes are told apart by their hashes, so how long it takes says nothing of how much of a code is right.
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

// look reads the codes without the lock.
func (c *Codes) look(ctx context.Context, now time.Time) ([]code, error) {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return c.read(ctx, now)
}

// read returns the codes that work, the oldest first.
func (c *Codes) read(ctx context.Context, now time.Time) ([]code, error) {
	data, err := c.store.Kept(ctx, codesName)
	if err != nil {
		return nil, err
	}
	var codes []code
	if len(data) > 0 && json.Unmarshal(data, &codes) != nil {
		codes = nil // they are of another version; whoever has one asks for a new one
	}
	return slices.DeleteFunc(codes, func(each code) bool { return !now.Before(each.Expires) }), nil
}

// change has to change the codes that work, while nobody else does. They stay as they are when to fails.
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
	// What was done for it is done, so this goes on although the client may have left.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), codeTimeout, errNoAnswer)
	defer cancel()
	return c.store.Keep(ctx, codesName, data)
}
