package browser_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// blocks returns the blocks of commands in a documentation page, below a heading if one is given.
func blocks(t *testing.T, name, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(repository(t, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if heading != "" {
		_, text, _ = strings.Cut(text, "\n## "+heading+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
	}
	var out []string
	for _, block := range harness.Blocks(text) {
		if !strings.HasPrefix(block, "{\n") { // not a Caddyfile
			out = append(out, block)
		}
	}
	return out
}

// workshop is the reader's folder, with a shell in which the commands in the documentation work as written.
type workshop struct {
	folder string
	setup  string // the README's first block, with keys
	env    []string
}

// read decodes a JSON file that a command wrote.
func (w workshop) read(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.folder, name))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newWorkshop makes a workshop for a project. It skips the test on machines without curl, except in CI.
func newWorkshop(t *testing.T, server *harness.Server, project int64, key, secret string) workshop {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs curl")
		}
		t.Skip("there is no curl")
	}
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	packages, err := harness.Packages(repository(t, "tests", "clients", "typescript"))
	if err != nil {
		t.Fatalf("fetching npm packages: %v", err)
	}
	w := workshop{folder: t.TempDir()}
	if err := os.Symlink(repository(t, "docs"), filepath.Join(w.folder, "docs")); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(w.folder, "tools")
	for path, script := range map[string]string{
		// The server's commands find the server at its address.
		filepath.Join(w.folder, "bin", "caddy"): `exec ` + binary + ` "$@" --address ` + server.Admin,
		// npm install provides the requested packages in their pinned versions.
		filepath.Join(tools, "npm"): `[ "$1" = install ] && shift
for name; do [ -d "` + packages + `/node_modules/$name" ] || { echo "$name is not pinned" >&2; exit 1; }; done
ln -s ` + packages + `/node_modules node_modules`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nset -eu\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "TMPDIR="+w.folder)
	first := blocks(t, "README.md", "A tour")[0]
	w.setup = strings.NewReplacer("phx_…", key, "phs_…", secret, "http://localhost:8080", server.URL, "/projects/1 ", fmt.Sprintf("/projects/%d ", project)).Replace(first)
	if strings.Contains(w.setup, "…") || !strings.Contains(w.setup, secret) {
		t.Fatalf("the README's first block is not understood:\n%s", first)
	}
	return w
}

