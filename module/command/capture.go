package command

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"
)

func captureCommand() *cobra.Command {
	return group("capture", "Shows the state of event capture",
		leaf("status", "Shows how many events are waiting for ClickHouse and for how long, and how many were accepted, refused and delivered", cobra.NoArgs,
			func(cmd *cobra.Command, _ []string) (any, error) {
				return call[json.RawMessage](cmd, http.MethodGet, "/analytics/capture", nil)
			}))
}
