package query_test

import (
	"bytes"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// canonical returns the canonical form of a node.
func canonical(t *testing.T, in string) []byte {
	t.Helper()
	return insighttest.Node[query.Node](t, in).Canonical()
}

// sameness says whether a node is the same query as another one.
type sameness struct {
	name, in string
	same     bool
}

// checkCanonical compares the canonical forms of nodes with that of a base.
func checkCanonical(t *testing.T, base string, tests []sameness) {
	t.Helper()
	want := canonical(t, base)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := canonical(t, tt.in); bytes.Equal(got, want) != tt.same {
				t.Errorf("canonical form %s against %s, want them the same: %t", got, want, tt.same)
			}
		})
	}
}
