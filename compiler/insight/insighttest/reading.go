package insighttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// MistakeIn returns the mistake in a node that cannot be read.
func MistakeIn(t *testing.T, in string) *diag.Error {
	t.Helper()
	n, err := compiler.Parse([]byte(in))
	mistake, ok := errors.AsType[*diag.Error](err)
	if !ok {
		t.Fatalf("%s gives %T and %v, want a mistake", in, n, err)
	}
	return mistake
}

// CheckMistake compares the first mistakes in a node with what they should begin with, without the line that counts them.
func CheckMistake(t *testing.T, in, attr, want string) {
	t.Helper()
	mistake := MistakeIn(t, in)
	list := mistake.Detail
	if _, problems, ok := strings.Cut(list, " for QueryRequest\n"); ok {
		list = problems
	}
	if mistake.Attr != attr || !strings.HasPrefix(list, want) {
		t.Errorf("got attr %s and\n%s\nwant attr %s and\n%s", mistake.Attr, list, attr, want)
	}
}
