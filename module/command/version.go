package command

import (
	goruntime "runtime"
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
)

// versions lists what this binary is made of.
type versions struct {
	Version  string `json:"version"`            // of this module; (devel) for a checkout without a version
	Commit   string `json:"commit,omitempty"`   // of the checkout, if the build recorded it
	Modified bool   `json:"modified,omitempty"` // the checkout had uncommitted changes
	Caddy    string `json:"caddy"`
	Engine   string `json:"engine"` // the release of the embedded engine that the module is built for
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

// versionsOf reads the versions from the build information; info may be nil.
func versionsOf(info *debug.BuildInfo) versions {
	v := versions{
		Caddy: "unknown", Engine: embedded.Version, Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH,
	}
	if simple, _ := caddy.Version(); simple != "" {
		v.Caddy = simple
	}
	built := buildinfo.Of(info)
	v.Version, v.Commit, v.Modified = built.Version, built.Commit, built.Modified
	return v
}
