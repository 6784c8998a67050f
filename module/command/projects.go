package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func projectCommand() *cobra.Command {
	create := leaf("create --name <name> [--timezone <zone>] [--week-start 0|1] [--retention <days>d|off] [--shard <name>] [--test-account-filters <json>|@<file>] [--path-cleaning-filters <json>|@<file>]",
		"Creates a project", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			body := adminapi.NewProject{Name: text(cmd, "name"), Timezone: text(cmd, "timezone"), WeekStart: number(cmd, "week-start")}
			var err error
			if body.Retention, err = retention(cmd); err != nil {
				return nil, err
			}
			if body.TestAccountFilters, err = jsonFlag(cmd, "test-account-filters"); err != nil {
				return nil, err
			}
			if body.PathCleaningFilters, err = jsonFlag(cmd, "path-cleaning-filters"); err != nil {
				return nil, err
			}
			if cmd.Flags().Changed("shard") {
				body.Shard = new(text(cmd, "shard"))
			}
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/projects", body)
		})
	create.Flags().String("name", "", "the project's name")
	create.Flags().String("timezone", "UTC", "the time zone of its days, as an IANA name")
	create.Flags().Int64("week-start", 0, "the first day of its weeks: 0 Sunday, 1 Monday")
	create.Flags().String("shard", "", "the ClickHouse shard for its rows, as named in the config, or empty for the main one (default: the shard with the fewest projects)")
	projectLists(create)
	mustRequire(create, "name")

	set := leaf("set <id> [--name <name>] [--timezone <zone>] [--week-start 0|1] [--retention <days>d|off] [--test-account-filters <json>|@<file>] [--path-cleaning-filters <json>|@<file>]",
		"Changes a project: what is given, and nothing else", cobra.MaximumNArgs(1), setProject)
	set.Flags().Int64("project", 0, "the project, if it is not named by an argument")
	set.Flags().String("name", "", "the project's name")
	set.Flags().String("timezone", "", "the time zone of its days, as an IANA name")
	set.Flags().Int64("week-start", 0, "the first day of its weeks: 0 Sunday, 1 Monday")
	projectLists(set)

	list := leaf("list", "Lists the projects", cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
		return call[json.RawMessage](cmd, http.MethodGet, "/analytics/projects", nil)
	})
	remove := leaf("delete <id> --confirm <name>", "Deletes a project with all of its data", cobra.MaximumNArgs(1), deleteProject)
	remove.Flags().Int64("project", 0, "the project, if it is not named by an argument")
	remove.Flags().String("confirm", "", "the project's name, so that no other one is deleted by mistake")
	mustRequire(remove, "confirm")
	return group("project", "Creates, changes, lists, purges and deletes projects", create, set, list, remove, captureTokenCommand(), purgeLeaf())
}

// projectLists adds the flags for the retention and for the settings that are lists.
func projectLists(cmd *cobra.Command) {
	cmd.Flags().String("retention", "", "for how many days events are kept, such as 365d; off or 0 forever")
	cmd.Flags().String("test-account-filters", "", "the property filters that leave out test accounts where a query asks for that: a JSON list, or @file; [] for none")
	cmd.Flags().String("path-cleaning-filters", "", "the rules that clean the steps of paths where a query asks for that: a JSON list of {regex, alias}, or @file; [] for none")
}

// retention reads the flag for how many days events are kept; 0: forever.
func retention(cmd *cobra.Command) (days int, err error) {
	given := text(cmd, "retention")
	if given == "" || given == "0" || given == "off" {
		return 0, nil
	}
	kept, err := caddy.ParseDuration(given)
	const day = 24 * time.Hour
	if err != nil || kept < day || kept%day != 0 {
		return 0, fmt.Errorf("--retention %s is not a number of days (want, for example, 365d, or off)", given)
	}
	return int(kept / day), nil
}

// projectOf returns the project named by an argument or by the flag.
func projectOf(cmd *cobra.Command, args []string) (int64, error) {
	given := number(cmd, "project")
	if len(args) == 0 && given != 0 {
		return given, nil
	}
	if len(args) == 0 || given != 0 {
		return 0, errors.New("give the project's id once")
	}
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, fmt.Errorf("%q is not a project id", args[0])
	}
	return id, nil
}

func deleteProject(cmd *cobra.Command, args []string) (any, error) {
	project, err := projectOf(cmd, args)
	if err != nil {
		return nil, err
	}
	body := adminapi.ProjectDeletion{Confirm: text(cmd, "confirm")}
	return call[json.RawMessage](cmd, http.MethodDelete, "/analytics/projects/"+strconv.FormatInt(project, 10), body)
}

func setProject(cmd *cobra.Command, args []string) (any, error) {
	var change adminapi.ProjectChange
	flags := cmd.Flags()
	project, err := projectOf(cmd, args)
	if err != nil {
		return nil, err
	}
	if flags.Changed("retention") {
		days, err := retention(cmd)
		if err != nil {
			return nil, err
		}
		change.Retention = &days
	}
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
	if change.TestAccountFilters, err = jsonFlag(cmd, "test-account-filters"); err != nil {
		return nil, err
	}
	if change.PathCleaningFilters, err = jsonFlag(cmd, "path-cleaning-filters"); err != nil {
		return nil, err
	}
	if change.Name == nil && change.Timezone == nil && change.WeekStart == nil && change.Retention == nil && change.TestAccountFilters == nil && change.PathCleaningFilters == nil {
		return nil, errors.New("no setting to change was given")
	}
	return call[json.RawMessage](cmd, http.MethodPatch, "/analytics/projects/"+strconv.FormatInt(project, 10), change)
}

// jsonFlag reads a flag whose value is JSON, or @ and the name of a file with JSON; nil if the flag is not given.
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
