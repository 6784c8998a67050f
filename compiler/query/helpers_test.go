package query_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// parse reads a node that has to be of a type.
func parse[T query.Node](t *testing.T, in string) T {
	t.Helper()
	n, err := compiler.Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	typed, ok := n.(T)
	if !ok {
		t.Fatalf("%s gives a %T", in, n)
	}
	return typed
}

// canonical is the canonical form of a node.
func canonical(t *testing.T, in string) []byte {
	t.Helper()
	return parse[query.Node](t, in).Canonical()
}

// sameness says of a node whether it is the same query as another one.
type sameness struct {
	name, in string
	same     bool
}

// checkCanonical holds the canonical forms of nodes against that of a base.
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

// mistakeIn gives the mistake in a node that cannot be read.
func mistakeIn(t *testing.T, in string) *diag.Error {
	t.Helper()
	n, err := compiler.Parse([]byte(in))
	mistake, ok := errors.AsType[*diag.Error](err)
	if !ok {
		t.Fatalf("%s gives %T and %v, want a mistake", in, n, err)
	}
	return mistake
}

// checkMistake holds the first mistakes in a node against what they should begin with, without the line that counts them.
func checkMistake(t *testing.T, in, attr, want string) {
	t.Helper()
	mistake := mistakeIn(t, in)
	list := mistake.Detail
	if _, problems, ok := strings.Cut(list, " for QueryRequest\n"); ok {
		list = problems
	}
	if mistake.Attr != attr || !strings.HasPrefix(list, want) {
		t.Errorf("got attr %s and\n%s\nwant attr %s and\n%s", mistake.Attr, list, attr, want)
	}
}
