package cohorts

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

func TestPersonsOfIsHogQL(t *testing.T) {
	for _, search := range []string{"", `a'%_\`} {
		if _, err := hogql.Parse(personsOf(5, search, 10, 20).Query); err != nil {
			t.Errorf("searching for %q: %v", search, err)
		}
	}
}
