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
		one("show --project <id>", "Shows the capture tokens, newest first; new pages should use the first", http.MethodGet, cobra.NoArgs),
		one("rotate --project <id>", "Creates a new capture token; the old ones keep working until they are revoked", http.MethodPost, cobra.NoArgs),
		one("revoke <token> --project <id>", "Revokes a capture token: events sent with it are refused from then on", http.MethodDelete, cobra.ExactArgs(1)),
	)
}
