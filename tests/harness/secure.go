package harness

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Secure adds sites with certificates of Caddy's local authority to the server's config, and returns a client config that
// trusts that authority. Each site is the text of a Caddyfile block for one address of localhost.
func (s *Server) Secure(sites map[string]string) (*tls.Config, error) {
	var config strings.Builder
	config.WriteString(strings.Replace(s.Config(""), "auto_https off", "auto_https disable_redirects\n\tskip_install_trust", 1))
	for address, site := range sites {
		fmt.Fprintf(&config, "https://%s {\n\ttls internal\n%s\n}\n", address, site)
	}
	if err := os.WriteFile(s.Caddyfile(), []byte(config.String()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Caddyfile: %w", err)
	}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	root, err := os.ReadFile(filepath.Join(s.Folder, "xdg", "caddy", "pki", "authorities", "local", "root.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		return nil, errors.New("the authority's certificate is invalid")
	}
	trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	for address := range sites {
		if err := awaitCertificate(address, trust); err != nil {
			return nil, err
		}
	}
	return trust, nil
}

// awaitCertificate waits for the certificate that Caddy issues in the background.
func awaitCertificate(address string, trust *tls.Config) error {
	limit := time.After(2 * time.Minute)
	for {
		conn, err := tls.Dial("tcp", address, trust)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-limit:
			return fmt.Errorf("no certificate for %s within two minutes: %w", address, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
