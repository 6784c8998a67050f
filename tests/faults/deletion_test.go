package faults_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// trace looks for remains of a person.
type trace struct {
	*harness.Client

	mark   string // in its distinct ids, properties and events
	cursor string // of a run before the deletion
}

// asked are requests whose answers contain the person, by description. A nil body means GET.
func (tr *trace) asked() map[string]any {
	events := map[string]any{"kind": "EventsNode", "event": "bought"}
	query := func(fields map[string]any) any { return map[string]any{"query": fields} }
	dates := map[string]any{"date_from": "2024-01-01", "date_to": "2030-01-01"}
	return map[string]any{
		"persons/": nil, "persons/?search=" + tr.mark: nil, "persons/values/?key=email": nil, "events/": nil, "events/values/?key=custom_event": nil,
		"cohorts/1/persons/": nil, "cohorts/2/persons/": nil,
		"endpoints/kept/run":               map[string]any{},
		"endpoints/direct/run":             map[string]any{},
		"query/?what=rows of events":       query(map[string]any{"kind": "HogQLQuery", "query": "select event, distinct_id, properties from events"}),
		"query/?what=people":               query(map[string]any{"kind": "HogQLQuery", "query": "select id, properties from persons"}),
		"query/?what=distinct ids":         query(map[string]any{"kind": "HogQLQuery", "query": "select distinct_id, person_id from person_distinct_ids"}),
		"query/?what=rows of people":       query(map[string]any{"kind": "HogQLQuery", "query": "select id, properties from raw_persons"}),
		"query/?what=rows of distinct ids": query(map[string]any{"kind": "HogQLQuery", "query": "select distinct_id from raw_person_distinct_ids where not is_deleted"}),
		"query/?what=rows of overrides":    query(map[string]any{"kind": "HogQLQuery", "query": "select distinct_id from raw_person_distinct_id_overrides"}),
		"query/?what=joined":               query(map[string]any{"kind": "HogQLQuery", "query": "select person.properties.email from events"}),
		"query/?what=events":               query(map[string]any{"kind": "EventsQuery", "select": []any{"*", "person"}, "after": "2024-01-01"}),
		"query/?what=actors":               query(map[string]any{"kind": "ActorsQuery", "select": []any{"person", "id"}}),
		"query/?what=a trend": query(map[string]any{
			"kind": "TrendsQuery", "series": []any{events}, "dateRange": dates,
			"breakdownFilter": map[string]any{"breakdown": "email", "breakdown_type": "person"},
		}),
		"query/?what=the actors of a trend": query(map[string]any{
			"kind": "ActorsQuery", "select": []any{"person"},
			"source": map[string]any{
				"kind": "InsightActorsQuery", "source": map[string]any{"kind": "TrendsQuery", "series": []any{events}, "dateRange": dates, "interval": "year"}, "day": time.Now().UTC().Format("2006") + "-01-01",
			},
		}),
	}
}

// found sends all requests, and returns those whose answers contain the mark. All must be answered.
func (tr *trace) found(t *testing.T) (with, without []string) {
	t.Helper()
	asked := tr.asked()
	for _, what := range slices.Sorted(maps.Keys(asked)) {
		method, body := http.MethodPost, asked[what]
		if body == nil {
			method = http.MethodGet
		}
		path, name, _ := strings.Cut(what, "?what=")
		answer := tr.Do(t, method, path, body)
		if answer.Status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", path, name, answer.Status, answer.Raw)
		}
		if bytes.Contains(answer.Raw, []byte(tr.mark)) {
			with = append(with, what)
		} else {
			without = append(without, what)
		}
	}
	return with, without
}

// gone fails if an answer has the mark.
func (tr *trace) gone(t *testing.T, when string) {
	t.Helper()
	if with, _ := tr.found(t); len(with) > 0 {
		t.Fatalf("%s, the deleted person is in the answers of %q", when, with)
	}
	if tr.cursor != "" {
		answer := tr.Do(t, http.MethodPost, "endpoints/direct/run", map[string]any{"cursor": tr.cursor})
		if answer.Status != http.StatusBadRequest && answer.Status != http.StatusGone || bytes.Contains(answer.Raw, []byte(tr.mark)) {
			t.Fatalf("%s, a cursor of before is answered with %d %s", when, answer.Status, answer.Raw)
		}
	}
}

