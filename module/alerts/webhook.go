package alerts

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// sendTimeout is the longest that a webhook may take to answer.
	sendTimeout = 10 * time.Second
	// maxReadBytes is how much of an answer is read; nobody looks at it.
	maxReadBytes = 64 << 10
	// maxURL is the longest address of a webhook, in bytes.
	maxURL = 2000
)

// CheckURL reports what is wrong with the address of a webhook. Whether it is public is only known when something is sent there.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("Enter a valid URL, such as https://example.com/alerts.") //nolint:staticcheck // shown to users as it is
	case u.User != nil:
		return errors.New("The URL must not contain a user name or password.") //nolint:staticcheck // shown to users as it is
	case len(text) > maxURL:
		return fmt.Errorf("The URL is %d bytes long; the limit is %d.", len(text), maxURL) //nolint:staticcheck // shown to users as it is
	}
	return nil
}

// The bounds of a secret that signs messages.
const (
	minSecret    = 16
	maxSecret    = 256
	secretPrefix = "whsec_"
)

// CheckSecret reports what is wrong with a secret that signs messages.
func CheckSecret(secret string) error {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if ok {
		if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
			return errors.New("What follows whsec_ must be base64.") //nolint:staticcheck // shown to users as it is
		}
	}
	if len(secret) < minSecret || len(secret) > maxSecret {
		return fmt.Errorf("The secret must have %d to %d characters.", minSecret, maxSecret) //nolint:staticcheck // shown to users as it is
	}
	return nil
}

// secretBytes returns the signing key: the decoded base64 after whsec_, or else the secret itself.
func secretBytes(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if key, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// sign returns the signature of a message in the format of the Standard Webhooks specification.
func sign(secret, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secretBytes(secret))
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

var (
	errNotPublic = errors.New("the address is not public")
	errGone      = errors.New("the webhook answered 410 Gone")
)

// newTransport returns a transport that sends to public addresses only, or anywhere. It uses no proxy, which would resolve the name itself, and
// follows no redirects.
func newTransport(anywhere bool) http.RoundTripper {
	dialer := &net.Dialer{Timeout: sendTimeout}
	if !anywhere {
		// Checks the address at the time of dialing: an earlier check could be outdated.
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(address); err != nil || !isPublic(at.Addr()) {
				return errNotPublic
			}
			return nil
		}
	}
	return &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: sendTimeout,
		ResponseHeaderTimeout: sendTimeout, MaxResponseHeaderBytes: maxReadBytes,
	}
}

// reserved are the addresses that look global but are not on the public internet, or that lead to others.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var publicIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// isPublic reports whether an address is on the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !publicIPv6.Contains(a) {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// post sends a message once. An error means that it was not delivered; errGone, that it never will be.
func post(ctx context.Context, over http.RoundTripper, to, secret, id string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "caddy-analytics")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if secret != "" {
		req.Header.Set("Webhook-Signature", sign(secret, id, now, body))
	}
	res, err := over.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxReadBytes)) // the body does not matter
	switch {
	case res.StatusCode == http.StatusGone:
		return errGone
	case res.StatusCode < 200 || res.StatusCode > 299:
		return fmt.Errorf("the webhook answered %d", res.StatusCode)
	}
	return nil
}
