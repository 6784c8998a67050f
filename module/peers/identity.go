package peers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/nodes"
)

// Identity is the key and certificate of a server. They are never stored: each start makes new ones.
type Identity struct{ certificate tls.Certificate }

// NewIdentity makes a key and a certificate.
func NewIdentity() (*Identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "caddy-analytics"},
		// The record in the registry determines how long it is trusted. Clocks need not agree.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}}, nil
}

// Fingerprint returns the fingerprint of the certificate.
func (i *Identity) Fingerprint() nodes.Fingerprint { return fingerprint(i.certificate.Certificate[0]) }

func fingerprint(raw []byte) nodes.Fingerprint { return sha256.Sum256(raw) }

// Advertised returns the address at which others reach a listener: its own or, if it listens on all addresses, this machine's first private address,
// or else its first public one.
func Advertised(listener net.Listener) (string, error) {
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", fmt.Errorf("the address of the listener: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		return net.JoinHostPort(host, port), nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("the addresses of this machine: %w", err)
	}
	var found []net.IP
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			found = append(found, network.IP)
		}
	}
	if len(found) == 0 {
		return "", errors.New("this machine has no address that others could reach: set peers advertise")
	}
	slices.SortStableFunc(found, func(a, b net.IP) int { return rank(a) - rank(b) })
	return net.JoinHostPort(found[0].String(), port), nil
}

// rank orders addresses: private ones come first, and IPv4 before IPv6.
func rank(ip net.IP) int {
	r := 0
	if !ip.IsPrivate() {
		r += 2
	}
	if ip.To4() == nil {
		r++
	}
	return r
}
