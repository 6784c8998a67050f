package conformance_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/conformance"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestCases runs every case. The cases in testdata/pending.txt need something that the server does not offer yet: they must
// fail, so that the list stays correct.
func TestCases(t *testing.T) {
	cases, err := conformance.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases in testdata")
	}
	pending := readPending(t)
	server := harness.Start(t)
	t.Run("cases", func(t *testing.T) { // returns after all parallel cases
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				err := conformance.Play(server, c)
				switch {
				case pending[c.Name] && err == nil:
					t.Error("passes: remove it from testdata/pending.txt")
				case !pending[c.Name] && err != nil:
					t.Errorf("%s\n%v", c.What, err)
				}
			})
		}
	})
	for name := range pending {
		found := false
		for _, c := range cases {
			found = found || c.Name == name
		}
		if !found {
			t.Errorf("testdata/pending.txt lists %s, which is not a case", name)
		}
	}
}

func readPending(t *testing.T) map[string]bool {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "pending.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pending := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			pending[line] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return pending
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"all is known", `{"name": "a", "source": "b.py", "request": {"path": "x"}, "expect": {"status": 200}}`, ""},
		{"a case", `{"name": "a", "expects": {"status": 200}}`, `json: unknown field "expects"`},
		{"a step", `{"name": "a", "requests": [{"path": "x", "expects": {}}]}`, `json: unknown field "expects"`},
		{"an expectation", `{"name": "a", "expect": {"header": {}}}`, `json: unknown field "header"`},
		{"data", `{"name": "a", "data": {"event": []}}`, `json: unknown field "event"`},
		{"a definition", `{"name": "a", "data": {"property_definitions": [{"as": "Numeric"}]}}`, `json: unknown field "as"`},
		{"a key", `{"name": "a", "keys": {"k": {"scope": "*"}}}`, `json: unknown field "scope"`},
		{"two cases", `{"name": "a"} {"name": "b"}`, "there is more after the case"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "case.json")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cases, err := conformance.Load(folder)
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), path+": ")
			}
			if got != tt.want || err == nil && len(cases) != 1 {
				t.Errorf("Load = %+v, %v; want %q", cases, err, tt.want)
			}
		})
	}
}

func TestDiffer(t *testing.T) {
	tests := []struct {
		name      string
		want, got any
		diff      string
	}{
		{"equal numbers", 1.0, 1.0000000001, ""},
		{"a project's number", int64(7), 7.0, ""},
		{"other number", 1.0, 1.1, "body: want 1, got 1.1"},
		{"null and missing", map[string]any{"a": nil}, map[string]any{}, ""},
		{"missing", map[string]any{"a": 1.0}, map[string]any{}, "body.a: missing"},
		{"other keys are ignored", map[string]any{"a": 1.0}, map[string]any{"a": 1.0, "b": 2.0}, ""},
		{"order", []any{1.0, 2.0}, []any{2.0, 1.0}, "body[0]: want 1, got 2"},
		{"unordered", map[string]any{"$unordered": []any{1.0, 2.0}}, []any{2.0, 1.0}, ""},
		{"unordered, twice the same", map[string]any{"$unordered": []any{1.0, 1.0}}, []any{1.0, 2.0}, "body: no element matches 1 in [1,2]"},
		{"contains", map[string]any{"$contains": []any{2.0}}, []any{1.0, 2.0}, ""},
		{"length", map[string]any{"$length": 1.0}, []any{}, "body: want 1 elements, got 0"},
		{"regex", map[string]any{"$regex": "^a"}, "abc", ""},
		{"regex on a number", map[string]any{"$regex": "1"}, 1.0, "body: 1 does not match 1"},
		{"anything but", map[string]any{"$regex": "^(?!old$)"}, "old", `body: "old" does not match ^(?!old$)`},
		{"one is not true", true, 1.0, "body: want true, got 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := conformance.Differ(tt.want, tt.got, "body"); diff != tt.diff {
				t.Errorf("Differ = %q, want %q", diff, tt.diff)
			}
		})
	}
}
