package routes_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const site = "https://app.example.com"

func TestTokenRuns(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.RememberRuns(t, "acme", "globex")
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	acme := w.NewToken(t, secret, `{"endpoints": ["mine"], "variables": {"customer": "acme"}, "origins": ["HTTPS://App.Example.com:443"]}`)
	globex := w.NewToken(t, secret, `{"endpoints": ["mine", "trend", "mine"], "variables": {"customer": "globex"}, "expires_in": 60}`)
	trend := w.NewToken(t, secret, `{"endpoints": ["trend"]}`)
	const denied = "403 You do not have access to this endpoint."
	for _, tt := range []struct {
		name, token, endpoint, body, origin string
		want, allowed                       string
	}{
		{"from its site", acme, "mine", "", site, "[[0 row of acme]]", site},
		{"again", acme, "mine", "", site, "[[0 row of acme]]", site},
		{"its own value", acme, "mine", `{"variables": {"customer": "acme"}}`, site, "[[0 row of acme]]", site},
		{"another value", acme, "mine", `{"variables": {"customer": "globex"}}`, site, "403 Variable customer: this key fixes its value.", site},
		{"another endpoint", acme, "trend", "", site, denied, site},
		{"another site", acme, "mine", "", "https://evil.example.com", "403 This token cannot be used from this origin.", ""},
		{"a site below it", acme, "mine", "", "https://x.app.example.com", "403 This token cannot be used from this origin.", ""},
		{"without encryption", acme, "mine", "", "http://app.example.com", "403 This token cannot be used from this origin.", ""},
		{"no site", acme, "mine", "", "", "403 This token cannot be used from this origin.", ""},
		{"a page without an origin", acme, "mine", "", "null", "403 This token cannot be used from this origin.", ""},
		{"a token for no site, from one", globex, "mine", "", site, "[[1 row of globex]]", ""},
		{"a token for no site, from none", globex, "mine", "", "", "[[1 row of globex]]", ""},
		{
			"another breakdown", trend, "trend", `{"filters_override": {"breakdown_filter": {"breakdown": "email", "breakdown_type": "person"}}}`, "",
			"403 This key is limited to endpoints as they are, so filters_override cannot be used with it.", "",
		},
		{"debugging", globex, "mine", `{"debug": true}`, "", "[[1 row of globex]]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.origin != "" {
				header = []string{"Origin", tt.origin}
			}
			answer := w.RunWith(t, tt.token, tt.endpoint, tt.body, header...)
			if diff := cmp.Diff([2]string{tt.want, tt.allowed}, [2]string{apitest.OutcomeOf(t, answer), answer.Header().Get("Access-Control-Allow-Origin")}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(answer.Header().Get("Vary"), "Origin") && (tt.origin != "" && tt.token == acme) {
				t.Errorf("Vary: %q", answer.Header().Get("Vary"))
			}
			if strings.Contains(answer.Body.String(), "SELECT") {
				t.Errorf("shows SQL: %s", answer.Body)
			}
		})
	}
}

