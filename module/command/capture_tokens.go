package command

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// captureTokenCommand holds the commands for the tokens that events are captured with.
func captureTokenCommand() *cobra.Command {
	one := func(use, short, method string, args cobra.PositionalArgs) *cobra.Command {
		cmd := leaf(use, short, args, func(cmd *cobra.Command, args []string) (any, error) {
			path := "/analytics/projects/" + strconv.FormatInt(number(cmd, "project"), 10) + "/tokens"
			if len(args) > 0 {
				path += "/" + url.PathEscape(args[0])
			}
			return call[json.RawMessage](cmd, method, path, nil)
		})
		cmd.Flags().Int64("project", 0, "the project")
		mustRequire(cmd, "project")
		return cmd
	}
	return group("token", "Shows, rotates and revokes the capture tokens of a project",
		one("show --project <id>", "Shows the tokens that events are captured with; the first is the one to use", http.MethodGet, cobra.NoArgs),
		one("rotate --project <id>", "Makes a new capture token; the others are good until they are revoked", http.MethodPost, cobra.NoArgs),
		one("revoke <token> --project <id>", "Ends a capture token: events that come with it are refused from now on", http.MethodDelete, cobra.ExactArgs(1)),
	)
}