// onDisk returns the files that contain the mark, decompressing those of the journal.
func (tr *trace) onDisk(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(tr.Server.Folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // ClickHouse has just removed it
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".zst") {
			in, err := zstd.NewReader(bytes.NewReader(data))
			if err != nil {
				return err
			}
			defer in.Close()
			plain, _ := io.ReadAll(in) // the end may not be written yet
			data = append(data, plain...)
		}
		if bytes.Contains(data, []byte(tr.mark)) {
			name, _ := filepath.Rel(tr.Server.Folder, path)
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// capture sends events of people, and waits until they are visible.
func (tr *trace) capture(t *testing.T, token string, events ...map[string]any) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"api_key": token, "batch": events})
	if err != nil {
		t.Fatal(err)
	}
	if answer := tr.Do(t, http.MethodPost, "/batch/", string(raw)); answer.Status != http.StatusOK {
		t.Fatalf("capturing: %d %s", answer.Status, answer.Raw)
	}
	last := events[len(events)-1]
	tr.Shows(t, fmt.Sprintf("select count() from events where uuid = '%s'", last["uuid"]), []any{1.0})
}

func event(name, id string, properties map[string]any) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	return map[string]any{
		"event": name, "distinct_id": id, "uuid": uuid.NewString(), "timestamp": time.Now().UTC().Format(time.RFC3339), "properties": properties,
	}
}

// newTrace makes a project with a marked person and another one, in two cohorts and two endpoints, and fills all caches.
func newTrace(t *testing.T) (tr *trace, token string) {
	t.Helper()
	server := harness.Start(t, "limits {\n\t\t\trate 100000/s\n\t\t}")
	forgetParts(t, server)
	project, _ := server.Project(t, "deletion")
	key := server.Key(t, project, harness.AllScopes, "personal")
	tr = &trace{Client: server.Client(project, key), mark: "mark" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	token = captureToken(t, server, project)
	tr.capture(t, token,
		event("bought", "anon-"+tr.mark, map[string]any{"secret": tr.mark}),
		event("$identify", "user-"+tr.mark, map[string]any{"$anon_distinct_id": "anon-" + tr.mark, "$set": map[string]any{"email": tr.mark + "@x.test"}}),
		event("bought", "bob", map[string]any{"$set": map[string]any{"email": "bob@x.test"}}),
		event("only "+tr.mark, "user-"+tr.mark, nil),
		event("bought", "user-"+tr.mark, map[string]any{"secret": tr.mark}),
	)
	post := func(path string, body any) map[string]any {
		t.Helper()
		answer := tr.Do(t, http.MethodPost, path, body)
		if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
			t.Fatalf("POST %s: %d %s", path, answer.Status, answer.Raw)
		}
		return answer.Body
	}
	post("cohorts/", map[string]any{"name": "computed", "filters": map[string]any{"properties": map[string]any{"type": "AND", "values": []any{
		map[string]any{"type": "person", "key": "email", "operator": "icontains", "value": "@x.test"},
	}}}})
	post("cohorts/", map[string]any{"name": "static", "is_static": true, "_create_static_person_ids": []string{}})
	person := tr.person(t)
	if answer := tr.Do(t, http.MethodPatch, "cohorts/2/add_persons_to_static_cohort/", map[string]any{"person_ids": []string{person}}); answer.Status != http.StatusOK {
		t.Fatalf("filling a cohort: %d %s", answer.Status, answer.Raw)
	}
	rows := map[string]any{"kind": "HogQLQuery", "query": "select distinct_id, properties.secret from events order by distinct_id desc"}
	post("endpoints/", map[string]any{"name": "kept", "query": rows, "is_materialized": true})
	post("endpoints/", map[string]any{"name": "direct", "query": rows})
	harness.Eventually(t, time.Minute, func() error {
		answer := tr.Do(t, http.MethodPost, "endpoints/kept/run", map[string]any{})
		if answer.Body["endpoint_materialized"] != true {
			return fmt.Errorf("the run is not from the table: %s", answer.Raw)
		}
		if with, without := tr.found(t); len(without) > 0 {
			return fmt.Errorf("only %q have the person, and %q not", with, without)
		}
		return nil
	})
	tr.cursor, _ = post("endpoints/direct/run", map[string]any{"limit": 1})["next_cursor"].(string)
	if tr.cursor == "" {
		t.Fatal("a run has no cursor")
	}
	return tr, token
}

