package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// printed runs a measurement and returns what it printed to standard output, which still receives it too.
func printed(measure func() ([]goal, error)) (text string, goals []goal, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("reading what is printed: %w", err)
	}
	terminal := os.Stdout
	var kept bytes.Buffer
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.MultiWriter(terminal, &kept), read)
		copied <- err
	}()
	os.Stdout = write
	goals, err = measure()
	os.Stdout = terminal
	err = errors.Join(err, write.Close(), <-copied, read.Close())
	return kept.String(), goals, err
}

// record writes what a figure printed, and its goals, into a Markdown document, replacing those of an earlier run. Their place is between two comments with
// the name of the figure; if they are missing, record returns an error and leaves the document unchanged.
func record(path, command, name, text string, goals []goal, when time.Time) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document of figures: %w", err)
	}
	written, err := recorded(string(document), command, name, text, goals, when)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
		return fmt.Errorf("writing the document of figures: %w", err)
	}
	return nil
}

// command returns the command line of this run, without the figures and the flags for files.
func command() string {
	out := "go run ./tests/bench"
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "record" && f.Name != "data" {
			out += " -" + f.Name + " " + f.Value.String()
		}
	})
	return out
}

// recorded returns the document with the figure in its place.
func recorded(document, command, name, text string, goals []goal, when time.Time) (string, error) {
	begin, end := "<!-- figure "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the document of figures has no place for %s", name)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s%s\nMeasured on %s by `%s %s`.\n\n", before, begin, when.Format(time.DateOnly), command, name)
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(&out, "```text\n%s\n```\n\n", text)
	}
	if len(goals) > 0 {
		out.WriteString("| what | against | goal | measured |\n| --- | --- | --- | --- |\n")
		for _, g := range goals {
			measured := g.measured
			if g.missed {
				measured += ": missed"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", cell(g.what), cell(g.against), cell(g.goal), cell(measured))
		}
		out.WriteString("\n")
	}
	return out.String() + end + after, nil
}

// cell escapes a text for a table cell.
func cell(text string) string {
	text = strings.NewReplacer("|", `\|`, "<=", "≤", ">=", "≥", "\n", " ").Replace(text)
	if text == "" {
		return "-"
	}
	return text
}
