package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// unlimited effectively removes the rate limit of keys.
const unlimited = "limits {\n\t\t\trate 100000/s\n\t\t}"

// open starts a server in a new subfolder of folder, and returns a client of its only project. extra are lines for the global
// analytics block. The caller must stop the client's server.
func open(folder, name string, extra ...string) (*harness.Client, error) {
	home := filepath.Join(folder, name)
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder: %w", err)
	}
	server, err := harness.Open(home, extra...)
	if err != nil {
		return nil, err
	}
	var project struct{ ID int64 }
	var key struct{ Key string }
	err = server.Ask("/analytics/projects", map[string]any{"name": "bench", "timezone": "UTC"}, &project)
	if err == nil {
		err = server.Ask("/analytics/keys", map[string]any{"project": project.ID, "scopes": []string{"*"}, "kind": "personal"}, &key)
	}
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return server.Client(project.ID, key.Key), nil
}

// startEngine starts an engine on a data folder. The caller must close it.
func startEngine(ctx context.Context, folder string) (*embedded.Engine, error) {
	binary, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	return embedded.Start(ctx, embedded.Config{DataDir: folder, Command: []string{binary, embedded.Subcommand}}, zap.NewNop())
}
