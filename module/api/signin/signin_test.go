package signin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

// memory is a signin.Store in memory. Its zero value is empty.
type memory struct {
	held sync.Mutex

	mu   sync.Mutex
	data []byte
	err  error
	keep func() error // called before each write; nil does nothing
}

func (m *memory) Lock(context.Context, string, string) (bool, func(), error) {
	m.held.Lock()
	return false, m.held.Unlock, nil
}

func (m *memory) Keep(_ context.Context, _ string, data []byte) error {
	if m.keep != nil {
		if err := m.keep(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = data
	return m.err
}

func (m *memory) Kept(context.Context, string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data, m.err
}

// site returns a sign-in on a registry with two projects, 1 and 2.
type site struct {
	*signin.SignIn
}

func newSite(t *testing.T) *site {
	t.Helper()
	store, err := sqlite.Open(context.Background(), sqlitetest.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, store)
	for _, name := range []string{"Shop", "Blog"} {
		if _, err := s.Registry.CreateProject(t.Context(), registry.NewProject{Name: name}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// siteOn returns a sign-in on a registry in a store.
func siteOn(t *testing.T, store registry.Store) *site {
	t.Helper()
	reg, err := registry.Open(context.Background(), store, registry.Options{Logger: zap.NewNop(), Poll: time.Hour, Gather: time.Hour, Purge: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{&signin.SignIn{
		State: signin.NewState(reg), Registry: reg, Logger: zap.NewNop(),
		ClientIP: func(r *http.Request) string { return r.Header.Get("Test-Address") },
	}}
}

// code issues a code for everything in a project.
func (s *site) code(project int64) string {
	text, _ := s.issue(signin.Grant{Project: project, Scopes: []string{"*"}, Life: time.Hour}, time.Now())
	return text
}

func (s *site) issue(grant signin.Grant, now time.Time) (text string, expires time.Time) {
	text, expires, err := s.State.Codes.Issue(context.Background(), grant, now)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return text, expires
}

func (s *site) send(method, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://analytics.example"+signin.Path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func (s *site) exchange(code string, header ...string) *httptest.ResponseRecorder {
	return s.send(http.MethodPost, fmt.Sprintf(`{"code": %q}`, code), header...)
}

// keys counts the keys of a project.
func (s *site) keys(project int64) int { return len(s.Registry.Snapshot().Keys(project)) }

func detail(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var out struct{ Detail string }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%d %q: %v", w.Code, w.Body, err)
	}
	return fmt.Sprintf("%d %s", w.Code, out.Detail)
}

const wrongCode = "401 This link has expired or was already used. Get a new one with: caddy analytics console"

func TestExchange(t *testing.T) {
	s := newSite(t)
	before := time.Now()
	code, _ := s.issue(signin.Grant{Project: 2, Scopes: []string{"query:read", "insight:write"}, Life: 3 * time.Hour}, before)
	w := s.exchange(code, "Sec-Fetch-Site", "same-origin", "Origin", "http://analytics.example")
	if w.Code != http.StatusCreated || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	var got struct {
		Key       string    `json:"key"`
		ExpiresAt time.Time `json:"expires_at"`
		Project   struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"project"`
		Scopes []string `json:"scopes"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	key := s.Registry.Snapshot().KeyByHash(registry.HashKey(got.Key))
	if key == nil {
		t.Fatalf("the key %q is none", got.Key)
	}
	if got.Project.ID != 2 || got.Project.Name != "Blog" || !got.ExpiresAt.Equal(key.ExpiresAt) {
		t.Errorf("the answer is %s", w.Body)
	}
	if life := key.ExpiresAt.Sub(before); life < 3*time.Hour || life > 3*time.Hour+time.Minute {
		t.Errorf("the key lives %s", life)
	}
	want := registry.Key{Kind: registry.Personal, Label: "console", Project: 2, Scopes: []string{"query:read", "insight:write"}, Session: true}
	if diff := cmp.Diff(want, registry.Key{Kind: key.Kind, Label: key.Label, Project: key.Project, Scopes: key.Scopes, Session: key.Session}); diff != "" {
		t.Errorf("the key (-want +got):\n%s", diff)
	}
	if got := detail(t, s.exchange(code)); got != wrongCode {
		t.Errorf("the code once more: %s", got)
	}
	if s.keys(1) != 0 || s.keys(2) != 1 {
		t.Errorf("the projects have %d and %d keys", s.keys(1), s.keys(2))
	}
}

// TestConcurrentExchange: many clients with the same code get one key.
func TestConcurrentExchange(t *testing.T) {
	s := newSite(t)
	code := s.code(1)
	var group sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		group.Go(func() { statuses[i] = s.exchange(code).Code })
	}
	group.Wait()
	created := 0
	for _, status := range statuses {
		if status == http.StatusCreated {
			created++
		}
	}
	if created != 1 || s.keys(1) != 1 {
		t.Errorf("%d were created; the project has %d keys", created, s.keys(1))
	}
}

// TestOneUseOnAllNodes: a code issued by one node works on another, and only once, even if all nodes receive it at the same time.
func TestOneUseOnAllNodes(t *testing.T) {
	dsn := postgrestest.DSN(t)
	var all []*site
	for range 3 {
		store, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, siteOn(t, store))
	}
	if _, err := all[0].Registry.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		code, before := all[0].code(1), all[0].keys(1)
		var group sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 12)
		for i := range answers {
			group.Go(func() { answers[i] = all[1+i%2].exchange(code) })
		}
		group.Wait()
		created := 0
		for _, w := range answers {
			switch {
			case w.Code == http.StatusCreated:
				created++
			case w.Code != http.StatusUnauthorized && w.Code != http.StatusTooManyRequests: // all the wrong codes come from one address
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if err := all[0].Registry.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if made := all[0].keys(1) - before; created != 1 || made != 1 {
			t.Errorf("%d were created; there are %d keys more", created, made)
		}
	}
}

// TestWithoutTheRegistry: while the registry is unavailable, a code is neither issued nor used, and it still works afterwards.
func TestWithoutTheRegistry(t *testing.T) {
	s, store := newSite(t), new(memory)
	s.State = signin.NewState(store)
	code := s.code(1)
	store.err = fmt.Errorf("asking: %w", registry.ErrUnavailable)
	if w := s.exchange(code); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("using a code: %d %s", w.Code, w.Body)
	}
	if _, _, err := s.State.Codes.Issue(t.Context(), signin.Grant{Project: 1}, time.Now()); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("giving one out: %v", err)
	}
	store.err = nil
	if w := s.exchange(code); w.Code != http.StatusCreated {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// refusing is a store whose writes fail while it has an error.
type refusing struct {
	registry.Store
	err atomic.Pointer[error]
}

func (r *refusing) Write(ctx context.Context, w *registry.Write) (uint64, error) {
	if err := r.err.Load(); err != nil {
		return 0, *err
	}
	return r.Store.Write(ctx, w)
}

// TestWithoutAKey: a code for which nobody received a key still works, and a key that nobody received does not.
func TestWithoutAKey(t *testing.T) {
	inner, err := sqlite.Open(context.Background(), sqlitetest.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	records, codes := &refusing{Store: inner}, new(memory)
	s := siteOn(t, records)
	s.State = signin.NewState(codes)
	p, err := s.Registry.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	working := func() (n int) {
		for _, k := range s.Registry.Snapshot().Keys(p.ID) {
			if k.RevokedAt.IsZero() {
				n++
			}
		}
		return n
	}
	code := s.code(p.ID)
	away := fmt.Errorf("writing: %w", registry.ErrUnavailable)
	for what, set := range map[string]func(error){
		"the key is not made":       func(err error) { records.err.Store(&err) },
		"the code is not forgotten": func(err error) { codes.keep = func() error { return err } },
	} {
		set(away)
		if w := s.exchange(code); w.Code != http.StatusServiceUnavailable || working() != 0 {
			t.Errorf("%s: %d %s, and %d keys work", what, w.Code, w.Body, working())
		}
		records.err.Store(nil)
		codes.keep = nil
	}
	if w := s.exchange(code); w.Code != http.StatusCreated || working() != 1 {
		t.Errorf("afterwards: %d %s, and %d keys work", w.Code, w.Body, working())
	}
	if got := detail(t, s.exchange(code)); got != wrongCode {
		t.Errorf("once more: %s", got)
	}
}

// TestProjectGoesMeanwhile: the project is deleted just after the key was created.
func TestProjectGoesMeanwhile(t *testing.T) {
	s, codes := newSite(t), new(memory)
	s.State = signin.NewState(codes)
	code := s.code(1)
	codes.keep = func() error {
		_, err := s.Registry.DeleteProject(t.Context(), 1, "Shop", time.Now())
		return err
	}
	if got := detail(t, s.exchange(code)); got != wrongCode {
		t.Errorf("%s, want %s", got, wrongCode)
	}
}

// TestRefused: refused requests create no key, and leave the code valid.
func TestRefused(t *testing.T) {
	s := newSite(t)
	code := s.code(1)
	own := fmt.Sprintf(`{"code": %q}`, code)
	for _, tt := range []struct {
		name, method, body string
		header             []string
		want               string
	}{
		{"a code that is wrong", http.MethodPost, `{"code": "AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, nil, wrongCode},
		{"the start of the code", http.MethodPost, fmt.Sprintf(`{"code": %q}`, code[:len(code)-1]), nil, wrongCode},
		{"the code in another case", http.MethodPost, fmt.Sprintf(`{"code": %q}`, strings.ToLower(code)), nil, wrongCode},
		{"no code", http.MethodPost, `{}`, nil, "400 This field is required."},
		{"an empty code", http.MethodPost, `{"code": ""}`, nil, "400 This field is required."},
		{"a null code", http.MethodPost, `{"code": null}`, nil, "400 This field is required."},
		{"a code that is a list", http.MethodPost, `{"code": ["x"]}`, nil, "400 Not a valid string."},
		{"another project", http.MethodPost, fmt.Sprintf(`{"code": %q, "project": 2}`, code), nil, "400 Extra inputs are not permitted"},
		{"other scopes", http.MethodPost, fmt.Sprintf(`{"code": %q, "scopes": ["*"]}`, code), nil, "400 Extra inputs are not permitted"},
		{"no JSON", http.MethodPost, `code`, nil, "400 "},
		{"a large body", http.MethodPost, `{"code": "` + strings.Repeat("x", 5000) + `"}`, nil, "413 The request body is larger than 4096 bytes."},
		{"a form", http.MethodPost, "code=" + code, []string{"Content-Type", "application/x-www-form-urlencoded"}, "415 "},
		{"plain text", http.MethodPost, own, []string{"Content-Type", "text/plain"}, "415 "},
		{"GET", http.MethodGet, own, nil, `405 Method "GET" not allowed.`},
		{"a preflight", http.MethodOptions, "", []string{"Origin", "http://evil.example", "Access-Control-Request-Method", "POST"}, `405 Method "OPTIONS" not allowed.`},
		{"a page of another site", http.MethodPost, own, []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"}, "403 Only the console's own page can exchange a code."},
		{"a page of a sister site", http.MethodPost, own, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://evil.analytics.example"}, "403 Only the console's own page can exchange a code."},
		{"an old browser on another site", http.MethodPost, own, []string{"Origin", "http://evil.example"}, "403 Only the console's own page can exchange a code."},
		{"a page without an origin", http.MethodPost, own, []string{"Origin", "null"}, "403 Only the console's own page can exchange a code."},
		{"another port", http.MethodPost, own, []string{"Origin", "http://analytics.example:8080"}, "403 Only the console's own page can exchange a code."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := s.send(tt.method, tt.body, tt.header...)
			if got := detail(t, w); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("the headers are %v", w.Header())
			}
		})
	}
	if s.keys(1) != 0 {
		t.Errorf("the project has %d keys", s.keys(1))
	}
	if w := s.exchange(code); w.Code != http.StatusCreated {
		t.Errorf("the code afterwards: %d %s", w.Code, w.Body)
	}
}

// TestBehindProxy: the host of the request is not that of the site, which the page names as its origin.
func TestBehindProxy(t *testing.T) {
	s := newSite(t)
	s.Origins = api.Origins{PublicURL: "https://public.example"}
	if w := s.exchange(s.code(1), "Origin", "https://public.example"); w.Code != http.StatusCreated {
		t.Errorf("from its own name: %d %s", w.Code, w.Body)
	}
	if w := s.exchange(s.code(1), "Origin", "https://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("from another name: %d %s", w.Code, w.Body)
	}
}

func TestExpiry(t *testing.T) {
	s := newSite(t)
	issued := time.Now().Add(-signin.CodeLife)
	old, expires := s.issue(signin.Grant{Project: 1, Scopes: []string{"*"}, Life: time.Hour}, issued)
	if !expires.Equal(issued.Add(5 * time.Minute)) {
		t.Errorf("the code works until %s, from %s", expires, issued)
	}
	if got := detail(t, s.exchange(old)); got != wrongCode {
		t.Errorf("a code of five minutes: %s", got)
	}
	young, _ := s.issue(signin.Grant{Project: 1, Scopes: []string{"*"}, Life: time.Hour}, issued.Add(time.Minute))
	if w := s.exchange(young); w.Code != http.StatusCreated {
		t.Errorf("a code of four minutes: %d %s", w.Code, w.Body)
	}
}

// TestUnknownProject: a code is for a project that does not exist.
func TestUnknownProject(t *testing.T) {
	s := newSite(t)
	if got := detail(t, s.exchange(s.code(99))); got != wrongCode {
		t.Errorf("a code for no project: %s", got)
	}
}

// TestManyCodes: if there are too many codes, a new one replaces the oldest.
func TestManyCodes(t *testing.T) {
	s := newSite(t)
	first, second := s.code(1), s.code(1)
	for range 99 {
		s.code(1)
	}
	if got := detail(t, s.exchange(first)); got != wrongCode {
		t.Errorf("the first of 101: %s", got)
	}
	if w := s.exchange(second); w.Code != http.StatusCreated {
		t.Errorf("the second: %d %s", w.Code, w.Body)
	}
}

// TestGuesses: a client that sends many wrong codes is told to wait; a valid code still works from the same address.
func TestGuesses(t *testing.T) {
	s := newSite(t)
	guess := func(address string) *httptest.ResponseRecorder {
		return s.exchange("WRONGWRONGWRONGWRONGWRONG", "Test-Address", address)
	}
	for n := range 10 {
		if w := guess("203.0.113.7"); w.Code != http.StatusUnauthorized {
			t.Fatalf("wrong code %d: %d %s", n, w.Code, w.Body)
		}
	}
	w := guess("203.0.113.7")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Fatalf("the next: %d %v", w.Code, w.Header())
	}
	if w := guess("::ffff:203.0.113.7"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the same address as IPv6: %d", w.Code)
	}
	if w := guess("203.0.113.8"); w.Code != http.StatusUnauthorized {
		t.Errorf("another address: %d", w.Code)
	}
	for n := range 10 {
		guess(fmt.Sprintf("2001:db8:1:2::%x", n))
	}
	if w := guess("2001:db8:1:2:ffff::1"); w.Code != http.StatusTooManyRequests {
		t.Errorf("another address of a network that guesses: %d", w.Code)
	}
	if w := s.exchange(s.code(1), "Test-Address", "203.0.113.7"); w.Code != http.StatusCreated {
		t.Errorf("a right code from there: %d %s", w.Code, w.Body)
	}
}

// TestGuessesAreForgiven: the limit refills.
func TestGuessesAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{&signin.SignIn{State: signin.NewState(new(memory)), Logger: zap.NewNop(), ClientIP: func(*http.Request) string { return "" }}}
		for range 20 {
			s.exchange("WRONG")
		}
		time.Sleep(6 * time.Second)
		if w := s.exchange("WRONG"); w.Code != http.StatusUnauthorized {
			t.Errorf("after a while: %d", w.Code)
		}
		if w := s.exchange("WRONG"); w.Code != http.StatusTooManyRequests {
			t.Errorf("right after: %d", w.Code)
		}
	})
}

func FuzzExchange(f *testing.F) {
	s := &site{&signin.SignIn{State: signin.NewState(new(memory)), Logger: zap.NewNop(), ClientIP: func(*http.Request) string { return "" }}}
	s.code(1)
	for _, seed := range []string{`{"code": "x"}`, `{"code": 1}`, `{"code": "\u0000"}`, `[]`, `{"code": "x", "code": "y"}`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if w := s.send(http.MethodPost, body); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}
