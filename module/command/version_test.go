package command

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersionsOfBuilds reads what builds record: of a checkout, of a program that has this module among others, and nothing.
func TestVersionsOfBuilds(t *testing.T) {
	type known struct {
		Version, Commit string
		Modified        bool
	}
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want known
	}{
		"nothing": {nil, known{Version: "(devel)"}},
		"a checkout": {&debug.BuildInfo{
			Main:     debug.Module{Path: modulePath, Version: "v1.2.3+dirty"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
		}, known{"v1.2.3+dirty", "abc", true}},
		"a build with more plugins": {&debug.BuildInfo{
			Main:     debug.Module{Path: "caddy", Version: "v9"},
			Deps:     []*debug.Module{{Path: "example.com/other", Version: "v8"}, {Path: modulePath, Version: "v1.2.3"}},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "of another checkout"}},
		}, known{Version: "v1.2.3"}},
	} {
		v := versionsOf(tt.info)
		if diff := cmp.Diff(tt.want, known{v.Version, v.Commit, v.Modified}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
