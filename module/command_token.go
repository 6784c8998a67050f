package module

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// rotateBody asks for a new secret for the tokens of a project.
type rotateBody struct {
	Project int64 `json:"project"`
	Revoke  bool  `json:"revoke"`
}

// tokenSecretRecord tells of a secret what is none.
type tokenSecretRecord struct {
	Project   int64     `json:"project"`
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
}

func adminRotateTokens(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[rotateBody](r)
	if err != nil {
		return nil, err
	}
	secret, err := rt.registry.RotateTokenSecret(r.Context(), body.Project, body.Revoke, time.Now())
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what was being done
	}
	return tokenSecretRecord{Project: body.Project, ID: secret.ID, CreatedAt: secret.CreatedAt}, nil
}

func tokenCommand() *cobra.Command {
	rotate := leaf("rotate --project <id> [--revoke]", "Signs tokens for browsers with a new secret; those of the secret before it work on until they expire",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
			revoke, _ := cmd.Flags().GetBool("revoke")
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/tokens/rotate", rotateBody{Project: number(cmd, "project"), Revoke: revoke})
		})
	rotate.Flags().Int64("project", 0, "the project")
	rotate.Flags().Bool("revoke", false, "end all tokens of the project at once")
	mustRequire(rotate, "project")
	return group("token", "Rotates the secret of tokens for browsers", rotate)
}
