package wholefile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// TestWrite replaces a file, also after a crash that left half of another one. If reading the content fails, the file is unchanged.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	broken := errors.New("it breaks off")
	check := func(want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("the file has %q, %v, want %q", got, err, want)
		}
		files, err := os.ReadDir(folder)
		if err != nil || len(files) != 1 {
			t.Errorf("the folder has %v, %v", files, err)
		}
	}
	for _, content := range []string{"the first one, which is long", "", "second"} {
		if err := wholefile.Write(path, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		check(content)
	}
	if err := wholefile.Write(path, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	check("second")
	if err := os.WriteFile(path+wholefile.Suffix, []byte("a half one that is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(path, strings.NewReader("third")); err != nil {
		t.Fatal(err)
	}
	check("third")
	if err := wholefile.Write(filepath.Join(folder, "none", "a"), strings.NewReader("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the folder: %v", err)
	}
}
