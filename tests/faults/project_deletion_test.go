package faults_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestDeletedProject deletes projects and kills the server at several moments meanwhile. Either a project still exists with all its data, or its keys and
// tokens are invalid and it is gone for good: in the end, nothing of it is on disk.
func TestDeletedProject(t *testing.T) {
	tr, token := newTrace(t)
	server := tr.Server
	upload(t, tr)
	keeps, key := server.Project(t, "stays")
	other := server.Client(keeps, key)
	if _, _, err := server.Command(strings.NewReader(`{"event":"kept","distinct_id":"a","timestamp":"2026-01-01T00:00:00Z"}`+"\n"), "import", "--project", strconv.FormatInt(keeps, 10), "-"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.Command(nil, "project", "delete", strconv.FormatInt(tr.Project, 10), "--confirm", "Deletion"); err == nil {
		t.Fatal("a project is deleted by another name")
	}
	if _, without := tr.found(t); len(without) > 0 {
		t.Fatalf("after a deletion that was refused, the project is not in the answers of %q", without)
	}
	first := tr.Project
	victims := []*harness.Client{tr.Client}
	var late []string
	for _, kill := range []struct {
		name  string
		gone  bool // from the registry
		over  bool // the command may have ended
		await func(project string)
	}{
		{"asked for", false, false, func(project string) {
			eventuallyAtOnce(t, func() error {
				request := regexp.MustCompile(`"method":"DELETE","host":"[^"]*","uri":"/analytics/projects/` + project + `"`)
				if n := len(request.FindAllString(server.Log(), -1)); n < 2 { // the first one was refused
					return fmt.Errorf("the server has %d requests", n)
				}
				return nil
			})
		}},
		{"gone from the registry", true, false, func(string) {
			eventuallyAtOnce(t, func() error {
				if answer := tr.Do(t, http.MethodGet, "status/", nil); answer.Status != http.StatusUnauthorized {
					return fmt.Errorf("status %d", answer.Status)
				}
				return nil
			})
		}},
		{"some rows removed", true, false, func(project string) { awaitStatement(t, server, `team_id = `+project+`\b`) }},
		{"on its way off the disk", true, true, func(project string) {
			eventuallyAtOnce(t, func() error {
				for _, d := range listed(t, server).Deleted {
					switch {
					case strconv.FormatInt(d.ID, 10) != project || d.RemovedAt == nil:
					case d.ErasedAt != nil:
						t.Fatal("the project is erased before the server is killed")
					default:
						return nil
					}
				}
				return errors.New("the rows are not removed")
			})
		}},
	} {
		if tr.Project != first {
			project, key := server.Project(t, "deletion")
			tr.Client = server.Client(project, key)
			token = captureToken(t, server, project)
			tr.capture(t, token, event("bought", "user-"+tr.mark, map[string]any{"secret": tr.mark, "$set": map[string]any{"email": tr.mark}}))
			victims = append(victims, tr.Client)
		}
		project := strconv.FormatInt(tr.Project, 10)
		ended := make(chan error, 1)
		go func() {
			_, _, err := server.Command(nil, "project", "delete", project, "--confirm", "deletion")
			ended <- err
		}()
		kill.await(project)
		restart(t, server)
		if err := <-ended; err == nil && !kill.over {
			late = append(late, kill.name)
		}
		count := map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select count() > 0 from events where properties.secret = '" + tr.mark + "'"}}
		answer := tr.Do(t, http.MethodPost, "query/", count)
		if kill.gone && answer.Status != http.StatusUnauthorized {
			t.Fatalf("%s: the project is there again: %d %s", kill.name, answer.Status, answer.Raw)
		}
		if answer.Status != http.StatusUnauthorized {
			if answer.Status != http.StatusOK || !strings.Contains(string(answer.Raw), `"results":[[1]]`) {
				t.Fatalf("half of the project is gone: %d %s", answer.Status, answer.Raw)
			}
			if _, stderr, err := server.Command(nil, "project", "delete", strconv.FormatInt(tr.Project, 10), "--confirm", "deletion"); err != nil {
				t.Fatalf("deleting again: %v\n%s", err, stderr)
			}
		}
		body := fmt.Sprintf(`{"api_key": %q, "event": "late", "distinct_id": %q}`, token, tr.mark)
		if answer := tr.Do(t, http.MethodPost, "/capture/", body); answer.Status == http.StatusOK {
			t.Errorf("the token still captures: %s", answer.Raw)
		}
		tr.Client = server.Client(0, "") // so that the next round makes another project
	}
	if len(late) > 1 { // on a busy machine, one moment may be missed
		t.Errorf("the deletions were over before the server was killed: %q", late)
	}
	harness.Eventually(t, 5*time.Minute, func() error {
		time.Sleep(time.Second)
		list := listed(t, server)
		if len(list.Projects) != 1 || len(list.Deleted) != len(victims) {
			t.Fatalf("there are %+v", list)
		}
		for _, d := range list.Deleted {
			if d.ErasedAt == nil {
				return fmt.Errorf("project %d is not erased", d.ID)
			}
		}
		return nil
	})
	if files := tr.onDisk(t); len(files) > 0 {
		t.Errorf("after the erasure, on the disk: %q", files)
	}
	for _, c := range victims {
		if answer := c.Do(t, http.MethodGet, "events/", nil); answer.Status != http.StatusUnauthorized {
			t.Errorf("project %d answers %d %s", c.Project, answer.Status, answer.Raw)
		}
	}
	other.Shows(t, "select event from events", []any{"kept"})
	if next, _ := server.Project(t, "next"); next <= victims[len(victims)-1].Project {
		t.Errorf("a new project has the number %d of one that was deleted", next)
	}
}

// projects are the projects of a server.
type projects struct {
	Projects []struct{ ID int64 }
	Deleted  []struct {
		ID        int64
		RemovedAt *time.Time `json:"removed_at"`
		ErasedAt  *time.Time `json:"erased_at"`
	}
}

// listed returns the projects of the server.
func listed(t *testing.T, server *harness.Server) (list projects) {
	t.Helper()
	if err := server.Ask("/analytics/projects", nil, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// forgetParts makes ClickHouse remove replaced parts from disk within seconds instead of minutes.
func forgetParts(t *testing.T, server *harness.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	engine, err := embeddedtest.Start(t.Context(), filepath.Join(server.Folder, "data", "engine"))
	if err != nil {
		t.Fatal(err)
	}
	conn := embeddedtest.Connect(t, engine.DSN())
	for _, table := range physical.Names() {
		if err := conn.Exec(t.Context(), "ALTER TABLE "+table+" MODIFY SETTING old_parts_lifetime = 2, cleanup_delay_period = 1, max_cleanup_delay_period = 2"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(engine.Close(), server.Run()); err != nil {
		t.Fatal(err)
	}
}

// upload imports a file over HTTP. The report on a bad line in it contains the mark.
func upload(t *testing.T, tr *trace) {
	t.Helper()
	lines := fmt.Sprintf(`{"event": "e", "distinct_id": "bob", "timestamp": %q}`, tr.mark) + "\n"
	answer := tr.Do(t, http.MethodPost, "imports/?filename="+tr.mark+".jsonl", lines)
	if answer.Status != http.StatusCreated && answer.Status != http.StatusAccepted {
		t.Fatalf("uploading: %d %s", answer.Status, answer.Raw)
	}
	for _, file := range tr.onDisk(t) {
		if strings.HasPrefix(file, filepath.Join("data", "imports")+string(filepath.Separator)) {
			return
		}
	}
	t.Fatal("no file of an import has the mark")
}
