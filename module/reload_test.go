package module

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shares counts the shares of what is kept over reloads, by the first word of its key.
func shares() map[string]int {
	counts := map[string]int{}
	shared.Range(func(key, _ any) bool {
		n, _ := shared.References(key)
		name, _, _ := strings.Cut(key.(string), " ")
		counts[name] += n
		return true
	})
	return counts
}

// reloaded returns a config with options of the app.
func reloaded(folder string, app map[string]any) []byte {
	base := map[string]any{"clickhouse": "http://127.0.0.1:1/default", "data_dir": folder}
	maps.Copy(base, app)
	return jsontext.Append(nil, map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "discard"}}}},
		"apps":    map[string]any{"analytics": base},
	})
}

// TestReload loads configs one after another in one Caddy, and counts the remaining references: a reload holds one share of everything, and a config
// that fails at any point leaves the counts unchanged. Nobody listens on the port of the ClickHouse server, so requests would get 503; this test is
// only about the shares.
func TestReload(t *testing.T) {
	folder := t.TempDir()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{}, shares()); diff != "" {
			t.Errorf("shares when Caddy has stopped (-want +got):\n%s", diff)
		}
	})
	one := map[string]int{"alerts": 1, "capture": 1, "common": 1, "gate": 1, "plans": 1, "cohorts": 1, "backups": 1, "deletions": 1, "folder": 1, "gc": 1, "imports": 1, "upkeep": 1, "tables": 1, "clickhouse": 1, "registry": 1, "cache": 1, "limits": 1, "log": 1, "places": 1, "runs": 1, "sharedlog": 1, "sharing": 1, "signin": 1, "tokens": 1, "values": 1}
	steps := []struct {
		name    string
		app     map[string]any
		mistake string
	}{
		{"the first", nil, ""},
		{"the same again", nil, ""},
		{"a cache of another size", map[string]any{"cache": map[string]any{"max_size": "2MiB"}}, ""},
		{"a registry that can't be opened", map[string]any{"registry": "sqlite:/dev/null/registry.db"}, "opening the registry"},
		{"a missing engine", map[string]any{"clickhouse": "", "engine_library": filepath.Join(folder, "none.so")}, "the embedded engine"},
		{"a value that Validate refuses", map[string]any{"limits": map[string]any{"concurrency": -1}}, "concurrency must be positive"},
		{"an unknown field", map[string]any{"clickhose": "x"}, "unknown field"},
		{"other limits", map[string]any{"limits": map[string]any{"rate": "5/s"}}, ""},
		{"a secret that is not set", map[string]any{"alerts": map[string]any{"webhook": "https://example.com/", "webhook_secret": "{env.NO_SECRET_HERE}0123456789abcdef"}}, "alerts webhook_secret"},
		{"a short secret", map[string]any{"alerts": map[string]any{"webhook_secret": "x"}}, "alerts webhook_secret: the secret must have"},
		{"another webhook", map[string]any{"alerts": map[string]any{"webhook": "https://example.com/", "private_webhooks": true}}, ""},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			err := caddy.Load(reloaded(folder, step.app), true)
			switch {
			case step.mistake == "" && err != nil:
				t.Fatal(err)
			case step.mistake != "" && (err == nil || !strings.Contains(err.Error(), step.mistake)):
				t.Errorf("the mistake is %v, want %s", err, step.mistake)
			}
			if diff := cmp.Diff(one, shares()); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReloadOfAlerts: alerts are checked according to the newest config.
func TestReloadOfAlerts(t *testing.T) {
	folder := t.TempDir()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct {
		name string
		app  map[string]any
		want alertSettings
	}{
		{"the first", nil, alertSettings{fresh: 5 * time.Minute}},
		{"no settled past", map[string]any{"cache": map[string]any{"settled_past": false}}, alertSettings{whole: true, fresh: 5 * time.Minute}},
		{"another ttl", map[string]any{"cache": map[string]any{"ttl": "1m"}}, alertSettings{fresh: time.Minute}},
		{"a rate of endpoints", map[string]any{"limits": map[string]any{"endpoint_rate": "5/s"}}, alertSettings{fresh: 5 * time.Minute, rate: registry.Rate{Queries: 5, Per: time.Second}}},
	} {
		if err := caddy.Load(reloaded(folder, step.app), true); err != nil {
			t.Fatal(err)
		}
		shared.Range(func(_, value any) bool {
			if p, ok := value.(*pooled[*alerts.Checker]); ok {
				e := p.value.Executor
				if got := (alertSettings{e.WholeOnly, e.QueryFresh, e.EndpointRate}); got != step.want {
					t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
				}
			}
			return true
		})
	}
}

// alertSettings returns the settings of the executor that checks alerts.
type alertSettings struct {
	whole bool
	fresh time.Duration
	rate  registry.Rate
}

// TestReloadKeepsTheGate: a backup that a reload does not end keeps others from beginning, whatever the reload changes.
func TestReloadKeepsTheGate(t *testing.T) {
	folder := t.TempDir()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	load := func(app map[string]any) (made *backups.Backups) {
		t.Helper()
		if err := caddy.Load(reloaded(folder, app), true); err != nil {
			t.Fatal(err)
		}
		shared.Range(func(_, value any) bool {
			if p, ok := value.(*pooled[*backups.Backups]); ok {
				made = p.value
			}
			return true
		})
		return made
	}
	before := load(nil)
	after := load(map[string]any{"limits": map[string]any{"max_execution_time": "7s"}})
	if before == after || before.Gate != after.Gate {
		t.Errorf("the reload keeps the Backups: %t, and their gate: %t", before == after, before.Gate == after.Gate)
	}
}

func init() { caddy.RegisterModule(new(failing)) }

// failing is an app of Caddy that can't start. It notes whether the app of this module had started before it.
type failing struct{ app *App }

var startedBefore atomic.Bool

func (*failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "failing", New: func() caddy.Module { return new(failing) }}
}

