package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

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
	} {
		if _, err := moveRegistry(t.Context(), tt.from, tt.to); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if files, err := filepath.Glob(filepath.Join(folder, "none*")); err != nil || strings.Join(files, "") != "" {
		t.Errorf("it made %v: %v", files, err)
	}
}

// TestRegistryFlags: commands take a registry as the config does. A mistake names the flag, and no password.
func TestRegistryFlags(t *testing.T) {
	t.Setenv("WRONG_DSN", "postgres://u:hidden@h/d?sslmode=x")
	flags := map[string]func(dsn string) (*cobra.Command, []string){
		"--from": func(dsn string) (*cobra.Command, []string) {
			return registryCommand(), []string{"move", "--from", dsn, "--to", "sqlite:to.db"}
		},
		"--to": func(dsn string) (*cobra.Command, []string) {
			return registryCommand(), []string{"move", "--from", "sqlite:from.db", "--to", dsn}
		},
		"--registry": func(dsn string) (*cobra.Command, []string) {
			return upgradeCommand(), []string{"check", "--registry", dsn, t.TempDir()}
		},
	}
	for _, tt := range []struct{ name, dsn, want string }{
		{"an unknown scheme", "mysql://u:hidden@h/d", "the DSN must begin with one of the schemes postgres, postgresql, sqlite"},
		{"no scheme", "registry.db", "the DSN must begin with one of the schemes postgres, postgresql, sqlite"},
		{"a wrong option", "{env.WRONG_DSN}", "the registry's postgres:// DSN is not valid: failed to configure TLS (sslmode is invalid)"},
		{"a placeholder without a value", "{env.NO_SUCH_DSN}", "evaluated placeholder {env.NO_SUCH_DSN} is empty"},
	} {
		for name, with := range flags {
			cmd, args := with(tt.dsn)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(args)
			if err := cmd.Execute(); err == nil || err.Error() != name+": "+tt.want {
				t.Errorf("%s for %s: %v, want %s", tt.name, name, err, tt.want)
			}
		}
	}
}

// TestUpgradeCheckOfRegistry: the registry that is inspected is the one that the placeholders stand for.
func TestUpgradeCheckOfRegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "elsewhere.db")
	if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ELSEWHERE", path)
	cmd := upgradeCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"check", "--registry", "sqlite:{env.ELSEWHERE}", t.TempDir()})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("upgrade check of a broken file: %v, want an error that names %s", err, path)
	}
}
