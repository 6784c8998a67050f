package command

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func consoleCommand() *cobra.Command {
	cmd := leaf("console [--project <id>] [--scopes <object:action,…>] [--expires 12h] [--site <url>]",
		"Prints a link that opens the web console, signed in; it works once, within five minutes", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			scopes, _ := cmd.Flags().GetStringSlice("scopes")
			out, err := call[adminapi.SignInLink](cmd, http.MethodPost, "/analytics/console", adminapi.SignIn{
				Project: number(cmd, "project"), Scopes: scopes, Expires: text(cmd, "expires"), Site: text(cmd, "site"),
			})
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Open this link within five minutes; it works once:\n\n    %s\n\n", out.Link)
			return out, nil
		})
	cmd.Flags().Int64("project", 0, "the project to sign in to; default: the only one")
	cmd.Flags().StringSlice("scopes", nil, "what the session may do, such as query:read,insight:write; default: everything")
	cmd.Flags().String("expires", "12h", "when the session ends, from its start; at most 30d")
	cmd.Flags().String("site", "", "the scheme and host of the console, such as https://analytics.example.com; default: public_url, else what the config says")
	return cmd
}
