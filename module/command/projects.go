package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func projectCommand() *cobra.Command {
	create := leaf("create --name <name> [--timezone <zone>] [--week-start 0|1] [--test-account-filters <json>|@<file>] [--path-cleaning-filters <json>|@<file>]",
		"Creates a project", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			body := adminapi.NewProject{Name: text(cmd, "name"), Timezone: text(cmd, "timezone"), WeekStart: number(cmd, "week-start")}
			var err error
			if body.TestAccountFilters, err = jsonFlag(cmd, "test-account-filters"); err != nil {
				return nil, err
			}
			if body.PathCleaningFilters, err = jsonFlag(cmd, "path-cleaning-filters"); err != nil {
				return nil, err
			}
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/projects", body)
		})
	create.Flags().String("name", "", "the project's name")
	create.Flags().String("timezone", "UTC", "the time zone of its days, as an IANA name")
	create.Flags().Int64("week-start", 0, "the first day of its weeks: 0 Sunday, 1 Monday")
	projectLists(create)
	mustRequire(create, "name")

	set := leaf("set --project <id> [--name <name>] [--timezone <zone>] [--week-start 0|1] [--test-account-filters <json>|@<file>] [--path-cleaning-filters <json>|@<file>]",
		"Changes a project: what is given, and nothing else", cobra.NoArgs, setProject)
	set.Flags().Int64("project", 0, "the project")
	set.Flags().String("name", "", "the project's name")
	set.Flags().String("timezone", "", "the time zone of its days, as an IANA name")
	set.Flags().Int64("week-start", 0, "the first day of its weeks: 0 Sunday, 1 Monday")
	projectLists(set)
	mustRequire(set, "project")

	list := leaf("list", "Lists the projects", cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
		return call[json.RawMessage](cmd, http.MethodGet, "/analytics/projects", nil)
	})
	return group("project", "Creates, changes, lists and purges projects", create, set, list, captureTokenCommand(), purgeLeaf())
}

// projectLists adds the flags of the settings that are lists.
func projectLists(cmd *cobra.Command) {
	cmd.Flags().String("test-account-filters", "", "the property filters that leave out test accounts where a query asks for that: a JSON list, or @file; [] for none")
	cmd.Flags().String("path-cleaning-filters", "", "the rules that clean the steps of paths where a query asks for that: a JSON list of {regex, alias}, or @file; [] for none")
}

func setProject(cmd *cobra.Command, _ []string) (any, error) {
	var change adminapi.ProjectChange
	flags := cmd.Flags()
	for name, into := range map[string]**string{"name": &change.Name, "timezone": &change.Timezone} {
		if flags.Changed(name) {
			value := text(cmd, name)
			*into = &value
		}
	}
	if flags.Changed("week-start") {
		day := int(number(cmd, "week-start"))
		change.WeekStart = &day
	}
	var err error
	if change.TestAccountFilters, err = jsonFlag(cmd, "test-account-filters"); err != nil {
		return nil, err
	}
	if change.PathCleaningFilters, err = jsonFlag(cmd, "path-cleaning-filters"); err != nil {
		return nil, err
	}
	if change.Name == nil && change.Timezone == nil && change.WeekStart == nil && change.TestAccountFilters == nil && change.PathCleaningFilters == nil {
		return nil, errors.New("nothing to change was given")
	}
	return call[json.RawMessage](cmd, http.MethodPatch, "/analytics/projects/"+strconv.FormatInt(number(cmd, "project"), 10), change)
}

// jsonFlag reads a flag whose value is JSON, or an @ and the name of a file that holds it; nil when the flag is not given.
func jsonFlag(cmd *cobra.Command, flag string) (json.RawMessage, error) {
	if !cmd.Flags().Changed(flag) {
		return nil, nil
	}
	raw := []byte(text(cmd, flag))
	if path, ok := strings.CutPrefix(string(raw), "@"); ok {
		var err error
		if raw, err = os.ReadFile(path); err != nil { //nolint:gosec // the operator names the file
			return nil, fmt.Errorf("reading --%s: %w", flag, err)
		}
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("--%s is not valid JSON", flag)
	}
	return raw, nil
}
