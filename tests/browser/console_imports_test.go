package browser_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// attach chooses a file in the page's only file field.
func (c *console) attach(t *testing.T, path string) {
	t.Helper()
	root, err := chromedp.Call(c.ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		t.Fatal(err)
	}
	field, err := chromedp.Call(c.ctx, dom.QuerySelector, dom.QuerySelectorParams{NodeID: root.Root.NodeID, Selector: `input[type="file"]`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(c.ctx, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, NodeID: field.NodeID}); err != nil {
		t.Fatalf("choosing %s: %v", path, err)
	}
	c.settle(t)
}

// imports waits until the list of imports, newest first, has these states.
func (c *console) imports(t *testing.T, want ...string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		if got := c.column(t, "Imports", 1); !slices.Equal(got, want) {
			return fmt.Errorf("the imports are %q, not %q", got, want)
		}
		return nil
	})
}

// TestConsoleImports checks and imports a table and a PostHog export, reads their reports, and cancels a running import.
func TestConsoleImports(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "files")
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	reader := signedIn(t, d.Server, client.Project, "batch_import:read", "project:read")
	reader.visit(t, "imports")
	reader.shows(t, "No imports over the API yet")
	if len(reader.find(t, "heading", "Import a file")) != 0 {
		t.Error("a key that only reads can import")
	}

	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "imports")
	c.attach(t, file("sales.csv", "what;who;when;amount\nbuy;ann;2024-01-31 10:00:00;9.99\nbuy;bob;2024-02-01 10:00:00;5\nbuy;ann;never;1\n"))
	c.expect("400")
	c.fill(t, "textbox", "Columns", "what")
	c.press(t, "button", "Check the file")
	c.shows(t, "Write column=field, not “what”.")
	c.fill(t, "textbox", "Columns", "what=nothing")
	c.press(t, "button", "Check the file")
	c.one(t, "alert", "") // the server's words
	c.fill(t, "textbox", "Columns", "what=event\nwho=distinct_id\nwhen=timestamp")
	c.press(t, "button", "Check the file")
	c.imports(t, "Completed, with bad lines")
	client.Shows(t, "select count() from events", []any{0.0})
	c.press(t, "button", "Report of sales.csv")
	c.shows(t, "This was a dry run: nothing was written.")
	c.shows(t, "Columns that became properties: amount.")
	c.shows(t, "New types of properties: amount Numeric.")
	c.inspect(t, "import-table")
	c.press(t, "button", "Close")

	c.press(t, "checkbox", "Dry run: check the file and say what it would bring, without writing")
	c.press(t, "button", "Import the file")
	c.imports(t, "Completed, with bad lines", "Completed, with bad lines")
	client.Shows(t, "select distinct_id, properties.amount from events order by distinct_id", []any{"ann", 9.99}, []any{"bob", 5.0})

	const line = `{"uuid": "0190a1de-3c1f-7d2b-9b2e-3f3c0a5e5b1%d", "event": "signup", "distinct_id": "cem", "timestamp": "2024-01-31T10:00:00+00:00", "propertes": {}, "person_properties": {"email": "cem@example.com"}, "created_at": "2024-01-31T10:00:00+00:00"}` + "\n"
	c.attach(t, file("export.jsonl", fmt.Sprintf(line, 1)+fmt.Sprintf(line, 2)))
	c.pick(t, "Format", "posthog")
	if len(c.find(t, "textbox", "Columns")) != 0 {
		t.Error("an export of PostHog has columns")
	}
	c.press(t, "button", "Import the file")
	c.imports(t, "Completed", "Completed, with bad lines", "Completed, with bad lines")
	c.press(t, "button", "Report of export.jsonl")
	c.one(t, "heading", "export.jsonl")
	if got := strings.Join(append(c.column(t, "Unknown fields", 0), c.column(t, "Unknown fields", 2)...), " "); got != "propertes properties" {
		t.Errorf("the unknown fields: %q", got)
	}
	c.inspect(t, "import-report")
	c.press(t, "button", "Close")
	client.Shows(t, "select count() from events where event = 'signup'", []any{2.0})

	c.attach(t, longImport(t, folder))
	c.pick(t, "Format", "ndjson")
	c.press(t, "button", "Import the file")
	harness.Eventually(t, time.Minute, func() error {
		if got := append(c.column(t, "Imports", 1), c.column(t, "Imports", 3)...); got[0] != "Running" || got[4] == "0" {
			return fmt.Errorf("states and lines are %q", got)
		}
		return nil
	})
	c.picture(t, "import-runs")
	c.press(t, "button", "Cancel long.gz")
	c.imports(t, "Canceled", "Completed", "Completed, with bad lines", "Completed, with bad lines")
	c.inspect(t, "imports")
}

// longImport is a file whose import takes far longer than cancelling it.
func longImport(t *testing.T, folder string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, "long.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	for i := range 1_000_000 {
		if _, err := fmt.Fprintf(z, `{"event": "visited", "distinct_id": "v%d", "timestamp": "2024-01-31T10:00:00Z", "properties": {"n": %d}}`+"\n", i%1000, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
