package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "analytics",
		Short: "Manages projects, keys, endpoints and data of the analytics API",
		Long: `
Manages the analytics API of a running server through its admin address. Results
go to standard output as one JSON object, messages to standard error.
`,
		CobraFunc: func(root *cobra.Command) {
			root.PersistentFlags().String("address", caddy.DefaultAdminListen, "the admin address of the running server")
			root.AddCommand(projectCommand(), keyCommand(), tokenCommand(), importCommand(), propertyCommand(), cohortCommand(), endpointsCommand(), versionCommand())
			root.Args = subcommandOnly
			root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			root.SetFlagErrorFunc(flagMistake)
		},
	})
}

// leaf makes a command that ends a chain of words; run writes its result as JSON.
func leaf(use, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) (any, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			result, err := run(cmd, args)
			if err == nil || errors.Is(err, errBadLines) {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(result); err != nil {
					return fmt.Errorf("writing the result: %w", err)
				}
			}
			return err
		},
	}
}

func projectCommand() *cobra.Command {
	create := leaf("create --name <name> [--timezone <zone>] [--week-start 0|1] [--test-account-filters <json>|@<file>] [--path-cleaning-filters <json>|@<file>]",
		"Creates a project", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			body := projectBody{Name: text(cmd, "name"), Timezone: text(cmd, "timezone"), WeekStart: number(cmd, "week-start")}
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
	return group("project", "Creates, changes, lists and purges projects", create, set, list, purgeLeaf())
}

// projectLists adds the flags of the settings that are lists.
func projectLists(cmd *cobra.Command) {
	cmd.Flags().String("test-account-filters", "", "the property filters that leave out test accounts where a query asks for that: a JSON list, or @file; [] for none")
	cmd.Flags().String("path-cleaning-filters", "", "the rules that clean the steps of paths where a query asks for that: a JSON list of {regex, alias}, or @file; [] for none")
}

func setProject(cmd *cobra.Command, _ []string) (any, error) {
	var change projectChange
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

// jsonFlag reads a flag that holds JSON, or the name of a file that does behind an @; nil when it is not given.
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

func keyCommand() *cobra.Command {
	create := leaf("create --project <id> --scopes <object:action,…> [--kind personal|secret] [--label <text>] [--expires 90d] [--fix <variable>=<value>]… [--endpoints <name,…>]",
		"Creates a key and shows it this once", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			scopes, _ := cmd.Flags().GetStringSlice("scopes")
			fix, err := fixFlag(cmd)
			if err != nil {
				return nil, err
			}
			endpoints, _ := cmd.Flags().GetStringSlice("endpoints")
			if cmd.Flags().Changed("endpoints") && len(endpoints) == 0 {
				return nil, errors.New("--endpoints names no endpoint")
			}
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/keys", keyBody{
				Project: number(cmd, "project"), Scopes: scopes, Kind: text(cmd, "kind"), Label: text(cmd, "label"), Expires: text(cmd, "expires"),
				Fix: fix, Endpoints: endpoints,
			})
		})
	create.Flags().Int64("project", 0, "the project that the key opens")
	create.Flags().StringSlice("scopes", nil, "what the key may do, such as query:read,endpoint:write")
	create.Flags().String("kind", "personal", "personal (phx_…) or secret (phs_…: it runs endpoints)")
	create.Flags().String("label", "", "a name for people, at most 40 characters")
	create.Flags().String("expires", "", "when the key stops working, from now, such as 90d; default: never")
	create.Flags().StringArray("fix", nil, "a variable that every run with the key has, as name=value; may be given several times")
	create.Flags().StringSlice("endpoints", nil, "the only endpoints that the key may run; default: all")
	mustRequire(create, "project", "scopes")

	list := leaf("list [--project <id>]", "Lists keys, without their secrets", cobra.NoArgs, func(cmd *cobra.Command, _ []string) (any, error) {
		return call[json.RawMessage](cmd, http.MethodGet, "/analytics/keys?project="+strconv.FormatInt(number(cmd, "project"), 10), nil)
	})
	list.Flags().Int64("project", 0, "only the keys of this project; 0: of all")

	revoke := leaf("revoke <id>", "Revokes a key: it stops working at once", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) (any, error) {
		return call[json.RawMessage](cmd, http.MethodPost, "/analytics/keys/"+url.PathEscape(args[0])+"/revoke", nil)
	})
	roll := leaf("roll <id>", "Gives a key a new secret, shown this once; the old one stops working at once", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/keys/"+url.PathEscape(args[0])+"/roll", nil)
		})
	return group("key", "Creates, lists, revokes and rolls keys", create, list, revoke, roll)
}

// fixFlag reads the variables of --fix.
func fixFlag(cmd *cobra.Command) (map[string]json.RawMessage, error) {
	given, _ := cmd.Flags().GetStringArray("fix")
	fix := make(map[string]json.RawMessage, len(given))
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := fix[name]; !ok || name == "" || value == "" || twice {
			return nil, fmt.Errorf("--fix %q: want one name=value for each variable", pair)
		}
		fix[name] = jsontext.Append(nil, value)
	}
	return fix, nil
}

func propertyCommand() *cobra.Command {
	set := leaf("set --project <id> --type event|person|group --name <name> --as String|Numeric|Boolean|DateTime",
		"Says how a property is read", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/properties", propertyBody{
				Project: number(cmd, "project"), Type: text(cmd, "type"), Group: int(number(cmd, "group-type-index")),
				Name: text(cmd, "name"), As: text(cmd, "as"),
			})
		})
	set.Flags().Int64("project", 0, "the project")
	set.Flags().String("type", "event", "whose property it is: event, person or group")
	set.Flags().Int64("group-type-index", 0, "the group type, with --type group")
	set.Flags().String("name", "", "the property's name")
	set.Flags().String("as", "", "String, Numeric, Boolean or DateTime")
	mustRequire(set, "project", "name", "as")
	return group("property", "Types properties", set)
}

func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: subcommandOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(errors.New(use+" needs one of its subcommands"), cmd.Usage())
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

func mustRequire(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}

func text(cmd *cobra.Command, flag string) string {
	value, err := cmd.Flags().GetString(flag)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

func number(cmd *cobra.Command, flag string) int64 {
	value, err := cmd.Flags().GetInt64(flag)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

func flag(cmd *cobra.Command, name string) bool {
	value, err := cmd.Flags().GetBool(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

// call asks the running server's admin API, sending body as JSON unless it is nil or an io.Reader.
func call[T any](cmd *cobra.Command, method, uri string, body any) (T, error) {
	var out T
	var reader io.Reader
	header := http.Header{}
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader = b
		header.Set("Content-Type", "application/x-ndjson")
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return out, fmt.Errorf("encoding the request: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	resp, err := caddycmd.AdminAPIRequest(text(cmd, "address"), method, uri, header, reader)
	if err != nil {
		return out, fmt.Errorf("asking the server at %s: %w", text(cmd, "address"), err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("reading the server's answer: %w", err)
	}
	return out, nil
}
