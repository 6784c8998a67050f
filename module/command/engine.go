package command

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  embedded.Subcommand,
		Short: "Serves the embedded engine to the process that started it",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Hidden = true
			cmd.DisableFlagParsing = true
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				cmd.SilenceUsage = true
				return embedded.ChildMain(args)
			}
		},
	})
}
