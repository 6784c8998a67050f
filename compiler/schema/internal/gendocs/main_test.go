package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPageIsFresh(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(functionsPage()), string(got)); diff != "" {
		t.Errorf("docs/functions.md is stale: run go generate in compiler/schema (-want +got):\n%s", diff)
	}
}
