package query

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/internal/pattern"
)

// PathCleaning replaces each match of a regular expression in the name of a step.
type PathCleaning struct {
	// Regex has the syntax of RE2, which Go and the engine share.
	Regex string `json:"regex"`
	// Alias replaces a match; \1 is its first group.
	Alias string `json:"alias,omitempty"`
}

// PathCleaning reads a list of rules. It refuses rules that the engine could not apply, so that no query with them runs.
func (r *Reader) PathCleaning(f *Object, name string) []PathCleaning {
	rules, _ := r.pathCleaning(f, name)
	return rules
}

// pathCleaning also returns the field order of each rule, which only applies to a project's rules.
func (r *Reader) pathCleaning(f *Object, name string) (out []PathCleaning, orders []int) {
	for i, item := range r.PathItems(f, name) {
		c := r.Object(item, f.Field(name).Below(strconv.Itoa(i), true))
		rule := PathCleaning{Regex: c.Need("regex"), Alias: c.Text("alias")}
		order, _ := c.Integer("order")
		c.Close()
		groups, wrong := readRegex(rule.Regex)
		if wrong != "" {
			r.Add(c.Field("regex"), "value_error", wrong)
		} else if n := lastReference(rule.Alias); n > groups {
			r.Add(c.Field("alias"), "value_error", fmt.Sprintf("The alias refers to group %d of a regular expression with %d", n, groups))
		}
		out, orders = append(out, rule), append(orders, order)
	}
	return out, orders
}

// readRegex returns the number of groups in a regular expression, or what is wrong with it.
func readRegex(regex string) (groups int, wrong string) {
	parsed, err := pattern.Parse(regex)
	switch {
	case err == nil:
		return parsed.MaxCap(), ""
	case errors.Is(err, pattern.ErrTooLong):
		return 0, fmt.Sprintf("Input should be a regular expression of at most %d bytes", pattern.MaxBytes)
	case errors.Is(err, pattern.ErrTooLarge):
		return 0, "Input should be a smaller regular expression"
	}
	return 0, "Input should be a regular expression in the syntax of RE2: " + err.Error()
}

// escapes matches the escapes in an alias: a backslash, and the digit of a group or a literal character.
var escapes = regexp.MustCompile(`(?s)\\([0-9]|.)`)

// lastReference returns the highest group that an alias refers to.
func lastReference(alias string) int {
	last := 0
	for _, escape := range escapes.FindAllStringSubmatch(alias, -1) {
		if n, err := strconv.Atoi(escape[1]); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// maxPathItems bounds each of the excluded steps, the groupings and the cleaning rules.
const maxPathItems = 200

// PathItems reads a list of up to maxPathItems items.
func (r *Reader) PathItems(f *Object, name string) []any {
	list := f.List(name)
	if len(list) > maxPathItems {
		r.Add(f.Field(name), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxPathItems, len(list)))
		return nil
	}
	return list
}
