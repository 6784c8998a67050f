package module

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FuzzToken: only the text of a signed token is accepted.
func FuzzToken(f *testing.F) {
	w := fencedWorld(f)
	key, _ := w.NewKey(f, w.Project.ID, registry.Secret, "endpoint:read")
	good := w.forge(f, key, func(*api.Claims) {})
	snap := w.Registry.Snapshot()
	if err := w.Registry.Close(); err != nil { // its background work would look like new coverage to the fuzzer
		f.Fatal(err)
	}
	parts := strings.Split(good, ".")
	f.Add(good)
	f.Add(good + "=")
	f.Add(parts[0] + "." + parts[1] + ".")
	f.Add("eyJhbGciOiJub25lIn0." + parts[1] + ".")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := w.Tokens.Find(snap, text)
		if (err == nil) != (text == good) || (token == nil) != (err != nil) {
			t.Errorf("find(%q) = %v, %v", text, token, err)
		}
	})
}

// FuzzParseOrigin: each origin has only one spelling.
func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"https://App.example.com:443", "http://[::1]:80", "http://a:080", "https://a%20b", "https://ä.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		origin, err := api.ParseOrigin(text)
		if err != nil {
			return
		}
		if again, err := api.ParseOrigin(origin); err != nil || again != origin {
			t.Errorf("parseOrigin(%q) = %q, which is then %q, %v", text, origin, again, err)
		}
	})
}
