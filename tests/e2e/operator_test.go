package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const threeLines = `{"event":"a","distinct_id":"p1","timestamp":"2024-01-01T00:00:00Z","properties":{"n":1}}
{"event":"b","distinct_id":"p1","timestamp":"2024-01-02T00:00:00Z","properties":{"n":2}}
{"event":"b","distinct_id":"p2","timestamp":"2024-01-03T00:00:00Z","properties":{"n":3}}
`

// TestImportTwice imports the same lines as a file, gzipped and from standard input: they are stored once.
func TestImportTwice(t *testing.T) {
	c := newProject(t)
	folder := t.TempDir()
	plain, packed := filepath.Join(folder, "events.ndjson"), filepath.Join(folder, "events.ndjson.gz")
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write([]byte(threeLines)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{plain: []byte(threeLines), packed: buffer.Bytes()} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	project := strconv.FormatInt(c.Project, 10)
	for _, source := range []string{plain, packed, plain} {
		server.MustCommand(t, nil, nil, "import", "--project", project, source)
		if diff := cmp.Diff([]any{row(3.0, 2.0)}, c.Query(t, "select count(), count(distinct person_id) from events")); diff != "" {
			t.Fatalf("after %s (-want +got):\n%s", filepath.Base(source), diff)
		}
	}
	importLines(t, c, threeLines)
	if diff := cmp.Diff([]any{row(3.0)}, c.Query(t, "select count(uuid) from events")); diff != "" {
		t.Errorf("after standard input (-want +got):\n%s", diff)
	}
}

// TestImportReportsBadLines checks that bad lines are reported with their numbers, that the others are imported, and that the exit status shows it.
func TestImportReportsBadLines(t *testing.T) {
	c := newProject(t)
	lines := strings.Split(strings.TrimSpace(threeLines), "\n")
	text := strings.Join([]string{lines[0], `{"event":`, lines[1], `{"event":"no person","timestamp":"2024-01-01"}`, `[]`, lines[2]}, "\n")
	stdout, stderr, err := server.Command(stringReader(text), "import", "--project", strconv.FormatInt(c.Project, 10), "-")
	if err == nil {
		t.Error("the exit status is 0")
	}
	for _, line := range []string{"line 2: ", "line 4: ", "line 5: "} {
		if !strings.Contains(stderr, line) {
			t.Errorf("%q is not on standard error:\n%s", line, stderr)
		}
	}
	var report struct{ Events, Bad int }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Events != 3 || report.Bad != 3 {
		t.Errorf("report %+v, %v: %s", report, err, stdout)
	}
	if !strings.Contains(stdout, `"bad_lines":[{"line":2,"reason":`) {
		t.Errorf("the report does not name the bad lines: %s", stdout)
	}
	if diff := cmp.Diff([]any{row(3.0)}, c.Query(t, "select count() from events")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestImportLearnsTypes checks that a property gets the type of its first value, unless that is switched off.
func TestImportLearnsTypes(t *testing.T) {
	learned, plain := newProject(t), newProject(t)
	importLines(t, learned, threeLines)
	server.MustCommand(t, nil, stringReader(threeLines), "import", "--project", strconv.FormatInt(plain.Project, 10), "--learn-types=false", "-")
	if diff := cmp.Diff([]any{row(6.0)}, learned.Query(t, "select sum(properties.n) from events")); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
	query := "select groupArray(properties.n) from (select properties from events order by timestamp)"
	if diff := cmp.Diff([]any{row([]any{"1", "2", "3"})}, plain.Query(t, query)); diff != "" {
		t.Errorf("not learned (-want +got):\n%s", diff)
	}
	server.MustCommand(t, nil, nil, "property", "set", "--project", strconv.FormatInt(plain.Project, 10), "--type", "event", "--name", "n", "--as", "Numeric")
	if diff := cmp.Diff([]any{row(6.0)}, plain.Query(t, "select sum(properties.n) from events")); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
}

func TestCommandsFail(t *testing.T) {
	c := newProject(t)
	tests := []struct {
		name, want string
		args       []string
	}{
		{"unknown project", "project 999999", []string{"key", "create", "--project", "999999", "--scopes", "query:read"}},
		{"unknown scope", "Invalid scope: everything", []string{"key", "create", "--project", strconv.FormatInt(c.Project, 10), "--scopes", "everything"}},
		{"scope of no secret key", "Invalid scope: *", []string{"key", "create", "--project", fmt.Sprint(c.Project), "--scopes", "*", "--kind", "secret"}},
		{"bad expiry", "is not a valid time from now (want, for example, 90d)", []string{"key", "create", "--project", fmt.Sprint(c.Project), "--scopes", "*", "--expires", "soon"}},
		{"bad zone", "timezone", []string{"project", "create", "--name", "x", "--timezone", "Mars/Olympus"}},
		{"bad week", "week_start_day", []string{"project", "create", "--name", "x", "--week-start", "3"}},
		{"missing flag", "required flag", []string{"project", "create"}},
		{"missing file", "opening the events", []string{"import", "--project", fmt.Sprint(c.Project), "no-such-file"}},
		{"unknown key", "not found", []string{"key", "revoke", "nosuchkey"}},
		{"unknown alert", "Error: alert nosuch of project", []string{"alert", "check", "--project", fmt.Sprint(c.Project), "nosuch"}},
		{"unknown cohort", "Error: cohort 999999 of project", []string{"cohort", "delete", "--project", fmt.Sprint(c.Project), "999999"}},
		{"bad type", `Error: --as must be String, Numeric, Boolean or DateTime, not "Money"`, []string{"property", "set", "--project", fmt.Sprint(c.Project), "--name", "n", "--as", "Money"}},
		{"no subcommand", "needs one of its subcommands", []string{"key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := server.Command(nil, tt.args...)
			if err == nil || stdout != "" && !strings.HasPrefix(tt.name, "no ") || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v\nstdout: %s\nstderr: %s\nwant %q on stderr", err, stdout, stderr, tt.want)
			}
		})
	}
}

// TestImportFlags: an import with a flag that is no boolean imports nothing, and one that may be written in several ways means the same.
func TestImportFlags(t *testing.T) {
	c := newProject(t)
	for query, want := range map[string]int{"dry_run=maybe": http.StatusBadRequest, "learn_types=2": http.StatusBadRequest, "dry_run=1": http.StatusOK, "dry_run=True": http.StatusOK} {
		address := fmt.Sprintf("http://%s/analytics/import?project=%d&%s", server.Admin, c.Project, query)
		answer, err := http.Post(address, "application/x-ndjson", strings.NewReader(threeLines))
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != want { // only the status matters
			t.Errorf("%s: %d, want %d", query, answer.StatusCode, want)
		}
	}
	c.Shows(t, "select count() from events", []any{0.0})
}

// TestKeysLive follows the life of a key: it works, is rolled and revoked, and a listing never shows it.
func TestKeysLive(t *testing.T) {
	c := newProject(t)
	project := strconv.FormatInt(c.Project, 10)
	status := func(key string) int {
		return server.Client(c.Project, key).HogQL(t, "select 1").Status
	}
	var made, rolled struct{ ID, Key string }
	server.MustCommand(t, &made, nil, "key", "create", "--project", project, "--scopes", "query:read", "--label", "nightly", "--expires", "90d")
	if got := status(made.Key); got != http.StatusOK {
		t.Fatalf("a new key answers %d", got)
	}
	server.MustCommand(t, &rolled, nil, "key", "roll", made.ID)
	if rolled.ID != made.ID || status(made.Key) != http.StatusUnauthorized || status(rolled.Key) != http.StatusOK {
		t.Errorf("after roll: old %d, new %d", status(made.Key), status(rolled.Key))
	}
	stdout, _, err := server.Command(nil, "key", "list", "--project", project)
	if err != nil || strings.Contains(stdout, rolled.Key) || !strings.Contains(stdout, rolled.Key[len(rolled.Key)-4:]) {
		t.Errorf("key list: %v: %s", err, stdout)
	}
	server.MustCommand(t, nil, nil, "key", "revoke", made.ID)
	if got := status(rolled.Key); got != http.StatusUnauthorized {
		t.Errorf("a revoked key answers %d", got)
	}
	for _, secret := range []string{made.Key, rolled.Key} {
		if strings.Contains(server.Log(), secret) {
			t.Error("the log holds a key")
		}
	}
}
