package cohorts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// checkOf makes the check of a cohort when it is written; before is nil for a new one.
func (s *Cohorts) checkOf(before *registry.Cohort) func(*registry.Snapshot, *registry.Cohort) error {
	return func(now *registry.Snapshot, next *registry.Cohort) error {
		was := &registry.Cohort{Static: true}
		if before != nil {
			was = now.AnyCohort(next.Project, next.ID)
		}
		switch {
		case next.Deleted && !was.Deleted && before != nil:
			return unused(now, next)
		case next.Deleted || next.Static && next.Filters == nil && next.Groups == nil:
			return nil
		case was.Deleted || was.Static != next.Static || before == nil, !bytes.Equal(was.Filters, next.Filters), !bytes.Equal(was.Groups, next.Groups):
			return checkDefinition(now, next)
		}
		return nil
	}
}

// checkDefinition refuses filters that can't be read, or that ask for what is not there or for the cohort itself.
func checkDefinition(now *registry.Snapshot, c *registry.Cohort) error {
	d, err := cohort.Read(c.Filters, c.Groups)
	if err != nil {
		return refusal(err)
	}
	for _, id := range cohort.Actions(d) {
		if a := now.AnyAction(c.Project, id); a == nil || a.Deleted {
			return api.Invalid("filters", "invalid_input", "Action ID %d does not exist!", id)
		}
	}
	for _, id := range cohort.Cohorts(d) {
		if id != c.ID && now.Cohort(c.Project, id) == nil {
			return api.Invalid("filters", "invalid_input", "Invalid Cohort ID in filter")
		}
	}
	if reaches(now, c.Project, d, c.ID, map[int64]bool{}) {
		return api.Invalid("filters", "invalid_input", "Cohorts cannot reference other cohorts in a loop.")
	}
	return nil
}

// reaches reports whether a definition asks for a cohort, by itself or by those that it asks for. Those in seen are not looked at again.
func reaches(now *registry.Snapshot, project int64, d *cohort.Definition, id int64, seen map[int64]bool) bool {
	for _, next := range cohort.Cohorts(d) {
		if next == id {
			return true
		}
		below := now.Cohort(project, next)
		if seen[next] || below == nil || below.Static {
			continue
		}
		seen[next] = true
		if def, err := cohort.Read(below.Filters, below.Groups); err == nil && reaches(now, project, def, id, seen) {
			return true
		}
	}
	return false
}

// refusal is the answer to filters that can't be read. The attr is that of the field, as PostHog has it, and the place leads the text.
func refusal(err error) error {
	mistake, ok := errors.AsType[*diag.Error](err)
	if !ok {
		return err
	}
	return api.Invalid(mistake.Attr, "invalid_input", "%s", mistake.Detail)
}

// unused refuses to delete a cohort that something uses.
func unused(now *registry.Snapshot, c *registry.Cohort) error {
	var users []string
	for _, other := range now.Cohorts(c.Project) {
		if other.Static || other.ID == c.ID {
			continue
		}
		if d, err := cohort.Read(other.Filters, other.Groups); err == nil && slices.Contains(cohort.Cohorts(d), c.ID) {
			users = append(users, other.Title())
		}
	}
	if len(users) > 0 {
		return used(fmt.Sprintf("as criteria in %d other cohort(s)", len(users)), users)
	}
	return nil
}

// used refuses a deletion, and names the first few that it would break.
func used(how string, by []string) error {
	const named = 5
	list := strings.Join(by[:min(named, len(by))], ", ")
	if more := len(by) - named; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return api.Invalid("deleted", "invalid_input", "This cohort is used %s: %s. Change or delete these first.", how, list)
}