// person returns the id of the marked person.
func (tr *trace) person(t *testing.T) string {
	t.Helper()
	answer := tr.Do(t, http.MethodGet, "persons/?distinct_id=user-"+tr.mark, nil)
	list, _ := answer.Body["results"].([]any)
	if len(list) != 1 {
		t.Fatalf("the person is not there: %s", answer.Raw)
	}
	one, _ := list[0].(map[string]any)
	id, _ := one["id"].(string)
	return id
}

// TestDeletedPerson deletes a person with its events, and looks for remains: at once in all answers, and after the erasure on disk. The server is killed
// in between.
func TestDeletedPerson(t *testing.T) {
	tr, token := newTrace(t)
	person := tr.person(t)
	if files := tr.onDisk(t); len(files) == 0 {
		t.Fatal("the person is not on the disk before it is deleted: the test would not find it")
	} else {
		t.Logf("before, on the disk: %q", files)
	}
	if answer := tr.Do(t, http.MethodDelete, "persons/"+strings.ToUpper(person)+"/?delete_events", nil); answer.Status != http.StatusAccepted || len(answer.Raw) > 0 {
		t.Fatalf("deleting: %d %s", answer.Status, answer.Raw)
	}
	tr.gone(t, "after the deletion")
	restart(t, tr.Server)
	tr.cursor = "" // servers do not know each other's cursors
	tr.gone(t, "after a crash")
	if answer := tr.Do(t, http.MethodDelete, "persons/"+person+"/", nil); answer.Status != http.StatusNotFound {
		t.Errorf("deleting again: %d %s", answer.Status, answer.Raw)
	}
	state := func() map[string]any {
		t.Helper()
		answer := tr.Do(t, http.MethodGet, "persons/deletion_status/?person_uuid="+person, nil)
		list, _ := answer.Body["results"].([]any)
		if len(list) != 1 {
			t.Fatalf("the status is %s", answer.Raw)
		}
		one, _ := list[0].(map[string]any)
		return one
	}
	if s := state(); s["status"] != "pending" || s["hidden_at"] == nil || s["event_count"] != 4.0 {
		t.Errorf("before the erasure the status is %v", s)
	}

	project := strconv.FormatInt(tr.Project, 10)
	ended := make(chan error, 1)
	go func() {
		_, _, err := tr.Server.Command(nil, "person", "delete", "--project", project, "--now", "--events", "bob")
		ended <- err
	}()
	awaitStatement(t, tr.Server, "APPLY DELETED MASK") // from here on it takes seconds, since parts are kept for two
	restart(t, tr.Server)
	if err := <-ended; err == nil {
		t.Fatal("the erasure was over before the server was killed")
	}
	if s := state(); s["status"] != "pending" {
		t.Fatalf("after an erasure that broke off the status is %v", s)
	}
	tr.gone(t, "after an erasure that broke off")
	tr.capture(t, token, event("seen", "carol", nil))
	_, stderr, err := tr.Server.Command(nil, "person", "delete", "--project", project, "--now", "carol")
	if err != nil {
		t.Fatalf("deleting by a command: %v\n%s", err, stderr)
	}
	if files := tr.onDisk(t); len(files) > 0 {
		t.Errorf("after the erasure, on the disk: %q", files)
	}
	if s := state(); s["status"] != "completed" || s["delete_verified_at"] == nil {
		t.Errorf("after the erasure the status is %v", s)
	}
	tr.gone(t, "after the erasure")

	tr.capture(t, token, event("bought", "user-"+tr.mark, nil))
	tr.Shows(t, "select count(), count(distinct person_id) from events where event = 'bought' and startsWith(distinct_id, 'user-')", []any{1.0, 1.0})
	if tr.person(t) == "" {
		t.Error("whoever comes in with the distinct id is nobody")
	}
}

// awaitStatement waits until ClickHouse has started to change rows with a statement that matches a pattern. ClickHouse keeps the last one of each table.
func awaitStatement(t *testing.T, server *harness.Server, pattern string) {
	t.Helper()
	statement := regexp.MustCompile(pattern)
	eventuallyAtOnce(t, func() error {
		files, err := filepath.Glob(filepath.Join(server.Folder, "data", "engine", "clickhouse", "store", "*", "*", "mutation_*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if raw, err := os.ReadFile(file); err == nil && statement.Match(raw) { // otherwise it was just removed
				return nil
			}
		}
		return fmt.Errorf("none of %d statements matches %q", len(files), pattern)
	})
}

// eventuallyAtOnce is harness.Eventually for states that do not last: it looks again after a millisecond.
func eventuallyAtOnce(t *testing.T, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func restart(t *testing.T, server *harness.Server) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
}
