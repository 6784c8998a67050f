package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// signInLink matches the link that `caddy analytics console` prints.
type signInLink struct {
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"`
	Project   int64     `json:"project"`
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes"`
}

// session is the answer to a code.
type session struct {
	Key       string    `json:"key"`
	ExpiresAt time.Time `json:"expires_at"`
	Project   struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"project"`
	Scopes []string `json:"scopes"`
}

// link runs the command, and returns what it printed and the code in it.
func link(t *testing.T, s *harness.Server, args ...string) (out signInLink, code string) {
	t.Helper()
	s.MustCommand(t, &out, nil, append([]string{"console"}, args...)...)
	_, code, ok := strings.Cut(out.Link, "/#code=")
	if !ok {
		t.Fatalf("the link is %q", out.Link)
	}
	return out, code
}

// signIn exchanges a code.
func signIn(t *testing.T, s *harness.Server, code string) (session, harness.Answer) {
	t.Helper()
	answer := s.Client(0, "").Do(t, http.MethodPost, "/api/console/session/", map[string]any{"code": code})
	var out session
	if answer.Status == http.StatusCreated {
		if err := json.Unmarshal(answer.Raw, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, answer
}

// TestConsoleSession signs in with a link, works with its key, and signs out.
func TestConsoleSession(t *testing.T) {
	s := harness.Start(t)
	if _, stderr, err := s.Command(nil, "console"); err == nil || !strings.Contains(stderr, "no site of the running config has the console") {
		t.Errorf("without the console: %v %s", err, stderr)
	}
	if got := fetch(t, s.URL+"/"); !strings.Contains(got, "404") || !strings.Contains(got, "not_found") {
		t.Errorf("a site without the console answers %s", got)
	}
	if _, answer := signIn(t, s, "x"); answer.Status != http.StatusNotFound {
		t.Errorf("the exchange on a site without the console: %d %s", answer.Status, answer.Raw)
	}
	if err := s.ServeConsole(); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := s.Command(nil, "console"); err == nil || !strings.Contains(stderr, "there is no project yet") {
		t.Errorf("without a project: %v %s", err, stderr)
	}
	id, _ := s.Project(t, "Shop")
	printed, code := link(t, s) // the only project
	if life := time.Until(printed.ExpiresAt); life < 4*time.Minute || life > 5*time.Minute {
		t.Errorf("the link works for %s", life)
	}
	want := signInLink{Link: s.URL + "/#code=" + code, ExpiresAt: printed.ExpiresAt, Project: id, Name: "Shop", Scopes: []string{"*"}}
	if diff := cmp.Diff(want, printed); diff != "" {
		t.Errorf("the command prints (-want +got):\n%s", diff)
	}

	other, otherKey := s.Project(t, "Blog")
	if _, stderr, err := s.Command(nil, "console"); err == nil || !strings.Contains(stderr, "there are 2 projects: say which with --project") {
		t.Errorf("without saying which project: %v %s", err, stderr)
	}
	for args, part := range map[string]string{
		"--project 99":                          "project 99",
		"--project 1 --scopes nonsense":         "Invalid scope: nonsense",
		"--project 1 --expires 31d":             "not a valid time from now",
		"--project 1 --expires -1h":             "not a valid time from now",
		"--project 1 --site example.com":        "not a valid origin",
		"--project 1 --site http://a.example/b": "not a valid origin",
	} {
		if _, stderr, err := s.Command(nil, append([]string{"console"}, strings.Fields(args)...)...); err == nil || !strings.Contains(stderr, part) {
			t.Errorf("console %s: %v %s, want %q", args, err, stderr, part)
		}
	}
	if named, _ := link(t, s, "--project", strconv.FormatInt(other, 10), "--site", "https://analytics.example.com/"); !strings.HasPrefix(named.Link, "https://analytics.example.com/#code=") {
		t.Errorf("the link of another site is %s", named.Link)
	}

	if err := s.Reload(); err != nil { // codes survive it
		t.Fatal(err)
	}
	opened, answer := signIn(t, s, code)
	if answer.Status != http.StatusCreated || answer.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("signing in: %d %v %s", answer.Status, answer.Header, answer.Raw)
	}
	if life := time.Until(opened.ExpiresAt); opened.Project.ID != id || opened.Project.Name != "Shop" || life < 11*time.Hour || life > 12*time.Hour {
		t.Errorf("the session is %s", answer.Raw)
	}
	if _, again := signIn(t, s, code); again.Status != http.StatusUnauthorized {
		t.Errorf("the same code again: %d %s", again.Status, again.Raw)
	}
	c := s.Client(id, opened.Key)
	if rows := c.Query(t, "select 1"); len(rows) != 1 {
		t.Errorf("rows %v", rows)
	}
	if answer := s.Client(other, opened.Key).HogQL(t, "select 1"); answer.Status != http.StatusForbidden {
		t.Errorf("the key in another project: %d %s", answer.Status, answer.Raw)
	}
	self := c.Do(t, http.MethodGet, "/api/personal_api_keys/@current/", nil)
	if self.Body["label"] != "console" {
		t.Errorf("the key says of itself %s", self.Raw)
	}

	// Another key cannot end the session, and its own deletion ends no other.
	if answer := s.Client(other, otherKey).Do(t, http.MethodDelete, fmt.Sprintf("/api/personal_api_keys/%v/", self.Body["id"]), nil); answer.Status != http.StatusForbidden {
		t.Errorf("revoking another key: %d %s", answer.Status, answer.Raw)
	}
	if answer := c.Do(t, http.MethodDelete, "/api/personal_api_keys/@current/", nil); answer.Status != http.StatusNoContent {
		t.Fatalf("signing out: %d %s", answer.Status, answer.Raw)
	}
	for range 2 {
		if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusUnauthorized {
			t.Errorf("after signing out: %d %s", answer.Status, answer.Raw)
		}
	}
	if answer := s.Client(other, otherKey).HogQL(t, "select 1"); answer.Status != http.StatusOK {
		t.Errorf("another key after that: %d %s", answer.Status, answer.Raw)
	}
	if log := s.Log(); strings.Contains(log, code) || strings.Contains(log, opened.Key) {
		t.Error("the log has the code or the key")
	}
}

// TestConsoleScopes: the key of a session has the scopes and the expiry set by the operator.
func TestConsoleScopes(t *testing.T) {
	s := harness.Start(t)
	if err := s.ServeConsole(); err != nil {
		t.Fatal(err)
	}
	id, _ := s.Project(t, "Shop")
	_, code := link(t, s, "--project", strconv.FormatInt(id, 10), "--scopes", "insight:read,query:read", "--expires", "1h")
	var group sync.WaitGroup
	keys := make([]string, 10)
	for i := range keys {
		group.Go(func() {
			answer, err := s.Client(0, "").Send(http.MethodPost, "/api/console/session/", map[string]any{"code": code})
			if key, _ := answer.Body["key"].(string); err == nil {
				keys[i] = key
			}
		})
	}
	group.Wait()
	var got []string
	for _, key := range keys {
		if key != "" {
			got = append(got, key)
		}
	}
	if len(got) != 1 {
		t.Fatalf("one code was exchanged for %d keys", len(got))
	}
	c := s.Client(id, got[0])
	if answer := c.Do(t, http.MethodPost, "insights/", map[string]any{"name": "x"}); answer.Status != http.StatusForbidden {
		t.Errorf("beyond its scopes: %d %s", answer.Status, answer.Raw)
	}
	if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusOK {
		t.Errorf("within its scopes: %d %s", answer.Status, answer.Raw)
	}

	_, code = link(t, s, "--project", strconv.FormatInt(id, 10), "--scopes", "query:read", "--expires", "2s")
	short, _ := s.Client(0, "").Do(t, http.MethodPost, "/api/console/session/", map[string]any{"code": code}).Body["key"].(string)
	if short == "" {
		t.Fatal("the second code is exchanged for no key")
	}
	c = s.Client(id, short)
	harness.Eventually(t, time.Minute, func() error {
		if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusUnauthorized {
			return fmt.Errorf("the session does not end: %d %s", answer.Status, answer.Raw)
		}
		return nil
	})
}

// TestConsolePages: a site with the console serves its paths before its other handlers, and no other paths.
func TestConsolePages(t *testing.T) {
	s := harness.Start(t)
	config := strings.Replace(s.Config("respond \"the rest\""), "\n\tanalytics\n", "\n\tanalytics {\n\t\tconsole\n\t}\n", 1)
	if err := os.WriteFile(s.Caddyfile(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":                   "<!doctype html>",
		"/project/1/sql":      "<!doctype html>",
		"/console/nothing.js": "404 Not found.",
		"/plain":              "plain", // from the harness
		"/other":              "the rest",
		"/api/nothing/":       "not_found",
	} {
		if got := fetch(t, s.URL+path); !strings.Contains(got, want) {
			t.Errorf("%s answers %s, want %s", path, got, want)
		}
	}
}
