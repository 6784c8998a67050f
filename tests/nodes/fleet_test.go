package nodes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// unlimited takes the rate limit of keys away, in effect.
const unlimited = "limits {\n\t\t\trate 100000/s\n\t\t}"

// fleet is some nodes with what they share.
type fleet struct {
	postgres *postgrestest.Server
	hosts    []*harness.Relay // each passes on to the one engine behind all of them
	nodes    []*harness.Server

	mu    sync.Mutex
	away  time.Time // since when the registry's database is away; zero while it is there
	again time.Time // when it came back
}

// startFleet starts nodes that find one another, and what they share.
func startFleet(t *testing.T, nodes, hosts int) *fleet {
	t.Helper()
	f := &fleet{postgres: postgrestest.New(t)}
	engine := embeddedtest.New(t)
	var dsn string
	dsn, f.hosts = harness.Relays(t, engine.DSN(), hosts)
	registry := f.postgres.Database(t)
	for range nodes {
		ports, err := harness.FreePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		peers := fmt.Sprintf("peers {\n\t\t\tlisten 127.0.0.1:%d\n\t\t}", ports[0])
		f.nodes = append(f.nodes, harness.Start(t, "clickhouse "+dsn, "registry "+registry, peers, unlimited))
	}
	return f
}

// unplug ends the registry's database without warning.
func (f *fleet) unplug() error {
	f.mu.Lock()
	f.away = time.Now()
	f.mu.Unlock()
	return f.postgres.Kill()
}

// plug starts the registry's database again.
func (f *fleet) plug() error {
	err := f.postgres.Run()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.again = time.Time{}, time.Now()
	return err
}

// registryAway reports whether the registry's database was away at some time after a moment.
func (f *fleet) registryAway(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.away.IsZero() || f.again.After(since)
}

// killEngine ends the process of the engine without warning. It is the only child of the test that has the engine's folder open, and is not there for
// a moment after it was killed before.
func killEngine(t *testing.T, folder string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		files, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			_, rest, _ := strings.Cut(string(raw), ") ")
			fields := strings.Fields(rest)
			if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
				continue
			}
			place := filepath.Base(filepath.Dir(file))
			command, err := os.ReadFile(filepath.Join("/proc", place, "cmdline"))
			if err != nil || !strings.Contains(string(command), folder) {
				continue
			}
			pid, err := strconv.Atoi(place)
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		}
		return errors.New("no engine runs")
	})
}
