package command

import (
	goruntime "runtime"
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// modulePath is what builds know this module by.
const modulePath = "github.com/caddy-analytics/caddy-analytics"

// versions is what this binary is made of.
type versions struct {
	Version  string `json:"version"`            // of this module; (devel) for a checkout that has none
	Commit   string `json:"commit,omitempty"`   // that a checkout was at, where the build recorded it
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that were not committed
	Caddy    string `json:"caddy"`
	Engine   string `json:"engine"` // the release of the embedded engine that the module is made for
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand() *cobra.Command {
	return leaf("version", "Prints the versions of this module, Caddy and the embedded engine; asks no server", cobra.NoArgs,
		func(*cobra.Command, []string) (any, error) {
			info, _ := debug.ReadBuildInfo()
			return versionsOf(info), nil
		})
}

// versionsOf reads the versions from what the build recorded; info may be nil.
func versionsOf(info *debug.BuildInfo) versions {
	v := versions{
		Version: "(devel)", Caddy: "unknown", Engine: embedded.Version, Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
	}
	if simple, _ := caddy.Version(); simple != "" {
		v.Caddy = simple
	}
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
