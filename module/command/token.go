package command

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func tokenCommand() *cobra.Command {
	rotate := leaf("rotate --project <id> [--revoke]", "Signs tokens for browsers with a new secret; those signed with the previous one keep working until they expire",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/tokens/rotate", adminapi.RotateTokens{Project: number(cmd, "project"), Revoke: flag(cmd, "revoke")})
		})
	rotate.Flags().Int64("project", 0, "the project")
	rotate.Flags().Bool("revoke", false, "end all tokens of the project at once")
	mustRequire(rotate, "project")
	return group("token", "Rotates the secret of tokens for browsers", rotate)
}
