package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// TestPullKeepsFiles: whatever the names of the files, a pull replaces only the file of the same endpoint, and each endpoint has a file afterwards.
func TestPullKeepsFiles(t *testing.T) {
	const of, old = "name: %\nquery: select 1\n", "name: %\nquery: select 0\n"
	file := func(text, name string) string { return strings.Replace(text, "%", name, 1) }
	tests := []struct {
		name       string
		endpoints  []string
		there      map[string]string
		want       pullReport
		wantFolder map[string]string // each file's endpoint, or its text if it is none
	}{
		{
			"an empty folder",
			[]string{"a", "b"},
			nil,
			pullReport{Written: []string{"a.yaml", "b.yaml"}},
			map[string]string{"a.yaml": "a", "b.yaml": "b"},
		},
		{
			"the file of another endpoint",
			[]string{"a", "b"},
			map[string]string{"a.yaml": file(of, "b")},
			pullReport{Written: []string{"a-2.yaml"}, Unchanged: []string{"a.yaml"}},
			map[string]string{"a.yaml": "b", "a-2.yaml": "a"},
		},
		{
			"the outdated file of another endpoint",
			[]string{"a", "b"},
			map[string]string{"a.yaml": file(old, "b")},
			pullReport{Written: []string{"a-2.yaml", "a.yaml"}},
			map[string]string{"a.yaml": "b", "a-2.yaml": "a"},
		},
		{
			"the file of no endpoint",
			[]string{"a"},
			map[string]string{"a.yaml": file(of, "c"), "a-2.yaml": file(of, "d")},
			pullReport{Written: []string{"a-3.yaml"}, Unknown: []string{"a-2.yaml", "a.yaml"}},
			map[string]string{"a.yaml": "c", "a-2.yaml": "d", "a-3.yaml": "a"},
		},
		{
			"a name in other letters",
			[]string{"a"},
			map[string]string{"A.yaml": file(of, "c")},
			pullReport{Written: []string{"a-2.yaml"}, Unknown: []string{"A.yaml"}},
			map[string]string{"A.yaml": "c", "a-2.yaml": "a"},
		},
		{
			"a file that is not read",
			[]string{"a"},
			map[string]string{"a.YAML": "notes"},
			pullReport{Written: []string{"a-2.yaml"}},
			map[string]string{"a.YAML": "notes", "a-2.yaml": "a"},
		},
		{
			"endpoints whose names differ in case",
			[]string{"A", "a"},
			nil,
			pullReport{Written: []string{"A.yaml", "a-2.yaml"}},
			map[string]string{"A.yaml": "A", "a-2.yaml": "a"},
		},
		{
			"an endpoint with the name that was chosen",
			[]string{"a", "a-2"},
			map[string]string{"a.yaml": file(of, "c")},
			pullReport{Written: []string{"a-2.yaml", "a-2-2.yaml"}, Unknown: []string{"a.yaml"}},
			map[string]string{"a.yaml": "c", "a-2.yaml": "a", "a-2-2.yaml": "a-2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.there {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var answer adminapi.EndpointFiles
			for _, name := range tt.endpoints {
				answer.Files = append(answer.Files, endpointfile.Source{Path: name + ".yaml", Text: file(of, name)})
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer) }))
			defer server.Close()

			var got pullReport
			if err := json.Unmarshal(printed(t, server.Listener.Addr().String(), "pull", "--project", "1", dir), &got); err != nil {
				t.Fatal(err)
			}
			for _, paths := range [][]string{tt.want.Written, tt.want.Unchanged, tt.want.Unknown} {
				for n := range paths {
					paths[n] = filepath.Join(dir, paths[n])
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.Transformer("joined", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			folder := make(map[string]string)
			for _, entry := range entries {
				text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
				if err != nil {
					t.Fatal(err)
				}
				folder[entry.Name()] = string(text)
				if f, err := endpointfile.Parse(entry.Name(), text); err == nil {
					folder[entry.Name()] = f.Name
				}
			}
			if diff := cmp.Diff(tt.wantFolder, folder); diff != "" {
				t.Errorf("the folder (-want +got):\n%s", diff)
			}
		})
	}
}

// printed runs `endpoints …` against a server, and returns its standard output.
func printed(t *testing.T, address string, args ...string) []byte {
	t.Helper()
	var out, messages strings.Builder
	cmd := endpointsCommand()
	cmd.PersistentFlags().String("address", address, "")
	cmd.SetOut(&out)
	cmd.SetErr(&messages)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v: %s", err, &messages)
	}
	return []byte(out.String())
}
