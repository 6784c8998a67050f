package command

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func alertCommand() *cobra.Command {
	list := leaf("list --project <id>", "Lists the alerts of a project, with the messages that wait for their webhooks", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodGet, "/analytics/alerts?"+ofProject(cmd), nil)
		})
	check := leaf("check --project <id> <alert>", "Starts a check of an alert, and returns at once", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/alerts/"+url.PathEscape(args[0])+"/check?"+ofProject(cmd), nil)
		})
	for _, cmd := range []*cobra.Command{list, check} {
		cmd.Flags().Int64("project", 0, "the project")
		mustRequire(cmd, "project")
	}
	return group("alert", "Lists and checks alerts", list, check)
}
