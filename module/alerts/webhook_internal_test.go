package alerts

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "2001:4860:4860::8888": true, "::ffff:8.8.8.8": true, "172.32.0.1": true,
		"127.0.0.1": false, "127.8.9.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "::ffff:192.168.1.1": false, "100.64.0.1": false, "169.254.169.254": false,
		"fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "fec0::1": false, "ff02::1": false, "224.0.0.1": false, "255.255.255.255": false,
		"240.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001::1": false,
		"2001:db8::1": false, "::127.0.0.1": false, "100::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %t", text, got)
		}
	}
}

// TestSign compares with the example of the Standard Webhooks specification's libraries.
func TestSign(t *testing.T) {
	got := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWebhookMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/a?b=c": "", "http://[::1]:80": "",
		"ftp://example.com": "Enter a valid URL, such as https://example.com/alerts.", "https://": "Enter a valid URL, such as https://example.com/alerts.",
		"example.com": "Enter a valid URL, such as https://example.com/alerts.", "https://u:p@example.com": "The URL must not contain a user name or password.",
		"https://example.com/" + strings.Repeat("a", 2000): "The URL is 2020 bytes long; the limit is 2000.",
	} {
		if got := CheckURL(text); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("%.40s: %v", text, got)
		}
	}
	for text, want := range map[string]string{
		"0123456789abcdef": "", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "", "short": "The secret must have 16 to 256 characters.",
		"whsec_not base64 at all": "What follows whsec_ must be base64.",
	} {
		if got := CheckSecret(text); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestPost sends messages to servers that answer in different ways.
func TestPost(t *testing.T) {
	secret, body := "0123456789abcdef", `{"a":1}`
	reached := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		default:
			got, _ := io.ReadAll(r.Body)
			at := time.Unix(0, 0)
			if sent, err := time.ParseDuration(r.Header.Get("Webhook-Timestamp") + "s"); err == nil {
				at = at.Add(sent)
			}
			if string(got) != body || r.Method != http.MethodPost || r.Header.Get("Webhook-Signature") != sign(secret, r.Header.Get("Webhook-Id"), at, got) {
				w.WriteHeader(http.StatusBadRequest)
			}
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{
		"/ok": "", "/moved": "the webhook answered 307", "/gone": errGone.Error(), "/broken": "the webhook answered 502", "/endless": "",
	} {
		err := post(t.Context(), newTransport(true), server.URL+path, secret, "id", []byte(body))
		if (err == nil) != (want == "") || err != nil && reason(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if reached > 0 {
		t.Error("a redirect was followed")
	}
}

// TestPostNowherePrivate: an address in the server's own network is refused when dialing, whatever its name.
func TestPostNowherePrivate(t *testing.T) {
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "2130706433", "127.1"} {
		t.Setenv("HTTP_PROXY", server.URL)
		err := post(t.Context(), newTransport(false), "http://"+host+port, "", "id", nil)
		if err == nil {
			t.Errorf("%s was reached", host)
		}
	}
	if err := post(t.Context(), newTransport(false), server.URL, "", "id", nil); !errors.Is(err, errNotPublic) {
		t.Errorf("%v, want %v", err, errNotPublic)
	}
	if reached > 0 {
		t.Error("the server was reached")
	}
}

// TestNextMessage: a message is sent when it is due, and when it waits for longer than any can.
func TestNextMessage(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for wait, want := range map[time.Duration]bool{-time.Hour: true, 0: true, time.Second: false, longestRetry: false, 365 * 24 * time.Hour: true} {
		a := &registry.Alert{Deliveries: []registry.Delivery{{NextTryAt: now.Add(wait)}}}
		if got := nextMessage(a, now) != nil; got != want {
			t.Errorf("in %s: %t, want %t", wait, got, want)
		}
	}
}

func TestSettle(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	down := errors.New("down")
	for _, tt := range []struct {
		name   string
		tries  int
		age    time.Duration
		err    error
		after  time.Duration // until it is sent again; 0 for never
		result string
	}{
		{"delivered", 0, 0, nil, 0, delivered},
		{"down", 0, 0, down, 5 * time.Second, retried},
		{"down again", 3, time.Minute, down, 40 * time.Second, retried},
		{"down for long", 40, 20 * time.Hour, down, time.Hour, retried},
		{"down for too long", 40, 23*time.Hour + time.Minute, down, 0, givenUp},
		{"gone", 0, 0, errGone, 0, givenUp},
		{"taken away", 0, 0, errNoWebhook, 0, givenUp},
		{"not public", 0, 0, errNotPublic, 5 * time.Second, retried},
	} {
		sent, result := settle(&registry.Delivery{Tries: tt.tries, CheckedAt: now.Add(-tt.age)}, tt.err, now)
		var after time.Duration
		if !sent.NextTryAt.IsZero() {
			after = sent.NextTryAt.Sub(now)
		}
		if after != tt.after || result != tt.result || (sent.Error == "") != (tt.err == nil) {
			t.Errorf("%s: %v %s %+v", tt.name, after, result, sent)
		}
	}
}

// transport sends nothing over a network.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
