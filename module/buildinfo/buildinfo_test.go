package buildinfo

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOfBuilds reads the information of several builds: of a checkout, of a program that depends on this module, and none.
func TestOfBuilds(t *testing.T) {
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want Info
	}{
		"nothing": {nil, Info{Version: "(devel)"}},
		"a checkout": {&debug.BuildInfo{
			Main:     debug.Module{Path: modulePath, Version: "v1.2.3+dirty"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
		}, Info{"v1.2.3+dirty", "abc", true}},
		"a build with more plugins": {&debug.BuildInfo{
			Main:     debug.Module{Path: "caddy", Version: "v9"},
			Deps:     []*debug.Module{{Path: "example.com/other", Version: "v8"}, {Path: modulePath, Version: "v1.2.3"}},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "of another checkout"}},
		}, Info{Version: "v1.2.3"}},
		"a build from a folder": {&debug.BuildInfo{
			Main: debug.Module{Path: "caddy"},
			Deps: []*debug.Module{{Path: modulePath, Version: "v0.0.0-00010101000000-000000000000", Replace: &debug.Module{Path: "../module"}}},
		}, Info{Version: "v0.0.0"}},
	} {
		if diff := cmp.Diff(tt.want, Of(tt.info)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExact(t *testing.T) {
	for info, want := range map[Info]bool{
		{Version: "v1.2.3"}:                                      true,
		{Version: "(devel)", Commit: "abc"}:                      true,
		{Version: "v1.2.3+dirty", Commit: "abc", Modified: true}: false,
		{Version: "(devel)"}:                                     false,
		{Version: "v0.0.0"}:                                      false,
	} {
		if got := info.Exact(); got != want {
			t.Errorf("%+v: %t, want %t", info, got, want)
		}
	}
}
