package ingest_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
)

// TestAnonymizeIPs: a project can have its events stored without addresses, whether they are captured or imported.
func TestAnonymizeIPs(t *testing.T) {
	const sent = `{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$ip":"203.0.113.7","plan":"pro"}}` + "\n"
	c := client(t)
	for anonymize, want := range map[bool]string{true: `["{\"plan\":\"pro\"}"]`, false: `["{\"$ip\":\"203.0.113.7\",\"plan\":\"pro\"}"]`} {
		options := ingest.Options{Project: project(), Now: now, LearnTypes: true, AnonymizeIPs: anonymize}
		load(t, c, options, sent)
		captures := options
		captures.Project = project()
		deliver(t, ingest.New(c), captures, captured(t, sent))
		for _, p := range []int64{options.Project, captures.Project} {
			if diff := gocmp.Diff([]string{want}, ask(t, c, p, "SELECT toJSONString(properties) FROM events")); diff != "" {
				t.Errorf("anonymize %t (-want +got):\n%s", anonymize, diff)
			}
		}
	}
}