// command returns a block of commands that is not started yet.
func (w workshop) command(block string) *exec.Cmd {
	cmd := exec.Command("sh", "-eu", "-c", w.setup+"\n"+block)
	cmd.Dir, cmd.Env = w.folder, w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a block of commands, and returns its output.
func (w workshop) run(t *testing.T, block string) string {
	t.Helper()
	out, err := w.command(block).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v\n%s\nprinted\n%s\n%s", err, block, out, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// serve starts a block of commands that serves a page, and returns when it does.
func (w workshop) serve(t *testing.T, block, url string) {
	t.Helper()
	cmd := w.command(block)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended already
		_ = cmd.Wait()                                      // it was killed
		if t.Failed() {
			t.Logf("the page's backend printed\n%s", printed.String())
		}
	})
	harness.Eventually(t, time.Minute, func() error {
		answer, err := http.Get(url)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// answers parses the JSON values that a block of commands printed, with or without response headers.
func answers(t *testing.T, printed string) []map[string]any {
	t.Helper()
	bodies := regexp.MustCompile(`(?s)HTTP/1\.1 \d.*?\r\n\r\n`).ReplaceAllString(printed, "")
	var out []map[string]any
	for decoder := json.NewDecoder(strings.NewReader(bodies)); ; {
		var body map[string]any
		err := decoder.Decode(&body)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, printed)
		}
		out = append(out, body)
	}
}

// TestWalk runs all commands in README's tour and docs/dashboards.md, as written, against the demo.
func TestWalk(t *testing.T) {
	t.Parallel()
	server := harness.Start(t) // its own: the commands name project 1
	id, key := server.Project(t, "demo")
	if id != 1 {
		t.Fatalf("the demo is project %d; the README calls number 1", id)
	}
	secret := server.Key(t, id, "endpoint:read", "secret")
	w := newWorkshop(t, server, id, key, secret)
	server.MustCommand(t, nil, nil, "import", "--project", "1", repository(t, "demo", "commits.ndjson.gz"))
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, fmt.Sprintf("PORT=%d", ports[0]))
	months := activity(t, "tsdb", "2012-01-01")

	steps := []struct {
		has   string // what identifies the block
		check func(t *testing.T, printed string)
	}{
		{"export KEY", nil},
		{"FunnelsQuery", checkAnswers},
		{"insight_variables/", checkPublished},
		{`"offset": 12`, func(t *testing.T, printed string) { t.Helper(); checkRuns(t, printed, months) }},
		{"openapi-typescript", func(t *testing.T, printed string) { t.Helper(); checkClient(t, printed, months) }},
		{"node docs/examples/dashboard/server.mjs", nil},
		{"node docs/examples/dashboard/server.mjs", nil},
		{"key create", func(t *testing.T, printed string) {
			t.Helper()
			if made := answers(t, printed); len(made) != 1 || !strings.HasPrefix(fmt.Sprint(made[0]["key"]), "phs_") {
				t.Errorf("no key: %s", printed)
			}
		}},
		{`"rate": "60/m"`, func(t *testing.T, printed string) {
			t.Helper()
			if made := answers(t, printed); len(made) != 1 || !strings.HasPrefix(fmt.Sprint(made[0]["token"]), "eyJ") {
				t.Errorf("no token: %s", printed)
			}
		}},
		{"TOKEN=", func(t *testing.T, printed string) { t.Helper(); checkToken(t, printed, months) }},
		{"token rotate", nil},
	}
	all := append(blocks(t, "README.md", "A tour"), blocks(t, "docs/dashboards.md", "")...)
	if len(all) != len(steps) {
		t.Fatalf("there are %d blocks of commands, not %d:\n%q", len(all), len(steps), all)
	}
	for i, step := range steps {
		if !strings.Contains(all[i], step.has) {
			t.Fatalf("block %d is not the one with %s:\n%s", i, step.has, all[i])
		}
	}
	for i, step := range steps {
		switch {
		case strings.HasPrefix(step.has, "node"): // below
		case step.check == nil:
			w.run(t, all[i])
		default:
			step.check(t, w.run(t, all[i]))
		}
	}
	t.Run("the page", func(t *testing.T) {
		p := openTab(t)
		url := fmt.Sprintf("http://localhost:%d", ports[0])
		w.serve(t, all[5], url)
		p.open(t, url)
		p.shows(t, page("tsdb", months, 0))
		p.click(t, "#older")
		p.shows(t, page("tsdb", months, 1))
		p.keeps(t, key, secret)
	})
}