func (f *failing) Provision(ctx caddy.Context) error {
	app, err := ctx.App("analytics")
	if err != nil {
		return err
	}
	f.app = app.(*App)
	return nil
}

func (f *failing) Start() error {
	startedBefore.Store(f.app.runtime.Load() != nil)
	return errors.New("a port is taken")
}

func (*failing) Stop() error { return nil }

// TestReloadThatFailsElsewhere: if another app of a config can't start, the running config keeps its limits.
func TestReloadThatFailsElsewhere(t *testing.T) {
	folder := t.TempDir()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := caddy.Load(reloaded(folder, map[string]any{"limits": map[string]any{"concurrency": 7}}), true); err != nil {
		t.Fatal(err)
	}
	running, err := activeApp()
	if err != nil {
		t.Fatal(err)
	}
	rt := running.runtime.Load()
	limits, budget, spool := rt.Places.Limits(), rt.Runs.Budget.Load(), rt.imports.spool.Load()
	var config map[string]any
	if err := json.Unmarshal(reloaded(folder, map[string]any{
		"limits": map[string]any{"concurrency": 2, "import_size": "1MiB"}, "cache": map[string]any{"max_size": "2MiB"},
	}), &config); err != nil {
		t.Fatal(err)
	}
	config["apps"].(map[string]any)["failing"] = struct{}{}
	for tries := 0; !startedBefore.Load(); tries++ { // Caddy starts apps in any order
		if tries == 100 {
			t.Fatal("the other app always starts first")
		}
		if err := caddy.Load(jsontext.Append(nil, config), true); err == nil || !strings.Contains(err.Error(), "a port is taken") {
			t.Fatalf("the mistake is %v", err)
		}
		if diff := cmp.Diff(limits, rt.Places.Limits()); diff != "" {
			t.Fatalf("the places of the running config (-want +got):\n%s", diff)
		}
		if got := rt.Runs.Budget.Load(); got != budget {
			t.Fatalf("the memory of its background runs is %d, want %d", got, budget)
		}
		if got := rt.imports.spool.Load(); got != spool {
			t.Fatalf("the size of an import is limited to %d, want %d", got, spool)
		}
	}
}
