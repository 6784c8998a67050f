package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestCohortsPage runs the examples in docs/cohorts.md in order. They are about the first cohorts of a project.
func TestCohortsPage(t *testing.T) {
	own := harness.Start(t)
	project, _ := own.Project(t, "page")
	c := own.Client(project, own.Key(t, project, "cohort:read,cohort:write,person:read,query:read", "personal"))
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	importLines(t, c, fmt.Sprintf(`{"type":"person","distinct_ids":["ann"],"properties":{"plan":"pro"}}
{"type":"person","distinct_ids":["bob"],"properties":{"plan":"free"}}
{"event":"$pageview","distinct_id":"ann","timestamp":%[1]q}
{"event":"signed up","distinct_id":"ann","timestamp":%[1]q}
{"event":"signed up","distinct_id":"bob","timestamp":%[1]q}
`, yesterday))
	ann := idOf(t, c, "ann")
	ran := 0
	for _, text := range harness.Blocks(document(t, "docs/cohorts.md")) {
		text = strings.ReplaceAll(text, "01900000-0000-7000-8000-000000000000", ann)
		ran++
		if strings.HasPrefix(text, "curl ") {
			uploadByCurl(t, c, text)
			continue
		}
		method, path, body := exampleOf(text)
		if answer := c.Do(t, method, path, body); answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
			t.Errorf("%s\nanswers %d %s", text, answer.Status, answer.Raw)
		}
	}
	if ran < 13 {
		t.Errorf("only %d examples", ran)
	}
	for _, want := range []struct {
		cohort  int
		members []string
	}{{1, []string{"ann"}}, {2, []string{"bob"}}, {3, nil}, {4, []string{"ann", "bob"}}} {
		harness.Eventually(t, time.Minute, func() error {
			if diff := cmp.Diff(want.members, membersOf(t, c, want.cohort)); diff != "" {
				return fmt.Errorf("members of the cohort %d (-want +got):\n%s", want.cohort, diff)
			}
			return nil
		})
	}
}

// exampleOf returns the request in an example: a query, or a request line and body.
func exampleOf(text string) (method, path string, body any) {
	switch {
	case strings.HasPrefix(text, "{"):
		return http.MethodPost, "query/", fields{"query": json.RawMessage(text)}
	case strings.HasPrefix(text, "select "):
		return http.MethodPost, "query/", fields{"query": fields{"kind": "HogQLQuery", "query": text}}
	}
	head, rest, _ := strings.Cut(text, "\n")
	method, path, _ = strings.Cut(head, " ")
	if rest != "" {
		body = rest
	}
	return method, path, body
}

// uploadByCurl runs the example that uploads a file.
func uploadByCurl(t *testing.T, c *harness.Client, text string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs curl")
		}
		t.Log("there is no curl")
		return
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "beta.csv"), []byte("bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := fmt.Sprintf("%s/api/projects/%d/", c.Server.URL, c.Project)
	upload := exec.Command("sh", "-c", strings.ReplaceAll(text, "https://analytics.example.com/api/projects/1/", site))
	upload.Dir, upload.Env = folder, append(os.Environ(), "KEY="+c.Key)
	raw, err := upload.Output()
	var made struct {
		ID int
	}
	if err != nil || json.Unmarshal(raw, &made) != nil || made.ID == 0 {
		t.Fatalf("%s\nanswers %s, %v", text, raw, err)
	}
	harness.Eventually(t, time.Minute, func() error {
		if diff := cmp.Diff([]string{"bob"}, membersOf(t, c, made.ID)); diff != "" {
			return fmt.Errorf("members of the uploaded cohort (-want +got):\n%s", diff)
		}
		return nil
	})
}

// idOf returns the id of the person with a distinct id.
func idOf(t *testing.T, c *harness.Client, distinct string) string {
	t.Helper()
	rows := c.Query(t, "select toString(person_id) from person_distinct_ids where distinct_id = '"+distinct+"'")
	if len(rows) != 1 {
		t.Fatalf("%s is %v", distinct, rows)
	}
	return rows[0].([]any)[0].(string)
}

