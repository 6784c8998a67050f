// Package buildinfo says which version of this module a binary has.
package buildinfo

import "runtime/debug"

// modulePath is what builds know this module by.
const modulePath = "github.com/caddy-analytics/caddy-analytics"

// Info is what the build recorded of this module.
type Info struct {
	Version  string // (devel) for a checkout that has none
	Commit   string // that a checkout was at; empty where it is not known
	Modified bool   // the checkout had changes that were not committed
}

// Read returns what the build of this binary recorded.
func Read() Info {
	info, _ := debug.ReadBuildInfo()
	return Of(info)
}

// Of returns what a build recorded; info may be nil.
func Of(info *debug.BuildInfo) Info {
	v := Info{Version: "(devel)"}
	if info == nil {
		return v
	}
	if info.Main.Path != modulePath {
		for _, dep := range info.Deps {
			if dep.Path == modulePath && dep.Version != "" {
				v.Version = dep.Version
			}
		}
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
