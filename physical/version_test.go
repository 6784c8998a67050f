package physical_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestVersion: tables that change get a new version, so that data folders say which program wrote them.
func TestVersion(t *testing.T) {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%+v", physical.Tables) // never fails
	if got, want := fmt.Sprintf("%d %x", physical.Version, hash.Sum64()), "3 47767cc4b3bdcae8"; got != want {
		t.Errorf("the tables are %s, and were %s: if they are others now, count Version up, record the last release with tests/upgrades/record.sh, and "+
			"write the new text here", got, want)
	}
}
