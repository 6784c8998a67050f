package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestPurge: data deleted by a client exists, and counts towards the limit, until an operator purges it.
func TestPurge(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trecords 3\n\t\t}")
	id, key := s.Project(t, "purge")
	c := s.Client(id, key)
	for n := range 3 {
		path, _ := saveInsight(t, c, map[string]any{"name": fmt.Sprint(n)})
		if n > 0 {
			mustDo(t, c, http.StatusNoContent, http.MethodDelete, path, nil)
		}
	}
	full := c.Do(t, http.MethodPost, "insights/", map[string]any{"name": "one more"})
	if detail, _ := full.Body["detail"].(string); full.Status != http.StatusBadRequest || full.Body["code"] != "limit_reached" || !strings.Contains(detail, "3 insights") {
		t.Errorf("a project that is full answers %d: %s", full.Status, full.Raw)
	}
	project := fmt.Sprint(id)
	stdout, stderr, err := s.Command(nil, "project", "purge", "--project", project)
	if want := fmt.Sprintf(`{"project":%d,"insights":0,"dashboards":0,"tiles":0,"endpoints":0,"keys":0,"cohorts":0,"actions":0,"annotations":0,"deletions":0}`, id); err != nil || strings.TrimSpace(stdout) != want {
		t.Errorf("a purge of what is 30 days old: %v %s %s", err, stdout, stderr)
	}
	stdout, stderr, err = s.Command(nil, "project", "purge", "--project", project, "--older-than", "0s")
	if want := fmt.Sprintf(`{"project":%d,"insights":2,"dashboards":0,"tiles":0,"endpoints":0,"keys":0,"cohorts":0,"actions":0,"annotations":0,"deletions":0}`, id); err != nil || strings.TrimSpace(stdout) != want {
		t.Errorf("a purge of all that is deleted: %v %s %s", err, stdout, stderr)
	}
	saveInsight(t, c, map[string]any{"name": "one more"})
	for _, args := range [][]string{{"--project", "99"}, {"--project", project, "--older-than", "soon"}, {"--project", project, "--older-than", "-1h"}, {}} {
		if stdout, stderr, err := s.Command(nil, append([]string{"project", "purge"}, args...)...); err == nil || stderr == "" {
			t.Errorf("purge %v: %v %s %s", args, err, stdout, stderr)
		}
	}
}

// TestHalfABody: a server closes a connection that stalls in the middle of a body, and others are not affected.
func TestHalfABody(t *testing.T) {
	t.Parallel() // it waits for the limit
	c := newProject(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.Server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	fmt.Fprintf(conn, "POST /api/projects/%d/query/ HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{\"query\": {", c.Project, conn.RemoteAddr(), c.Key)
	if answer := c.HogQL(t, "select 1"); answer.Status != http.StatusOK {
		t.Errorf("another request answers %d", answer.Status)
	}
	if err := conn.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408 ") || !strings.Contains(string(raw), `"code":"request_timeout"`) {
		t.Errorf("%v: %s", err, raw)
	}
}
