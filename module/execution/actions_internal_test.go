package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestUnreadableActions reads stored actions that no query may use. There can be some from before there was a limit.
func TestUnreadableActions(t *testing.T) {
	regex, click := registry.MatchRegex, new("$autocapture")
	grows := new(".{999}.{999}.{999}.{999}.{999}")
	const words = `".{999}.{999}.{999}.{999}.{999}" is not a valid regular expression: it has more than 20000 states.`
	for _, tt := range []struct {
		name string
		step registry.ActionStep
		want string
	}{
		{"a URL that grows", registry.ActionStep{URL: grows, URLMatching: &regex}, words},
		{"a text that grows", registry.ActionStep{Event: click, Text: grows, TextMatching: &regex}, words},
		{"a link that grows", registry.ActionStep{Event: click, Href: grows, HrefMatching: &regex}, words},
		{"a text and a link that are ignored", registry.ActionStep{Text: grows, TextMatching: &regex, Href: grows, HrefMatching: &regex}, ""},
		{"a text that is no expression", registry.ActionStep{Event: click, Text: grows}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := actionOf(&registry.ActionDefinition{Steps: []registry.ActionStep{tt.step}}).Unreadable
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Unreadable (-want +got):\n%s", diff)
			}
		})
	}
}
