// Package golden compares test output with files. A case is testdata/<topic>/<case>.txtar: its first line says what it
// pins; then follow the input sections and the expected output sections. Run the tests with -update to rewrite the output
// sections, and read the diff before you commit it.
package golden

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Run runs every file that matches pattern as a subtest named <topic>/<case>. play gets the input sections by name and
// returns the output sections, named in outputs; empty ones are omitted from the file. The test fails if no file matches,
// if a file has no first line, or if a section is in neither inputs nor outputs.
func Run(t *testing.T, pattern string, inputs, outputs []string, play func(t *testing.T, in map[string]string) map[string]string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no golden file matches %s", pattern)
	}
	for _, file := range files {
		topic := filepath.Base(filepath.Dir(file))
		t.Run(topic+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			run(t, file, inputs, outputs, play)
		})
	}
}

func run(t *testing.T, file string, inputs, outputs []string, play func(t *testing.T, in map[string]string) map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	if len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Errorf("%s has no first line that says what it pins", file)
	}
	in, want := map[string]string{}, map[string]string{}
	var kept []txtar.File
	for _, section := range archive.Files {
		switch {
		case slices.Contains(outputs, section.Name):
			want[section.Name] = string(section.Data)
		case slices.Contains(inputs, section.Name):
			in[section.Name] = string(section.Data)
			kept = append(kept, section)
		default:
			t.Errorf("%s has a section %q, want one of %q and %q", file, section.Name, inputs, outputs)
		}
	}
	got := play(t, in)
	maps.DeleteFunc(got, func(_, data string) bool { return data == "" })
	for name, data := range got {
		if !slices.Contains(outputs, name) {
			t.Errorf("got an output section %q, want one of %q", name, outputs)
		}
		if !strings.HasSuffix(data, "\n") {
			got[name] = data + "\n"
		}
	}
	if *update {
		archive.Files = kept
		for _, name := range outputs {
			if data, ok := got[name]; ok {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(data)})
			}
		}
		if out := txtar.Format(archive); !bytes.Equal(out, text) {
			if err := os.WriteFile(file, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got; run with -update to accept):\n%s", file, diff)
	}
}
