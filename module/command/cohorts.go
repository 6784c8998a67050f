package command

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func cohortCommand() *cobra.Command {
	create := leaf("create --project <id> --name <name> [--id <number>]", "Creates a cohort, which an import can put people into", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/cohorts",
				adminapi.CohortFields{Project: number(cmd, "project"), ID: number(cmd, "id"), Name: text(cmd, "name")})
		})
	create.Flags().String("name", "", "the cohort's name")
	create.Flags().Int64("id", 0, "the number of a cohort whose members are in ClickHouse already; default: the next one")
	mustRequire(create, "name")

	list := leaf("list --project <id>", "Lists the cohorts of a project", cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
		return call[json.RawMessage](cmd, http.MethodGet, "/analytics/cohorts?"+ofProject(cmd), nil)
	})
	rename := leaf("rename --project <id> --name <name> <number>", "Renames a cohort", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPatch, "/analytics/cohorts/"+url.PathEscape(args[0]),
				adminapi.CohortFields{Project: number(cmd, "project"), Name: text(cmd, "name")})
		})
	rename.Flags().String("name", "", "the cohort's new name")
	mustRequire(rename, "name")

	remove := leaf("delete --project <id> <number>", "Deletes a cohort that nothing uses; its number is not reused unless create --id names it", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodDelete, "/analytics/cohorts/"+url.PathEscape(args[0])+"?"+ofProject(cmd), nil)
		})
	recalculate := leaf("recalculate --project <id> <number>", "Starts to compute the members of a cohort, and returns at once", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/cohorts/"+url.PathEscape(args[0])+"/recalculate?"+ofProject(cmd), nil)
		})
	for _, cmd := range []*cobra.Command{create, list, rename, remove, recalculate} {
		cmd.Flags().Int64("project", 0, "the project")
		mustRequire(cmd, "project")
	}
	return group("cohort", "Creates, lists, renames, deletes and computes cohorts", create, list, rename, remove, recalculate)
}

// ofProject returns the query parameter that names the project.
func ofProject(cmd *cobra.Command) string {
	return "project=" + strconv.FormatInt(number(cmd, "project"), 10)
}
