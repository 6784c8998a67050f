package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

// TestMoveRegistry moves a registry to PostgreSQL and back to a new file, in which the key is found.
func TestMoveRegistry(t *testing.T) {
	folder := t.TempDir()
	first, last := "sqlite:"+filepath.Join(folder, "first.db"), "sqlite:"+filepath.Join(folder, "last.db")
	between := postgrestest.DSN(t)
	openIt := func(dsn string) *registry.Registry {
		t.Helper()
		store, err := registry.OpenStore(t.Context(), dsn, "")
		if err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(t.Context(), store, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := openIt(first)
	p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "moved"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Scopes: []string{"*"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	there, err := moveRegistry(t.Context(), first, between)
	if err != nil || there.Records == 0 {
		t.Fatalf("it moved %+v: %v", there, err)
	}
	back, err := moveRegistry(t.Context(), between, last)
	if diff := cmp.Diff(there, back); diff != "" || err != nil {
		t.Fatalf("what moved back: %v (-there +back):\n%s", err, diff)
	}
	r = openIt(last)
	defer func() { _ = r.Close() }()
	if r.Snapshot().KeyByHash(key.Hash) == nil {
		t.Error("the key is not found after it was moved")
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"to what is not empty", first, last, "moving the registry: the registry to move to is not empty"},
		{"from a missing source", "sqlite:" + filepath.Join(folder, "none.db"), between, "--from: there is no registry at " + filepath.Join(folder, "none.db")},
		{"to itself", first, first, "--from and --to are the same registry"},
		{"to nothing", first, "", "--to is empty"},
		{"to an unknown place", first, "postgres://u:hidden@h/d?sslmode=x", "--to: the registry's postgres:// DSN is not valid: failed to configure TLS (sslmode is invalid)"},
	} {
		if _, err := moveRegistry(t.Context(), tt.from, tt.to); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if files, err := filepath.Glob(filepath.Join(folder, "none*")); err != nil || strings.Join(files, "") != "" {
		t.Errorf("it made %v: %v", files, err)
	}
}
