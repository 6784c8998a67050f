package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// In a dictionary, each name occurs once, in the form in which values are looked up: lower case.
func TestChannelDictionaries(t *testing.T) {
	for what, d := range map[string]schema.ChannelDictionary{
		"sources": schema.Sources, "paid media": schema.PaidMedia, "organic media": schema.OrganicMedia,
	} {
		seen := map[string]string{}
		for name, meaning := range d.Each() {
			if other, twice := seen[name]; twice {
				t.Errorf("%s: %q stands for both %s and %s", what, name, other, meaning)
			}
			if name == "" || meaning == "" || strings.ToLower(name) != name || strings.TrimSpace(name) != name {
				t.Errorf("%s: bad entry %q, %q", what, name, meaning)
			}
			seen[name] = meaning
		}
		if len(seen) == 0 {
			t.Errorf("%s is empty", what)
		}
	}
}

func TestChannelMeanings(t *testing.T) {
	found := func(d schema.ChannelDictionary, names ...string) map[string]string {
		out := map[string]string{}
		for name, meaning := range d.Each() {
			for _, want := range names {
				if name == want {
					out[name] = meaning
				}
			}
		}
		return out
	}
	tests := []struct {
		name string
		in   schema.ChannelDictionary
		want map[string]string
	}{
		{"sources", schema.Sources, map[string]string{
			"google": "Search", "google.*": "Search", "facebook.com": "Social", "amazon.*": "Shopping", "youtu.be": "Video", "mail.google.com": "Email",
		}},
		{"media that were paid for", schema.PaidMedia, map[string]string{"social": "Paid Social", "banner": "Display", "video": "Paid Video"}},
		{"other media", schema.OrganicMedia, map[string]string{"social": "Organic Social", "newsletter": "Email", "push": "Push", "link": "Referral"}},
		{"kinds that were paid for", schema.PaidKinds, map[string]string{
			"Search": "Paid Search", "Social": "Paid Social", "Shopping": "Paid Shopping", "Video": "Paid Video",
		}},
		{"other kinds", schema.OrganicKinds, map[string]string{"Search": "Organic Search", "Email": "Email"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var names []string
			for name := range tt.want {
				names = append(names, name)
			}
			if diff := cmp.Diff(tt.want, found(tt.in, names...)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
	if got := found(schema.PaidKinds, "Email"); len(got) > 0 {
		t.Errorf("mail is a channel that is paid for: %v", got)
	}
}
