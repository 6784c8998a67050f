package references

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// namedUsers is how many uses of each type a refusal names.
const namedUsers = 5

// phrases describe the uses of a cohort; each takes a number.
var phrases = []struct {
	of   Type
	text string
}{
	{Insight, "in %d insight(s)"},
	{Cohort, "as criteria in %d other cohort(s)"},
	{TestAccounts, ""},
	{Endpoint, "in %d endpoint(s)"},
	{Action, "in the steps of %d action(s)"},
	{Dashboard, "in the filters of %d dashboard(s)"},
}

// RefuseDeletion refuses to delete a cohort that is used, and names the uses that the key may read. It returns nil if the cohort is not used. A nil key
// stands for the operator, who may read everything.
func (u *Uses) RefuseDeletion(cohort int64, key *registry.Key) error {
	var ways []string
	for _, p := range phrases {
		var users []string
		for _, r := range u.OfCohort(cohort) {
			if r.Type == p.of && (r.Type != Cohort || r.ID != cohort) {
				users = append(users, r.title(key))
			}
		}
		switch {
		case len(users) == 0:
		case p.of == TestAccounts:
			ways = append(ways, "in the project's filters against test accounts")
		default:
			ways = append(ways, fmt.Sprintf(p.text, len(users))+": "+some(users))
		}
	}
	if len(ways) == 0 {
		return nil
	}
	return api.Invalid("deleted", "invalid_input", "This cohort is used %s. Change or delete these first.", strings.Join(ways, "; "))
}

// title returns the name of a reference in a refusal.
func (r *Reference) title(key *registry.Key) string {
	name := api.Deref(r.Name)
	if key != nil && !key.Allows(scopes[r.Type]) {
		name = ""
	}
	switch {
	case r.Type != Endpoint:
		return cmp.Or(name, strconv.FormatInt(r.ID, 10))
	case len(r.Versions) == 1:
		return fmt.Sprintf("%s (version %d)", cmp.Or(name, r.UUID), r.Versions[0])
	}
	return fmt.Sprintf("%s (versions %s)", cmp.Or(name, r.UUID), strings.Join(texts(r.Versions), ", "))
}

func texts(numbers []int) []string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = strconv.Itoa(n)
	}
	return out
}

// some joins names, and cuts a long list.
func some(names []string) string {
	shown := names[:min(len(names), namedUsers)]
	if more := len(names) - len(shown); more > 0 {
		return strings.Join(shown, ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(shown, ", ")
}
