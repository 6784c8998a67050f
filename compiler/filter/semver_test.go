package filter_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// TestVersionRanges checks the first version that a range has, and the first after it.
func TestVersionRanges(t *testing.T) {
	t.Parallel()
	bound := regexp.MustCompile(`(>=|<) sortableSemVer\('([0-9.]+)'\)`)
	for _, tt := range []struct{ operator, value, want string }{
		{"semver_tilde", "1.2.3", ">=1.2.3 <1.3.0"},
		{"semver_tilde", "1.2", ">=1.2.0 <1.3.0"},
		{"semver_tilde", "1", ">=1.0.0 <2.0.0"},
		{"semver_tilde", "v0-rc.1", ">=0.0.0 <1.0.0"},
		{"semver_caret", "0.2.3", ">=0.2.3 <0.3.0"},
		{"semver_caret", "1", ">=1.0.0 <2.0.0"},
		{"semver_wildcard", "1.*", ">=1.0.0 <2.0.0"},
		{"semver_wildcard", "1.2.*", ">=1.2.0 <1.3.0"},
	} {
		e, err := filter.Condition(filter.Property{Type: "event", Key: "v", Operator: tt.operator, Value: tt.value}, filter.Subject{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, found := range bound.FindAllStringSubmatch(hogql.PrintExpr(e), -1) {
			got = append(got, found[1]+found[2])
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s %s means %s, want %s", tt.operator, tt.value, text, tt.want)
		}
	}
}
