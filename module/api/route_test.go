package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	type parsed struct {
		Project                string
		Resource, Name, Action string
		OK                     bool
	}
	tests := []struct {
		path string
		want parsed
	}{
		{"/api/projects/7/query/", parsed{"7", "query", "", "", true}},
		{"/api/projects/7/query", parsed{"7", "query", "", "", true}},
		{"/api/environments/@current/endpoints/", parsed{"@current", "endpoints", "", "", true}},
		{"/api/projects/7/endpoints/daily/run", parsed{"7", "endpoints", "daily", "run", true}},
		{"/api/projects/7/endpoints/daily/run/", parsed{"7", "endpoints", "daily", "run", true}},
		{"/api/projects/7/endpoints/daily/run/more", parsed{"7", "endpoints", "daily", "run/more", false}},
		{"/api/projects/7/endpoints//run", parsed{}},
		{"/api/projects/7", parsed{"7", "/project", "", "", true}},
		{"/api/environments/@current/", parsed{"@current", "/project", "", "", true}},
		{"/api/projects/", parsed{"@current", "/projects", "", "", true}},
		{"/api/projects", parsed{"@current", "/projects", "", "", true}},
		{"/api/projects//", parsed{"@current", "/projects", "", "", true}},
		{"/api/users/@me/", parsed{"@current", "/users", "@me", "", true}},
		{"/api/users/", parsed{}},
		{"/api/users/@me/more", parsed{}},
		{"/api/personal_api_keys/@current", parsed{"@current", "/personal_api_keys", "@current", "", true}},
		{"/api/organizations/", parsed{"@current", "/organizations", "", "", true}},
		{"/api/organizations/@current/", parsed{"@current", "/organizations", "@current", "", true}},
		{"/api/organizations/o/projects/", parsed{"@current", "/organizations", "o", "projects", true}},
		{"/api/organizations/o/projects/7/", parsed{"7", "/organizations", "o", "project", true}},
		{"/api/organizations/o/members/", parsed{"@current", "/organizations", "o", "members", true}},
		{"/api/organizations/o/members/@me/", parsed{"@current", "/organizations", "o", "member", true}},
		{"/api/organizations/o/members/@me/more", parsed{}},
		{"/api/organizations/o/invites/", parsed{}},
		{"/api/organizations/o/projects/7/more", parsed{}},
		{"/api/teams/7/query/", parsed{}},
		{"/api/feature_flag/local_evaluation/", parsed{"@current", "/feature_flag", "local_evaluation", "", true}},
		{"/flags/definitions", parsed{"@current", "/feature_flag", "local_evaluation", "", true}},
		{"/flags/definitions/", parsed{"@current", "/feature_flag", "local_evaluation", "", true}},
		{"/flags/definitions/more", parsed{}},
		{"/flags/", parsed{}},
		{"/apiprojects/7/query/", parsed{}},
		{"/api/", parsed{}},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			project, at, ok := parsePath(tt.path)
			got := parsed{project, at.Resource, at.Name, at.Action, ok}
			if !ok && !tt.want.OK {
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("parsePath (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePathAllocatesNothing(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		if _, _, ok := parsePath("/api/projects/7/endpoints/daily/run"); !ok {
			t.Fatal("not parsed")
		}
	})
	if allocs != 0 {
		t.Errorf("parsePath allocates %v times", allocs)
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("/api/projects/7/endpoints/daily/run")
	f.Add("/api/environments/@current//")
	f.Add("/api/projects/7/endpoints/%2e%2e/run")
	f.Fuzz(func(t *testing.T, path string) {
		project, at, ok := parsePath(path)
		if !ok {
			return
		}
		for _, part := range []string{project, strings.TrimPrefix(at.Resource, "/"), at.Name, at.Action} {
			if strings.Contains(part, "/") {
				t.Errorf("parsePath(%q) gives a part with a slash: %q", path, part)
			}
		}
		if at.Action != "" && at.Name == "" {
			t.Errorf("parsePath(%q) gives an action without a name", path)
		}
	})
}
