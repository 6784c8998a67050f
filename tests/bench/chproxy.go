package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// chproxy is a process of chproxy, which serves a cached query from its file cache. Behind it is a server that answers as ClickHouse would: chproxy asks
// for sessions, which the embedded engine does not have.
type chproxy struct {
	url    string // of the query
	behind *httptest.Server
	cmd    *exec.Cmd
}

// serveChproxy builds chproxy and starts it with a cached response of length bytes. The caller must stop it.
func serveChproxy(ctx context.Context, folder string, length int) (_ *chproxy, err error) {
	binary, err := buildChproxy(ctx, folder)
	if err != nil {
		return nil, err
	}
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}
	body := strings.Repeat("x", length-1) + "\n"
	starting := &chproxy{
		url: fmt.Sprintf("http://127.0.0.1:%d/?query=%s", ports[0], url.QueryEscape("SELECT text FROM bodies")),
		behind: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("query") == "SELECT 1" { // chproxy looks whether ClickHouse is up
				_, _ = io.WriteString(w, "1\n")
				return
			}
			_, _ = io.WriteString(w, body)
		})),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, starting.stop())
		}
	}()
	config := fmt.Sprintf(`hack_me_please: true # a client without a password, over HTTP
server: {http: {listen_addr: "127.0.0.1:%d", allowed_networks: ["127.0.0.0/8"]}}
caches: [{name: files, mode: file_system, file_system: {dir: %q, max_size: 100Mb}, expire: 1h}]
users: [{name: default, to_cluster: behind, to_user: default, cache: files}]
clusters: [{name: behind, nodes: [%q], users: [{name: default}]}]
`, ports[0], filepath.Join(folder, "chproxy-cache"), starting.behind.Listener.Addr())
	path := filepath.Join(folder, "chproxy.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of chproxy: %w", err)
	}
	starting.cmd = exec.CommandContext(ctx, binary, "-config", path)
	if err := starting.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting chproxy: %w", err)
	}
	for range 200 {
		if err = starting.hit(body); err == nil {
			return starting, nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return nil, err
}

// buildChproxy returns the path of the program, built from the module that tools/chproxy.mod requires.
func buildChproxy(ctx context.Context, folder string) (string, error) {
	root, err := harness.Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "chproxy")
	cmd := exec.CommandContext(ctx, "go", "build", "-modfile=tools/chproxy.mod", "-o", binary, "github.com/contentsquare/chproxy")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building chproxy: %w: %.500s", err, out)
	}
	return binary, nil
}

// hit returns an error if the query is not answered from the cache, with a body.
func (c *chproxy) hit(body string) error {
	resp, err := http.Get(c.url)
	if err != nil {
		return fmt.Errorf("requesting chproxy: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err := checked("requesting chproxy", harness.Answer{Status: resp.StatusCode, Raw: got}, err, http.StatusOK); err != nil {
		return err
	}
	if cache := resp.Header.Get("X-Cache"); string(got) != body || cache != "HIT" {
		return fmt.Errorf("chproxy answers with %d bytes, want %d, X-Cache: %q", len(got), len(body), cache)
	}
	return nil
}

// stop stops the process and the server behind it.
func (c *chproxy) stop() error {
	var err error
	if c.cmd != nil && c.cmd.Process != nil {
		err = terminate(c.cmd)
	}
	c.behind.Close()
	return err
}
