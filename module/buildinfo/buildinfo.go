// Package buildinfo reports which version of this module a binary contains.
package buildinfo

import "runtime/debug"

// modulePath is the path of this module.
const modulePath = "github.com/caddy-analytics/caddy-analytics"

// devel is the version of a checkout without a version.
const devel = "(devel)"

// Info is what the build recorded about this module.
type Info struct {
	Version  string // (devel) for a checkout without a version
	Commit   string // of the checkout; empty if unknown
	Modified bool   // the checkout had uncommitted changes
}

// replaced is the version of this module in builds that take it from a folder, as cmd/xcaddy-build does.
const replaced = "v0.0.0"

// Exact reports whether two builds with this Info have the same source.
func (i Info) Exact() bool {
	if i.Commit != "" {
		return !i.Modified
	}
	return i.Version != devel && i.Version != replaced
}

// Read returns what the build of this binary recorded.
func Read() Info {
	info, _ := debug.ReadBuildInfo()
	return Of(info)
}

// Of returns what a build recorded; info may be nil.
func Of(info *debug.BuildInfo) Info {
	v := Info{Version: devel}
	if info == nil {
		return v
	}
	if info.Main.Path != modulePath {
		for _, dep := range info.Deps {
			switch {
			case dep.Path != modulePath:
			case dep.Replace != nil && dep.Replace.Version == "":
				v.Version = replaced
			case dep.Version != "":
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
