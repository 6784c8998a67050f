// Package clients generates clients from the server's own OpenAPI document, compiles them, and calls the server with them.
package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// site is a server with two endpoints: SQL with columns of many types and with variables, and an insight.
type site struct {
	url, key string
	document string // a file with the OpenAPI document of all endpoints
	client   *harness.Client
}

const sales = `select toDate('2026-01-01') + number as day, if(number = 3, null, number * 10) as amount, number > 2 as big,
	[concat('item ', toString(number))] as items, {variables.country} as country
	from numbers(6) where number >= {variables.least} order by day`

func newSite(t *testing.T) site {
	t.Helper()
	s := harness.Start(t)
	id, key := s.Project(t, "shop")
	if id != 1 {
		t.Fatalf("the first project is number %d; the clients call number 1", id)
	}
	c := s.Client(id, key)
	create := func(path string, body map[string]any) {
		t.Helper()
		if answer := c.Do(t, http.MethodPost, path, body); answer.Status != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, answer.Status, answer.Raw)
		}
	}
	create("insight_variables/", map[string]any{"name": "Least", "type": "Number"})
	create("insight_variables/", map[string]any{"name": "Country", "type": "List", "values": []string{"de", "fr"}, "default_value": "de"})
	create("endpoints/", map[string]any{"name": "sales-by-day", "query": map[string]any{"kind": "HogQLQuery", "query": sales}})
	create("endpoints/", map[string]any{"name": "counters", "query": map[string]any{"kind": "HogQLQuery", "query": "select 18446744073709551615 as largest"}})
	create("endpoints/", map[string]any{"name": "views", "query": map[string]any{
		"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2026-01-01", "date_to": "2026-01-03"},
		"series": []any{map[string]any{"kind": "EventsNode", "event": "$pageview"}},
	}})
	answer := c.Do(t, http.MethodGet, "endpoints/openapi.json", nil)
	if answer.Status != http.StatusOK {
		t.Fatalf("the document: %d %s", answer.Status, answer.Raw)
	}
	document := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(document, answer.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return site{url: s.URL, key: key, document: document, client: c}
}

// workshop is a copy of a folder beside this file, to generate into.
func workshop(t *testing.T, folder string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), folder)
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// run runs a program in a folder, and returns what it printed. The server is in its environment.
func (s site) run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "SITE="+s.url, "KEY="+s.key, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "CGO_ENABLED=0")
	var messages []byte
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		messages = failed.Stderr
	}
	if err != nil {
		t.Fatalf("%s %q: %v\n%s\n%s", filepath.Base(program), args, err, out, messages)
	}
	return string(out)
}

// TestClients lints the document, generates three clients from it, and compares what they print.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("generators take their time")
	}
	s := newSite(t)
	installed, err := harness.Packages("typescript")
	if err != nil {
		t.Fatalf("fetching the generators: %v", err)
	}
	tool := func(name string) string { return filepath.Join(installed, "node_modules", ".bin", name) }

	t.Run("the document has no mistakes", func(t *testing.T) {
		t.Parallel()
		if ran := s.client.Do(t, http.MethodPost, "endpoints/views/run", map[string]any{}); ran.Status != http.StatusOK { // it is the example
			t.Fatalf("%d %s", ran.Status, ran.Raw)
		}
		for _, name := range []string{"", "views/", "sales-by-day/"} {
			s.lint(t, tool("redocly"), "endpoints/"+name+"openapi.json")
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		folder := workshop(t, "typescript")
		if err := os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
			t.Fatal(err)
		}
		s.run(t, folder, tool("openapi-typescript"), s.document, "--output", "schema.d.ts", "--default-non-nullable=false")
		s.run(t, folder, tool("openapi-ts"), "--input", s.document, "--output", "sdk")
		s.run(t, folder, tool("tsc"), "--project", ".")
		compare(t, "openapi-typescript", s.run(t, folder, "node", "built/fetch.js"), `{
			"rows": [{"day": "2026-01-03", "amount": 20, "big": 0, "items": ["item 2"], "country": "fr"},
				{"day": "2026-01-04", "amount": null, "big": 1, "items": ["item 3"], "country": "fr"}],
			"amounts": [20, null], "cells": [["2026-01-03", 20, 0, ["item 2"], "de"]], "hasMore": true, "status": 400, "code": "invalid_input",
			"points": [3], "sure": 2}`)
		compare(t, "@hey-api/openapi-ts", s.run(t, folder, "node", "built/sdk.js"), `{
			"rows": [{"day": "2026-01-03", "amount": 20, "big": 0, "items": ["item 2"], "country": "fr"},
				{"day": "2026-01-04", "amount": null, "big": 1, "items": ["item 3"], "country": "fr"}],
			"days": ["2026-01-03", "2026-01-04"],
			"csv": "day,amount,big,items,country\r\n2026-01-04,,1,\"[\"\"item 3\"\"]\",de\r\n2026-01-05,40,1,\"[\"\"item 4\"\"]\",de\r\n2026-01-06,50,1,\"[\"\"item 5\"\"]\",de\r\n",
			"detail": "Invalid limit parameter: 0", "items": ["$pageview"], "numbers": 2}`)
	})
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		folder := workshop(t, "go")
		if err := os.Mkdir(filepath.Join(folder, "api"), 0o750); err != nil {
			t.Fatal(err)
		}
		s.run(t, folder, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.gen.go", s.document)
		compare(t, "oapi-codegen", s.run(t, folder, "go", "run", "."), `{
			"rows": [{"day": "2026-01-03", "amount": 20, "big": 0, "items": ["item 2"], "country": "de"},
				{"day": "2026-01-04", "amount": null, "big": 1, "items": ["item 3"], "country": "de"}],
			"days": ["3 January: 20", ""], "largest": "18446744073709551615", "detail": "Invalid limit parameter: 0", "labels": ["$pageview"]}`)
	})
}

// lint checks a document against all rules recommended by redocly, including those that only warn.
func (s site) lint(t *testing.T, redocly, path string) {
	t.Helper()
	document := filepath.Join(t.TempDir(), "openapi.json")
	answer := s.client.Do(t, http.MethodGet, path, nil)
	if err := os.WriteFile(document, answer.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var found struct {
		Problems []struct{ RuleID, Message string }
	}
	if err := json.Unmarshal([]byte(s.run(t, t.TempDir(), redocly, "lint", "--extends=recommended", "--format=json", document)), &found); err != nil {
		t.Fatal(err)
	}
	for _, p := range found.Problems {
		t.Errorf("%s: %s: %s", path, p.RuleID, p.Message)
	}
}

// compare compares what a client printed with the JSON that it should have.
func compare(t *testing.T, client, printed, want string) {
	t.Helper()
	var got, wanted any
	if err := json.Unmarshal([]byte(printed), &got); err != nil {
		t.Fatalf("%s printed %q: %v", client, printed, err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", client, diff)
	}
}
