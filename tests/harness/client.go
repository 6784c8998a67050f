package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Client sends requests for one project with one key.
type Client struct {
	Server  *Server
	Project int64
	Key     string
	Header  http.Header // sent with each request
}

// Answer is a response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Raw    []byte
	Body   map[string]any // nil if the body is not a JSON object
}

// transport sends requests unchanged: no redirects, no cookies, no compression.
var transport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}

// Client returns a client of a project.
func (s *Server) Client(project int64, key string) *Client {
	return &Client{Server: s, Project: project, Key: key}
}

// Do sends a request. A path without a leading slash is relative to the project; a body that is not a string is sent as JSON.
func (c *Client) Do(tb testing.TB, method, path string, body any) Answer {
	tb.Helper()
	answer, err := c.Send(method, path, body)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// Send is Do without a test to fail.
func (c *Client) Send(method, path string, body any) (Answer, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return Answer{}, fmt.Errorf("encoding the body: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	if !strings.HasPrefix(path, "/") {
		path = fmt.Sprintf("/api/projects/%d/%s", c.Project, path)
	}
	req, err := http.NewRequest(method, c.Server.URL+path, reader)
	if err != nil {
		return Answer{}, err
	}
	req.Header = c.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	answer := Answer{Status: resp.StatusCode, Header: resp.Header}
	if answer.Raw, err = io.ReadAll(resp.Body); err != nil {
		return answer, err
	}
	if json.Unmarshal(answer.Raw, &answer.Body) != nil {
		answer.Body = nil
	}
	return answer, nil
}

// Drain reads an answer to its end, discards it, and returns its size.
func (c *Client) Drain(path string) (size int64, err error) {
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/api/projects/%d/%s", c.Server.URL, c.Project, path), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	size, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d", path, resp.StatusCode)
	}
	return size, err
}

// Query runs HogQL and returns the rows; anything but a 200 fails the test.
func (c *Client) Query(tb testing.TB, hogql string) []any {
	tb.Helper()
	answer := c.HogQL(tb, hogql)
	if answer.Status != http.StatusOK {
		tb.Fatalf("%s\nanswered %d: %s", hogql, answer.Status, answer.Raw)
	}
	rows, _ := answer.Body["results"].([]any)
	return rows
}

// HogQL sends a HogQL query.
func (c *Client) HogQL(tb testing.TB, hogql string) Answer {
	tb.Helper()
	return c.Do(tb, http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": hogql}})
}

// Shows waits until HogQL, computed anew each time, has the wanted rows.
func (c *Client) Shows(tb testing.TB, hogql string, want ...[]any) {
	tb.Helper()
	rows := make([]any, len(want))
	for i, row := range want {
		rows[i] = row
	}
	Eventually(tb, time.Minute, func() error {
		answer, err := c.Send(http.MethodPost, "query/", map[string]any{
			"query": map[string]any{"kind": "HogQLQuery", "query": hogql}, "refresh": "force_blocking",
		})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(any(rows), answer.Body["results"]); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s\n%s", hogql, diff, answer.Raw)
		}
		return nil
	})
}

// Eventually calls try until it returns nil. After limit, the test fails with the last error.
func Eventually(tb testing.TB, limit time.Duration, try func() error) {
	tb.Helper()
	for deadline := time.Now().Add(limit); ; <-time.After(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("still after %s: %v", limit, err)
		}
	}
}