// TestTokensRunEndpointsAlone requests everything else with a token. That a token can't issue another is a row of TestIssueMistakes.
func TestTokensRunEndpointsAlone(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read", "query:read")
	text := w.NewToken(t, secret, `{"endpoints": ["open"]}`)
	snap := w.Registry.Snapshot()
	token, err := w.Tokens.Find(snap, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range w.API.Routes() {
		at := rt.Address()
		if at.Resource == "endpoint_tokens" {
			continue
		}
		if at.Name == ":name" {
			at.Name = "open"
		}
		if _, err := api.Authorize(snap, &token.Key, "@current", &at, &rt); (err == nil) != runsEndpoint(at) {
			t.Errorf("%s %v with a token: %v", rt.Method, at, err)
		}
	}
}

// forge signs claims as the server would, whatever they are.
func forge(tb testing.TB, w *apitest.World, key *registry.Key, change func(*api.Claims)) string {
	tb.Helper()
	secret, err := w.Registry.TokenSecret(tb.Context(), w.Project.ID, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	claims := &api.Claims{
		RegisteredClaims: jwt.RegisteredClaims{ID: tb.Name(), ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))},
		Project:          w.Project.ID, Key: key.ID, Endpoints: []string{"mine"}, Variables: json.RawMessage(`{"customer":"acme"}`),
	}
	change(claims)
	text, err := api.Sign(claims, secret, key)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// TestForgedTokens sends tokens that are not ours, and tokens that we would never issue.
func TestForgedTokens(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.RememberRuns(t, "acme", "globex")
	key, _ := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"}, "mine", "open")
	person, _ := w.NewKey(t, w.Project.ID, registry.Personal, "endpoint:read")
	other := w.NewProject(t)
	otherKey, _ := w.NewKey(t, other.ID, registry.Secret, "endpoint:read")
	otherSecret, err := w.Registry.TokenSecret(t.Context(), other.ID, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	good := forge(t, w, key, func(*api.Claims) {})
	secret := w.Registry.Snapshot().TokenSecrets(w.Project.ID)[0]
	parts := strings.Split(good, ".")
	encode := base64.RawURLEncoding.EncodeToString
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	unsigned := func(header string) string { return encode([]byte(header)) + "." + parts[1] + "." }
	signed := func(method jwt.SigningMethod, with any, kid any) string {
		var claims api.Claims
		if err := json.Unmarshal(payload, &claims); err != nil {
			t.Fatal(err)
		}
		token := jwt.NewWithClaims(method, &claims)
		token.Header["kid"] = kid
		text, err := token.SignedString(with)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const invalid = "401 The token is invalid."
	for _, tt := range []struct{ name, token, want string }{
		{"ours", good, "[[0 row of acme]]"},
		{"another value", parts[0] + "." + encode([]byte(strings.Replace(string(payload), "acme", "globex", 1))) + "." + parts[2], invalid},
		{"another signature", parts[0] + "." + parts[1] + "." + encode(make([]byte, 32)), invalid},
		{"half a signature", good[:len(good)-20], invalid},
		{"no signature", unsigned(`{"alg":"none","kid":"` + secret.ID + `"}`), invalid},
		{"no signature, in capitals", unsigned(`{"alg":"None","kid":"` + secret.ID + `"}`), invalid},
		{"none with its signature", strings.TrimSuffix(unsigned(`{"alg":"none","kid":"`+secret.ID+`"}`), ".") + "." + parts[2], invalid},
		{"another algorithm", signed(jwt.SigningMethodHS512, api.SigningKey(secret, key), secret.ID), invalid},
		{"the bare secret", signed(jwt.SigningMethodHS256, secret.Secret[:], secret.ID), invalid},
		{"an empty secret", signed(jwt.SigningMethodHS256, []byte{}, secret.ID), invalid},
		{"the hash of the key", signed(jwt.SigningMethodHS256, key.Hash[:], secret.ID), invalid},
		{"another project's secret", signed(jwt.SigningMethodHS256, api.SigningKey(otherSecret, key), otherSecret.ID), invalid},
		{"another project's secret by our name", signed(jwt.SigningMethodHS256, api.SigningKey(otherSecret, key), secret.ID), invalid},
		{"no secret named", signed(jwt.SigningMethodHS256, api.SigningKey(secret, key), nil), invalid},
		{"a secret that is a number", signed(jwt.SigningMethodHS256, api.SigningKey(secret, key), 1), invalid},
		{"another project's key", forge(t, w, otherKey, func(*api.Claims) {}), invalid},
		{"another project's key in its project", forge(t, w, otherKey, func(c *api.Claims) { c.Project = other.ID }), invalid},
		{"a personal key", forge(t, w, person, func(*api.Claims) {}), invalid},
		{"no key", forge(t, w, key, func(c *api.Claims) { c.Key = "" }), invalid},
		{"no end", forge(t, w, key, func(c *api.Claims) { c.ExpiresAt = nil }), invalid},
		{"its end", forge(t, w, key, func(c *api.Claims) { c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(-time.Second)) }), "401 The token has expired."},
		{"no endpoints", forge(t, w, key, func(c *api.Claims) { c.Endpoints = nil }), invalid},
		{"more endpoints than its key", forge(t, w, key, func(c *api.Claims) { c.Endpoints = []string{"mine", "trend"} }), invalid},
		{"another value than its key", forge(t, w, key, func(c *api.Claims) { c.Variables = json.RawMessage(`{"customer":"globex"}`) }), invalid},
		{"no variables", forge(t, w, key, func(c *api.Claims) { c.Variables = nil }), invalid},
		{"other variables than its key", forge(t, w, key, func(c *api.Claims) { c.Variables = json.RawMessage(`{"seats":5}`) }), invalid},
		{"no rate", forge(t, w, key, func(c *api.Claims) { c.Rate = "0/m" }), invalid},
		{"very long", "eyJ" + strings.Repeat("x", 9<<10) + ".x.x", invalid},
		{"no JSON", "eyJx.x.x", invalid},
		{"a key with dots", "eyJ.phs_.x", invalid},
		{"two parts", parts[0] + "." + parts[1], "401 Personal API key found in request Authorization header is invalid."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // verified, then remembered
				if diff := cmp.Diff(tt.want, apitest.OutcomeOf(t, w.RunWith(t, tt.token, "mine", ""))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	as := *w
	as.Secret = good
	path := fmt.Sprintf("/api/projects/%d/endpoints/mine/run", other.ID)
	if answer := as.Send(t, http.MethodPost, path, ""); answer.Code != http.StatusForbidden {
		t.Errorf("a token on another project's address: %d %s", answer.Code, answer.Body)
	}
}

// TestTokensEndWithTheirKey: nothing outlives the key and the secret that it comes from.
func TestTokensEndWithTheirKey(t *testing.T) {
	const works, revoked = "[[0 row of acme]]", "401 The token was revoked."
	rotate := func(revoke bool) func(*testing.T, *apitest.World, *registry.Key) {
		return func(t *testing.T, w *apitest.World, _ *registry.Key) {
			t.Helper()
			if _, err := w.Registry.RotateTokenSecret(t.Context(), w.Project.ID, revoke, apitest.Began); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*testing.T, *apitest.World, *registry.Key)
		want string
	}{
		{"nothing", func(*testing.T, *apitest.World, *registry.Key) {}, works},
		{"the key is revoked", func(t *testing.T, w *apitest.World, key *registry.Key) {
			t.Helper()
			if _, err := w.Registry.RevokeKey(t.Context(), key.ID, apitest.Began); err != nil {
				t.Fatal(err)
			}
		}, revoked},
		{"the key is rolled", func(t *testing.T, w *apitest.World, key *registry.Key) {
			t.Helper()
			if _, _, err := w.Registry.RollKey(t.Context(), key.ID, nil, apitest.Began); err != nil {
				t.Fatal(err)
			}
		}, revoked},
		{"the secret is rotated", rotate(false), works},
		{"the secret is rotated twice", func(t *testing.T, w *apitest.World, key *registry.Key) {
			t.Helper()
			rotate(false)(t, w, key)
			rotate(false)(t, w, key)
		}, revoked},
		{"all tokens are revoked", rotate(true), revoked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, warm := range []bool{true, false} {
				w := apitest.NewWithEndpoints(t)
				w.RememberRuns(t, "acme")
				key, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
				token := w.NewToken(t, secret, `{"endpoints": ["mine"], "variables": {"customer": "acme"}}`)
				want := tt.want
				if warm {
					if got := apitest.OutcomeOf(t, w.RunWith(t, token, "mine", "")); got != works {
						t.Fatalf("before: %s", got)
					}
				} else if want == revoked {
					want = "401 The token is invalid." // the token was never seen while it was valid
				}
				tt.do(t, w, key)
				w.RememberRuns(t, "acme")
				if got := apitest.OutcomeOf(t, w.RunWith(t, token, "mine", "")); got != want {
					t.Errorf("seen before: %t: %s, want %s", warm, got, want)
				}
			}
		})
	}
}

func TestIssueMistakes(t *testing.T) {
	var manyVariables strings.Builder
	for n := range 100_000 {
		fmt.Fprintf(&manyVariables, `, "v%d": 1`, n)
	}
	w := apitest.NewWithEndpoints(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	_, acme := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"}, "mine", "trend")
	token := w.NewToken(t, acme, `{"endpoints": ["mine"]}`)
	_, none := w.NewKey(t, w.Project.ID, registry.Secret, "query:read")
	const noAccess = "403 You do not have access to this endpoint."
	for _, tt := range []struct{ name, secret, body, want string }{
		{"no endpoints", secret, `{}`, "400 This field is required."},
		{"none of them", secret, `{"endpoints": []}`, "400 This field is required."},
		{"an unknown endpoint", secret, `{"endpoints": ["x"]}`, `400 There is no endpoint "x".`},
		{"no life", secret, `{"endpoints": ["open"], "expires_in": 0}`, "400 Input should be from 1 to 86400 seconds"},
		{"a long life", secret, `{"endpoints": ["open"], "expires_in": 86401}`, "400 Input should be from 1 to 86400 seconds"},
		{"a life as a word", secret, `{"endpoints": ["open"], "expires_in": "long"}`, "400 A valid integer is required."},
		{"a site with a path", secret, `{"endpoints": ["open"], "origins": ["https://a.example/"]}`, `400 "https://a.example/" is not a valid origin (want, for example, https://app.example.com)`},
		{"every site", secret, `{"endpoints": ["open"], "origins": ["*"]}`, `400 "*" is not a valid origin (want, for example, https://app.example.com)`},
		{"sites by pattern", secret, `{"endpoints": ["open"], "origins": ["https://*.example"]}`, `400 "https://*.example" is not a valid origin (want, for example, https://app.example.com)`},
		{"null", secret, `{"endpoints": ["open"], "origins": ["null"]}`, `400 "null" is not a valid origin (want, for example, https://app.example.com)`},
		{"a rate", secret, `{"endpoints": ["open"], "rate": "fast"}`, `400 "fast" is not a valid rate (want, for example, 240/m)`},
		{"another field", secret, `{"endpoints": ["open"], "scopes": ["*"]}`, "400 Extra inputs are not permitted"},
		{
			"many variables", secret, `{"endpoints": ["open"], "variables": {"v": 1` + manyVariables.String() + `}}`,
			"400 at most 200 variables can be fixed, and these are 100001",
		},
		{"a variable that it does not use", secret, `{"endpoints": ["open"], "variables": {"customer": "acme"}}`, "400 endpoint open does not use the variable(s) customer: a key that fixes them could not run it"},
		{"a variable without a value", secret, `{"endpoints": ["mine"], "variables": {"customer": ""}}`, "400 The value of customer can't be empty."},
		{"a variable that is null", secret, `{"endpoints": ["trend"], "variables": {"customer": null}}`, "400 variable customer: null is not a string"},
		{"a wrong type", secret, `{"endpoints": ["seats"], "variables": {"seats": "many"}}`, `400 variable seats: "many" is not a number`},
		{"more endpoints than the key", acme, `{"endpoints": ["mine", "open"]}`, noAccess},
		{"another value than the key's", acme, `{"endpoints": ["mine"], "variables": {"customer": "globex"}}`, "403 Variable customer: this key fixes its value."},
		{"a key without the scope", none, `{"endpoints": ["open"]}`, "403 API key missing required scope 'endpoint:read'"},
		{"a personal key", w.Secret, `{"endpoints": ["open"]}`, "403 Tokens are issued to project secret API keys alone"},
		{"a token", token, `{"endpoints": ["mine"]}`, "403 Tokens are issued to project secret API keys alone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.IssueToken(t, tt.secret, tt.body)
			if diff := cmp.Diff(tt.want, apitest.OutcomeOf(t, answer)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTokenOfManyVariables: a key that was made before the bound can fix more variables than a request may. It still issues tokens.
func TestTokenOfManyVariables(t *testing.T) {
	w := apitest.New(t)
	fixed, declared := map[string]any{}, map[string]any{}
	var names []string
	for n := range 201 {
		name, id := fmt.Sprintf("v%d", n), fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		names = append(names, "{variables."+name+"}")
		fixed[name], declared[id] = "x", map[string]any{"variableId": id, "code_name": name}
	}
	_, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: "many", Query: jsontext.Append(nil, map[string]any{
		"kind": "HogQLQuery", "query": "select n from events where event in (" + strings.Join(names, ", ") + ")", "variables": declared,
	})}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	_, secret := w.BoundKey(t, registry.Secret, fixed, "many")
	w.NewToken(t, secret, `{"endpoints": ["many"]}`)
	w.NewToken(t, secret, `{"endpoints": ["many"], "variables": {"v0": "x"}}`)
}

// TestTokenRate: a token has its own rate, and shares its key's rate with all others.
func TestTokenRate(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	key, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	snap := w.Registry.Snapshot()
	find := func(text string) *api.Token {
		t.Helper()
		found, err := w.Tokens.Find(snap, text)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	text := w.NewToken(t, secret, `{"endpoints": ["open"], "rate": "2/h"}`)
	snap = w.Registry.Snapshot()
	seen := make(chan *api.Token, 16)
	var all sync.WaitGroup
	for range cap(seen) {
		all.Go(func() {
			found, err := w.Tokens.Find(snap, text)
			if err != nil {
				t.Error(err)
			}
			seen <- found
		})
	}
	all.Wait()
	for range cap(seen) {
		if token := <-seen; token != find(text) {
			t.Fatal("one token has two rates")
		}
	}
	admit := func(token *api.Token) error {
		x := w.NewComputation(&execution.Caller{Key: &token.Key, Share: token.Share, Project: w.Project}, new(execution.Query))
		place, err := x.Admit(t.Context(), admission.Awaited, apitest.Began)
		if err == nil {
			place.Leave()
		}
		return err
	}
	limited, free := find(text), find(w.NewToken(t, secret, `{"endpoints": ["open"]}`))
	for i, want := range []bool{true, true, false} {
		if err := admit(limited); (err == nil) != want {
			t.Errorf("query %d with the limited token: %v", i+1, err)
		}
	}
	if err := admit(free); err != nil {
		t.Errorf("another token of the key: %v", err)
	}
	for w.Count(key, new(execution.Query), apitest.Began) == nil { // the rest of the key's own rate
	}
	if err := admit(free); err == nil {
		t.Error("a token may ask more than its key")
	}
}

// TestPreflight sends what a browser sends before a request with a token.
func TestPreflight(t *testing.T) {
	w := apitest.New(t)
	for _, tt := range []struct {
		name, path string
		header     []string
		want       int
	}{
		{"a run", "endpoints/e/run", []string{"Origin", site, "Access-Control-Request-Method", "POST"}, 204},
		{"a run of a file", "endpoints/e/run.csv/", []string{"Origin", site, "Access-Control-Request-Method", "GET"}, 204},
		{"no method", "endpoints/e/run", []string{"Origin", site}, 401},
		{"no origin", "endpoints/e/run", []string{"Access-Control-Request-Method", "POST"}, 401},
		{"a record", "endpoints/e/", []string{"Origin", site, "Access-Control-Request-Method", "GET"}, 401},
		{"the query route", "query/", []string{"Origin", site, "Access-Control-Request-Method", "POST"}, 401},
		{"tokens", "endpoint_tokens/", []string{"Origin", site, "Access-Control-Request-Method", "POST"}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := *w
			as.Secret = "none"
			answer := as.Send(t, http.MethodOptions, "/api/projects/1/"+tt.path, "", tt.header...)
			h := answer.Header()
			allowed := h.Get("Access-Control-Allow-Origin")
			if answer.Code != tt.want || (allowed == site) != (tt.want == 204) {
				t.Fatalf("answered %d, Access-Control-Allow-Origin: %q", answer.Code, allowed)
			}
			if tt.want != 204 {
				return
			}
			want := [...]string{"GET, HEAD, POST", "Authorization, Content-Type, Accept, If-None-Match, X-Request-Id", "7200", "Origin", ""}
			got := [...]string{
				h.Get("Access-Control-Allow-Methods"), h.Get("Access-Control-Allow-Headers"), h.Get("Access-Control-Max-Age"), h.Get("Vary"),
				h.Get("Access-Control-Allow-Credentials"),
			}
			if diff := cmp.Diff(want, got); diff != "" || answer.Body.Len() != 0 {
				t.Errorf("%d bytes; headers (-want +got):\n%s", answer.Body.Len(), diff)
			}
		})
	}
}
