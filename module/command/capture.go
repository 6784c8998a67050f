package command

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"
)

func captureCommand() *cobra.Command {
	return group("capture", "Shows how captured events are on their way",
		leaf("status", "Shows how many captured events wait for ClickHouse, since when, and what was refused", cobra.NoArgs,
			func(cmd *cobra.Command, _ []string) (any, error) {
				return call[json.RawMessage](cmd, http.MethodGet, "/analytics/capture", nil)
			}))
}