// membersOf returns the first distinct id of each member of a cohort, in order.
func membersOf(t *testing.T, c *harness.Client, cohort int) (names []string) {
	t.Helper()
	answer := c.Do(t, http.MethodGet, fmt.Sprintf("cohorts/%d/persons/", cohort), nil)
	if answer.Status != http.StatusOK {
		t.Fatalf("members of %d: %d %s", cohort, answer.Status, answer.Raw)
	}
	var page struct {
		Results []struct {
			DistinctIDs []string `json:"distinct_ids"`
		}
	}
	if err := json.Unmarshal(answer.Raw, &page); err != nil {
		t.Fatal(err)
	}
	for _, one := range page.Results {
		names = append(names, slices.Min(one.DistinctIDs))
	}
	slices.Sort(names)
	return names
}

// TestCohortPersonsAreThoseOfNow reads the members after each change: none is answered from a cache.
func TestCohortPersonsAreThoseOfNow(t *testing.T) {
	id, _ := server.Project(t, t.Name())
	c := server.Client(id, server.Key(t, id, "cohort:read,cohort:write,person:read,query:read", "personal"))
	importLines(t, c, `{"type":"person","distinct_ids":["ann"],"properties":{"plan":"pro"}}
{"type":"person","distinct_ids":["bob"],"properties":{"plan":"free"}}
{"type":"person","distinct_ids":["cid"],"properties":{"plan":"free"}}
`)
	send := func(method, path string, body any) {
		t.Helper()
		if answer := c.Do(t, method, path, body); answer.Status >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Raw)
		}
	}
	const computed, static = 1, 2
	planned := func(plan string) fields {
		return fields{"name": "by plan", "filters": fields{"properties": fields{
			"type": "AND", "values": []any{fields{"type": "person", "key": "plan", "value": plan, "operator": "exact"}},
		}}}
	}
	isComputed := func() {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if answer := c.Do(t, http.MethodGet, "cohorts/1/", nil); answer.Body["is_calculating"] != false {
				return fmt.Errorf("not computed: %s", answer.Raw)
			}
			return nil
		})
	}
	send(http.MethodPost, "cohorts/", planned("pro"))
	send(http.MethodPost, "cohorts/", fields{"name": "chosen", "is_static": true})
	for _, step := range []struct {
		name   string
		do     func()
		cohort int
		want   []string
	}{
		{"an empty cohort", func() {}, static, nil},
		{"added", func() {
			send(http.MethodPatch, "cohorts/2/add_persons_to_static_cohort/", fields{"person_ids": []string{idOf(t, c, "ann"), idOf(t, c, "cid")}})
		}, static, []string{"ann", "cid"}},
		{"taken out", func() {
			send(http.MethodPatch, "cohorts/2/remove_person_from_static_cohort/", fields{"person_id": idOf(t, c, "ann")})
		}, static, []string{"cid"}},
		{"imported", func() {
			importLines(t, c, `{"type":"cohort","cohort_id":2,"distinct_ids":["bob"]}`)
		}, static, []string{"bob", "cid"}},
		{"computed", isComputed, computed, []string{"ann"}},
		{"computed with other filters", func() {
			send(http.MethodPatch, "cohorts/1/", planned("free"))
			isComputed()
		}, computed, []string{"bob", "cid"}},
		{"merged into another", func() {
			importLines(t, c, `{"type":"person","distinct_ids":["bob","cid"],"properties":{}}`)
		}, static, []string{"bob"}},
		{"merged into another, computed", func() {}, computed, []string{"bob"}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, membersOf(t, c, step.cohort)); diff != "" {
			t.Errorf("%s: members (-want +got):\n%s", step.name, diff)
		}
	}
}
