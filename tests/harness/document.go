package harness

import (
	"regexp"
	"strings"
)

var (
	indented    = regexp.MustCompile(`(?m)(?:^    .*\n|^\n)+`)
	indentation = regexp.MustCompile(`(?m)^    `)
)

// Blocks returns the indented blocks of a page of Markdown, without their indentation.
func Blocks(markdown string) []string {
	var out []string
	for _, block := range indented.FindAllString(markdown, -1) {
		if text := strings.TrimSpace(indentation.ReplaceAllString(block, "")); text != "" {
			out = append(out, text)
		}
	}
	return out
}
