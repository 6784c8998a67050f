package e2e_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// publicSite is the site of docs/caddyfile.md, with its own access log.
const publicSite = `
	header {
		Strict-Transport-Security "max-age=31536000"
		X-Content-Type-Options nosniff
	}
	log {
		output file %s
	}
	analytics
`

// secured also serves the API over HTTPS, and returns the site's URL, TLS settings that trust it, and its access log.
func secured(t *testing.T, s *harness.Server) (url string, trust *tls.Config, accessLog string) {
	t.Helper()
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("localhost:%d", ports[0])
	accessLog = filepath.Join(s.Folder, "access.log")
	if trust, err = s.Secure(map[string]string{address: fmt.Sprintf(publicSite, accessLog)}); err != nil {
		t.Fatal(err)
	}
	return "https://" + address, trust, accessLog
}

// TestTLS runs an endpoint over each version of HTTP, and searches the access log for secrets.
func TestTLS(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "public")
	c := s.Client(id, key)
	if answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "answer", "query": map[string]any{"kind": "HogQLQuery", "query": "select 42 as n"},
	}); answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	url, trust, accessLog := secured(t, s)
	overHTTP3 := &http3.Transport{TLSClientConfig: trust}
	t.Cleanup(func() { _ = overHTTP3.Close() }) // the server goes away as well
	var one, two http.Protocols
	one.SetHTTP1(true)
	two.SetHTTP2(true)
	for _, version := range []struct {
		name   string
		client http.RoundTripper
	}{
		{"HTTP/1.1", &http.Transport{TLSClientConfig: trust, Protocols: &one, DisableKeepAlives: true}},
		{"HTTP/2.0", &http.Transport{TLSClientConfig: trust, Protocols: &two, DisableKeepAlives: true}},
		{"HTTP/3.0", overHTTP3},
	} {
		t.Run(version.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/api/projects/%d/endpoints/answer/run", url, id), strings.NewReader(`{"limit":10}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			answer, err := version.client.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Proto != version.name || answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), `{"results":[[42]]`) {
				t.Errorf("%s answers %d %s", answer.Proto, answer.StatusCode, body)
			}
			for name, want := range map[string]string{
				"Strict-Transport-Security": "max-age=31536000", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json",
			} {
				if got := answer.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
	t.Run("old TLS", func(t *testing.T) {
		old := trust.Clone()
		old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		if conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), old); err == nil {
			_ = conn.Close()
			t.Error("a connection with TLS 1.1 is taken")
		}
	})
	t.Run("access log", func(t *testing.T) {
		var log string
		harness.Eventually(t, time.Minute, func() error { // a line is written when its request has ended
			raw, err := os.ReadFile(accessLog)
			if err != nil {
				return err
			}
			if log = string(raw); strings.Count(log, "endpoints/answer/run") != 3 {
				return fmt.Errorf("three runs are logged as:\n%s", log)
			}
			return nil
		})
		if !strings.Contains(log, "REDACTED") || strings.Contains(log, key[:12]) {
			t.Errorf("a hidden key is logged as:\n%s", log)
		}
	})
}
