package analytics_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`[Cc]ontract:?\s+([a-z-]+\.md,?\s+)?sections?\s+(\d+(?:\.\d+)*(?:(?:,| and)\s+\d+(?:\.\d+)*)*)`)
	heading   = regexp.MustCompile(`(?m)^#+\s+(\d+(?:\.\d+)*)[. ]`)
	number    = regexp.MustCompile(`\d+(?:\.\d+)*`)
	wrapped   = regexp.MustCompile(`\n\s*//\s?`) // a comment goes on in the next line
)

// TestReferencesToTheContract: each reference of a comment names a page below docs/contract and sections that it has.
func TestReferencesToTheContract(t *testing.T) {
	sections := map[string]map[string]bool{} // by page
	pages, err := filepath.Glob("docs/contract/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{}
		for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
			has[found[1]] = true
		}
		sections[filepath.Base(page)] = has
	}
	references := 0
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == ".demo"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || path == "contract_test.go":
			return nil
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range reference.FindAllStringSubmatch(wrapped.ReplaceAllString(string(code), " "), -1) {
			references++
			page := strings.TrimRight(found[1], ", ")
			for _, section := range number.FindAllString(found[2], -1) {
				if !sections[page][section] {
					t.Errorf("%s: %q: there is no such section", path, found[0])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if references < 100 {
		t.Errorf("only %d references were found", references)
	}
}
