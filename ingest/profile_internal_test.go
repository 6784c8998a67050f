package ingest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestJSONWith records what an event sets with a profile, which stays as it is.
func TestJSONWith(t *testing.T) {
	full := record.Object{}
	for n := range record.MaxNames {
		full = append(full, record.Member{Key: fmt.Sprint("k", n), Value: record.Value("1")})
	}
	two := record.Object{{Key: "a", Value: record.Value("1")}, {Key: "b", Value: record.Value("2")}}
	for _, tt := range []struct {
		name string
		of   record.Object
		set  string
		want string
	}{
		{"nothing", two, `{}`, two.JSON()},
		{"the same", two, `{"a":1}`, two.JSON()},
		{"another value, and one more", two, `{"a":3,"c":null}`, `{"a":3,"b":2,"c":null}`},
		{"to nobody", nil, `{"a":1}`, `{"a":1}`},
		{"what it takes away", two, `{"gone":1}`, two.JSON()},
		{"no room", full, `{"new":1}`, full.JSON()},
		{"room for one of two", full[:record.MaxNames-1], `{"new":1,"newer":1}`, append(full[:record.MaxNames-1:record.MaxNames-1], record.Member{Key: "new", Value: record.Value("1")}).JSON()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, before := profile{properties: tt.of}, tt.of.JSON()
			if diff := cmp.Diff(tt.want, p.jsonWith(&event{set: record.Value(tt.set).Object(), unset: []string{"gone"}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := p.json(); got != before {
				t.Errorf("the profile is now %s", got)
			}
		})
	}
}
