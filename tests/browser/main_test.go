// Package browser_test follows README and docs/dashboards.md like a reader: it runs the commands in a shell, and opens the page in a headless
// Chromium.
package browser_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// server is shared by the tests; each makes its own projects.
var server *harness.Server

// secure are the server's sites over HTTPS.
var secure struct {
	api     string // the address of the API's site, host:port
	page    string // the address of a page's site, whose backend listens on its own port
	backend int
	root    string // the file with the certificate of their authority
	issuer  string // the hash of the public key that signed their certificates, as Chromium expects it
}

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	folder, err := os.MkdirTemp("", "analytics-browser-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	if server, err = harness.Open(folder); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := serveSecurely(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, closeDemo()) }()
	defer closeBrowser()
	return m.Run(), nil
}

func serveSecurely() error {
	ports, err := freeport.Find(3)
	if err != nil {
		return err
	}
	secure.api, secure.page, secure.backend = fmt.Sprintf("localhost:%d", ports[0]), fmt.Sprintf("localhost:%d", ports[1]), ports[2]
	secure.root = filepath.Join(server.Folder, "xdg", "caddy", "pki", "authorities", "local", "root.crt")
	trust, err := server.Secure(map[string]string{
		secure.api: "\tanalytics", secure.page: fmt.Sprintf("\treverse_proxy localhost:%d", secure.backend),
	})
	if err != nil {
		return err
	}
	conn, err := tls.Dial("tcp", secure.api, trust)
	if err != nil {
		return fmt.Errorf("looking at the certificate: %w", err)
	}
	defer func() { _ = conn.Close() }() // it was looked at
	key := sha256.Sum256(conn.ConnectionState().VerifiedChains[0][1].RawSubjectPublicKeyInfo)
	secure.issuer = base64.StdEncoding.EncodeToString(key[:])
	return nil
}
