// Package golden holds tests to files. A case is testdata/<topic>/<case>.txtar: its first line says what it pins, then come
// the sections that go in and those that must come out. Run the tests with -update to write what comes out, and read the
// difference before it is committed.
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

// Run plays every file that matches pattern as a subtest named <topic>/<case>. play gets the sections by name and returns
// those that come out, each named in outputs; an empty one is left out of the file. That no file matches is a failure, and
// so are a file without a first line and a section that is none of inputs and outputs.
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
		t.Errorf("%s does not say in its first line what it pins", file)
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
			t.Errorf("%s has a section %q, which is none of %q and %q", file, section.Name, inputs, outputs)
		}
	}
	got := play(t, in)
	maps.DeleteFunc(got, func(_, data string) bool { return data == "" })
	for name, data := range got {
		if !slices.Contains(outputs, name) {
			t.Errorf("section %q came out, which is none of %q", name, outputs)
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
