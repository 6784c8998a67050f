// Package eventually waits in tests for what other goroutines, processes or servers do.
package eventually

import (
	"testing"
	"time"
)

// Patience is how long Is waits for what takes a moment on an idle machine.
const Patience = time.Minute

// Is waits until is returns true. If that takes longer than Patience, the test fails: what says what it waited for, such as "the import has ended".
func Is(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(Patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("after %s it is still not so that %s", Patience, what)
		}
	}
}
