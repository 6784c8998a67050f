// Package signin lets people sign in to the console: an operator gets a code that works once, and the page exchanges it for a key that expires.
package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"
)

const (
	// CodeLife is how long a code works.
	CodeLife = 5 * time.Minute
	// maxCodes is the most codes that work at a time. A new one takes the place of the oldest.
	maxCodes = 100
)

// Grant is what the key of a session may do.
type Grant struct {
	Project int64
	Scopes  []string
	Life    time.Duration // of the key, from the exchange
}

// Codes are the codes that were given out and not exchanged yet. Only their hashes are kept, in memory: they survive reloads of the config, and no
// restart. Its zero value has none. It is for any number of goroutines.
type Codes struct {
	mu    sync.Mutex
	codes []code // the oldest first
}

type code struct {
	hash    [sha256.Size]byte
	expires time.Time
	grant   Grant
}

// Issue returns a new code for a grant, and when it stops working.
func (c *Codes) Issue(grant Grant, now time.Time) (text string, expires time.Time) {
	text, expires = rand.Text(), now.Add(CodeLife) // at least 128 random bits
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	if len(c.codes) >= maxCodes {
		c.codes = slices.Delete(c.codes, 0, len(c.codes)-maxCodes+1)
	}
	c.codes = append(c.codes, code{sha256.Sum256([]byte(text)), expires, grant})
	return text, expires
}

// take returns what a code grants, and forgets the code. ok is false for one that is wrong, was used or has expired. It compares the text with
// each code, in a time that does not depend on how much of it is right.
func (c *Codes) take(text string, now time.Time) (grant Grant, ok bool) {
	hash := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	found := -1
	for i := range c.codes {
		if subtle.ConstantTimeCompare(hash[:], c.codes[i].hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Grant{}, false
	}
	grant = c.codes[found].grant
	c.codes = slices.Delete(c.codes, found, found+1)
	return grant, true
}

// forget drops the codes that have expired. The lock is held.
func (c *Codes) forget(now time.Time) {
	c.codes = slices.DeleteFunc(c.codes, func(each code) bool { return !now.Before(each.expires) })
}
