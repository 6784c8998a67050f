package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// certificate returns a certificate for 127.0.0.1, which is its own authority, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "database"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8)
}

// serveTLS gives a server a certificate.
func serveTLS(t *testing.T, admin *pgx.Conn, cert, key string) {
	t.Helper()
	var folder string
	if err := admin.QueryRow(t.Context(), "SHOW data_directory").Scan(&folder); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string { // the server has to own it, and nobody else may read it
		return fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077 && cat > %s'", strings.TrimSpace(text), filepath.Join(folder, name))
	}
	for _, sql := range []string{
		file("server.crt", cert), file("server.key", key),
		"ALTER SYSTEM SET ssl = on",
		"SELECT pg_reload_conf()",
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTLS lets two nodes reach their registry only by TLS, and refuses a server whose certificate is not trusted.
func TestTLS(t *testing.T) {
	server := postgrestest.New(t)
	plain := server.Database(t)
	admin := connect(t, plain)
	cert, key := certificate(t)
	serveTLS(t, admin, cert, key)
	roots, _ := certificate(t)
	dir := t.TempDir()
	known, strange := filepath.Join(dir, "known.pem"), filepath.Join(dir, "strange.pem")
	for path, text := range map[string]string{known: cert, strange: roots} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := func(roots string) string {
		return strings.Replace(plain, "sslmode=disable", "sslmode=verify-full&sslrootcert="+roots, 1)
	}
	harness.Eventually(t, time.Minute, func() error { // the server reads its configuration anew
		conn, err := pgx.Connect(t.Context(), with(known))
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	})
	writer, reader := open(t, with(known)), open(t, with(known))
	revision, err := writer.Write(t.Context(), &registry.Write{Put: []registry.Record{{Project: 1, Kind: "a", ID: "x", Data: []byte(`1`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := reader.Load(t.Context(), 0); err != nil || changes.Revision != revision || len(changes.Records) != 1 {
		t.Errorf("the other node reads %+v, %v, want revision %d", changes, err, revision)
	}
	var all, encrypted int
	if err := admin.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE s.ssl) FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) "+
		"WHERE a.datname = current_database() AND a.pid != pg_backend_pid()").Scan(&all, &encrypted); err != nil || all < 2 || encrypted != all {
		t.Errorf("of %d connections %d are encrypted: %v", all, encrypted, err)
	}
	s, err := postgres.Open(context.WithoutCancel(t.Context()), with(strange))
	if err == nil || errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with a strange certificate: Open() = %v, %v", s, err)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error has the password: %v", err)
	}
}
