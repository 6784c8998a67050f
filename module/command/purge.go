package command

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func purgeLeaf() *cobra.Command {
	purge := leaf("purge --project <id> [--older-than 30d]", "Removes for good what was deleted or revoked, or has expired, in a project", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			path := "/analytics/projects/" + strconv.FormatInt(number(cmd, "project"), 10) + "/purge"
			return call[json.RawMessage](cmd, http.MethodPost, path, adminapi.Purge{OlderThan: text(cmd, "older-than")})
		})
	purge.Flags().Int64("project", 0, "the project")
	purge.Flags().String("older-than", "30d", "how long ago it must have been deleted; 0s for all that is deleted")
	mustRequire(purge, "project")
	return purge
}
