package module

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
)

// TestKeys: a reload that changes a setting replaces these shares.
func TestKeys(t *testing.T) {
	const (
		rates   = "sharing tokens limits alerts upkeep"
		results = "cache plans alerts imports backups deletions upkeep values"
		rows    = "warehouse log cohorts tables " + results
	)
	tests := []struct {
		name   string
		change func(*App)
		want   string
	}{
		{"nothing", func(*App) {}, ""},
		{"data_dir", func(a *App) { a.DataDir = "/other" }, "sharedlog folder capture gate engine registry common signin runs fleet places " + rates + " " + rows},
		{"engine_library", func(a *App) { a.EngineLibrary = "x.so" }, "engine"},
		{"registry", func(a *App) { a.Registry = "sqlite:x" }, "registry common signin runs fleet places " + rates + " " + rows},
		{"clickhouse_cluster", func(a *App) { a.Cluster = "c" }, rows},
		{"clickhouse_shards", func(a *App) { a.Shards = map[string]string{"s": "http://s/"} }, rows},
		{"peers listen", func(a *App) { a.Peers = &PeersConfig{Listen: ":9443"} }, "fleet plans " + rates},
		{"cache max_size", func(a *App) { a.Cache.MaxSize = 2 << 20 }, results},
		{"cache stale", func(a *App) { a.Cache.Stale = new(caddy.Duration(1)) }, results},
		{"cache settled_past_on_disk", func(a *App) { a.Cache.SettledPastOnDisk = true }, results},
		{"cache ttl", func(a *App) { a.Cache.TTL = 1 }, "plans alerts"},
		{"cache settled_past", func(a *App) { a.Cache.SettledPast = new(bool) }, "alerts"},
		{"limits max_execution_time", func(a *App) { a.Limits.MaxExecutionTime = 1 }, rows},
		{"limits max_memory", func(a *App) { a.Limits.MaxMemory = 1 << 30 }, rows},
		{"limits concurrency", func(a *App) { a.Limits.Concurrency = 3 }, rows},
		{"limits places", func(a *App) { a.Limits.Places = 3 }, rows},
		{"limits rate", func(a *App) { a.Limits.Rate.Queries = 5 }, "limits alerts upkeep"},
		{"limits endpoint_rate", func(a *App) { a.Limits.EndpointRate.Queries = 5 }, "alerts"},
		{"limits import_size", func(a *App) { a.Limits.ImportSize = 1 << 20 }, ""},
		{"capture buffer", func(a *App) { a.Capture.Buffer = 64 << 20 }, ""},
		{"alerts webhook", func(a *App) { a.Alerts.Webhook = "https://example.com/" }, "alerts"},
		{"public_url", func(a *App) { a.PublicURL = "https://example.com" }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after := keysAfter(func(*App) {}), keysAfter(tt.change)
			var got []string
			for name, key := range after {
				if before[name] != key {
					got = append(got, name)
				}
			}
			want := slices.Compact(slices.Sorted(strings.FieldsSeq(tt.want)))
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replaced (-want +got):\n%s", diff)
			}
		})
	}
	seen := map[string]string{}
	for name, key := range keysAfter(func(*App) {}) {
		word, _, _ := strings.Cut(key, " ")
		if seen[word] != "" {
			t.Errorf("%s and %s have keys that begin with %s", name, seen[word], word)
		}
		seen[word] = name
	}
}

// keysAfter returns the keys of a config after a change, by their fields.
func keysAfter(change func(*App)) map[string]string {
	a := &App{ClickHouse: "http://127.0.0.1:1/default", DataDir: "/data"}
	a.setDefaults()
	change(a)
	list := map[string]string{}
	k := reflect.ValueOf(*a.keys(a.ClickHouse, "source"))
	for _, f := range reflect.VisibleFields(k.Type()) {
		if !f.Anonymous {
			list[f.Name] = k.FieldByIndex(f.Index).String()
		}
	}
	return list
}
