package routes_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FuzzToken: only the text of a signed token is accepted.
func FuzzToken(f *testing.F) {
	w := apitest.NewWithEndpoints(f)
	key, _ := w.NewKey(f, w.Project.ID, registry.Secret, "endpoint:read")
	good := forge(f, w, key, func(*api.Claims) {})
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
