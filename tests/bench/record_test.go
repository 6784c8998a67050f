package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorded(t *testing.T) {
	const document = "before\n<!-- figure a -->\nold\n<!-- end of a -->\nbetween\n<!-- figure b -->\n<!-- end of b -->\nafter\n"
	goals := []goal{atMost("x | y", "", 1.5, 2), atLeast("z", "w", 1, 1)}
	when := time.Date(2026, time.November, 23, 0, 0, 0, 0, time.UTC)
	got, err := recorded(document, "go run x", "a", "\nsome text\n\n", goals, when)
	if err != nil {
		t.Fatal(err)
	}
	const want = "before\n<!-- figure a -->\n\nMeasured on 2026-11-23 by `go run x a`.\n\n```text\nsome text\n```\n\n" +
		"| what | against | goal | measured |\n| --- | --- | --- | --- |\n| x \\| y | - | ≤ 1.5 | 2.00: missed |\n| z | w | ≥ 1 | 1.00 |\n\n" +
		"<!-- end of a -->\nbetween\n<!-- figure b -->\n<!-- end of b -->\nafter\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the document differs (-want +got):\n%s", diff)
	}
	again, err := recorded(got, "go run x", "a", "some text", goals, when)
	if err != nil || again != got {
		t.Errorf("recorded again, the document is another one: %v\n%s", err, again)
	}
	if _, err := recorded(document, "go run x", "c", "", nil, when); err == nil {
		t.Error("a figure without a place is recorded")
	}
}

func TestPrinted(t *testing.T) {
	failed := errors.New("failed")
	text, goals, err := printed(func() ([]goal, error) {
		fmt.Println("a line")
		return []goal{{what: "x"}}, failed
	})
	if text != "a line\n" || len(goals) != 1 || !errors.Is(err, failed) {
		t.Errorf("printed gives %q, %v, %v", text, goals, err)
	}
}

// TestPlaces: the document has a place for each figure.
func TestPlaces(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figuresOf(t.Context(), "", histories{}, nil, nil, nil, nil, 0) {
		if f.name == profileFigure {
			continue
		}
		if _, err := recorded(string(document), "", f.name, "", nil, time.Time{}); err != nil {
			t.Error(err)
		}
	}
}
