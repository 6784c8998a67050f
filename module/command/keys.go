package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func keyCommand() *cobra.Command {
	create := leaf("create --project <id> --scopes <object:action,…> [--kind personal|secret] [--label <text>] [--expires 90d] [--fix <variable>=<value>]… [--endpoints <name,…>]",
		"Creates a key, and shows it only this once", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			scopes, _ := cmd.Flags().GetStringSlice("scopes")
			fix, err := fixFlag(cmd)
			if err != nil {
				return nil, err
			}
			endpoints, _ := cmd.Flags().GetStringSlice("endpoints")
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/keys", adminapi.NewKey{
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
	roll := leaf("roll <id>", "Gives a key a new secret, shown only this once; the old one stops working at once", cobra.ExactArgs(1),
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
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("--fix %q: %w", pair, err)
		}
		fix[name] = raw
	}
	return fix, nil
}
