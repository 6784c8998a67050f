// Package e2e tests the built server from outside, on the real engine.
package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// server is shared by the tests that leave it running; each makes its own projects.
var server *harness.Server

// demo is a project with the events of demo/commits.ndjson.gz.
var demo *harness.Client

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	folder, err := os.MkdirTemp("", "analytics-e2e-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	if server, err = harness.Open(folder, "limits {\n\t\t\trate 100000/s\n\t\t}"); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	return m.Run(), nil
}

// demoFile is the path of the demo's events.
func demoFile(tb testing.TB) string {
	tb.Helper()
	root, err := harness.Root()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(root, "demo", "commits.ndjson.gz")
}

// demoProject imports the demo's events once.
func demoProject(tb testing.TB) *harness.Client {
	tb.Helper()
	if demo == nil {
		id, key := server.Project(tb, "demo")
		server.MustCommand(tb, nil, nil, "import", "--project", strconv.FormatInt(id, 10), demoFile(tb))
		demo = server.Client(id, key)
	}
	return demo
}

// newProject makes an empty project.
func newProject(tb testing.TB) *harness.Client {
	tb.Helper()
	id, key := server.Project(tb, tb.Name())
	return server.Client(id, key)
}

// importLines imports NDJSON into a client's project.
func importLines(tb testing.TB, c *harness.Client, lines string) {
	tb.Helper()
	c.Server.MustCommand(tb, nil, stringReader(lines), "import", "--project", strconv.FormatInt(c.Project, 10), "-")
}