// TestFiveMinutes runs the commands of README's own project, as written.
func TestFiveMinutes(t *testing.T) {
	t.Parallel()
	server := harness.Start(t) // its own: captured events are counted
	id, key := server.Project(t, "demo")
	w := newWorkshop(t, server, id, key, "phs_none")
	var printed []string
	for _, block := range blocks(t, "README.md", "Your own project in five minutes") {
		if strings.Contains(block, "sleep ") { // a busy machine may need longer
			var project struct{ ID int64 }
			var made struct{ Key string }
			w.read(t, "project.json", &project)
			w.read(t, "key.json", &made)
			server.Client(project.ID, made.Key).Shows(t, "select count() from events", []any{2.0})
		}
		printed = append(printed, w.run(t, block))
		for line := range strings.Lines(block) { // a reader stays in one shell
			if strings.HasPrefix(line, "export ") {
				w.setup += "\n" + line
			}
		}
	}
	if len(printed) != 5 {
		t.Fatalf("there are %d blocks of commands: %q", len(printed), printed)
	}
	page, err := os.ReadFile(filepath.Join(w.folder, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`posthog\.init\("phc_\w{20,}", \{ api_host: "` + regexp.QuoteMeta(server.URL) + `" \}\)`).Match(page) {
		t.Errorf("the page is\n%s", page)
	}
	if got := answers(t, printed[2]); len(got) != 1 || got[0]["status"] != "Ok" {
		t.Errorf("the events are answered with %s", printed[2])
	}
	for at, want := range map[int]any{
		3: []any{[]any{"ordered", 2.0, 2.0, 19.5}},
		4: []any{[]any{"ann@example.com", 1.0}, []any{nil, 1.0}},
	} {
		got := answers(t, printed[at])
		if len(got) == 0 {
			t.Fatalf("no answer: %s", printed[at])
		}
		if diff := cmp.Diff(want, got[len(got)-1]["results"]); diff != "" {
			t.Errorf("block %d (-want +got):\n%s", at, diff)
		}
	}
}

// checkAnswers checks the answers to a query and a funnel.
func checkAnswers(t *testing.T, printed string) {
	t.Helper()
	got := answers(t, printed)
	if len(got) != 2 {
		t.Fatalf("there are %d answers:\n%s", len(got), printed)
	}
	if events, _ := got[0]["results"].([]any); len(events) != 4 {
		t.Errorf("the demo has the events %v", got[0]["results"])
	}
	if steps, _ := got[1]["results"].([]any); len(steps) != 2 {
		t.Errorf("the funnel has the steps %v", got[1]["results"])
	}
}

// checkPublished checks the records of two variables and an endpoint.
func checkPublished(t *testing.T, printed string) {
	t.Helper()
	var made []any
	for _, record := range answers(t, printed) {
		made = append(made, record["name"], record["code_name"], record["current_version"])
	}
	if diff := cmp.Diff([]any{"Team", "team", nil, "Since", "since", nil, "activity", nil, 1.0}, made); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// checkRuns checks the first two pages of months.
func checkRuns(t *testing.T, printed string, months []month) {
	t.Helper()
	var want, rows []any
	for _, m := range months[:24] {
		want = append(want, []any{m.start.Format(time.DateOnly), float64(m.commits), float64(m.authors)})
	}
	for _, answer := range answers(t, printed) {
		results, _ := answer["results"].([]any)
		rows = append(rows, results...)
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("two pages (-want +got):\n%s", diff)
	}
	if !strings.Contains(printed, "Cache-Status: caddy-analytics; hit") {
		t.Errorf("the second page does not come from the first one's snapshot:\n%s", printed)
	}
}

// checkClient checks the output of the generated client.
func checkClient(t *testing.T, printed string, months []month) {
	t.Helper()
	var want strings.Builder
	for _, m := range months[:12] {
		fmt.Fprintf(&want, "%s: %d commits by %d people\n", m.start.Format(time.DateOnly), m.commits, m.authors)
	}
	if !strings.Contains(printed, want.String()) {
		t.Errorf("the client prints\n%s\nnot\n%s", printed, want.String())
	}
}

// checkToken checks the rows that a token may see, and the two refusals.
func checkToken(t *testing.T, printed string, months []month) {
	t.Helper()
	var got []any
	for _, answer := range answers(t, printed) {
		if results, ok := answer["results"].([]any); ok {
			first, _ := results[0].(map[string]any)
			got = append(got, strconv.Itoa(len(results)), first["month"], first["commits"])
			continue
		}
		got = append(got, answer["detail"])
	}
	want := []any{
		"3", months[0].start.Format(time.DateOnly), float64(months[0].commits), "Variable team: this key fixes its value.",
		"This token cannot be used from this origin.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs with a token (-want +got):\n%s", diff)
	}
}
