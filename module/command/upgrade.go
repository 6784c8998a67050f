package command

import (
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/module/datafolder"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/postgres" // the store of postgres://…
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"   // the store of sqlite:PATH
)

func upgradeCommand() *cobra.Command {
	check := leaf("check [data folder]", "Says what this version would change in a data folder; asks no server and changes nothing", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			dsn, err := registryDSN(cmd, "registry")
			if err != nil {
				return nil, err
			}
			folder := filepath.Join(caddy.AppDataDir(), "analytics")
			if len(args) > 0 {
				folder = args[0]
			}
			folder, err = filepath.Abs(folder)
			if err != nil {
				return nil, fmt.Errorf("finding the data folder: %w", err)
			}
			state, err := registry.InspectStore(cmd.Context(), dsn, folder)
			if err != nil {
				return nil, err
			}
			return datafolder.Inspect(folder, buildinfo.Read().Version, state)
		})
	check.Flags().String("registry", "", "the registry, as in the config: sqlite:PATH or postgres://…; it may have placeholders such as {env.DSN}; default: registry.db in the data folder")
	return group("upgrade", "Inspects data folders of other versions", check)
}
