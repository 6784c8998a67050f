package command

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func propertyCommand() *cobra.Command {
	set := leaf("set --project <id> --type event|person|group --name <name> --as String|Numeric|Boolean|DateTime",
		"Sets the type of a property", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			of, err := choice(cmd, "type", "event", "person", "group")
			if err != nil {
				return nil, err
			}
			as, err := choice(cmd, "as", "String", "Numeric", "Boolean", "DateTime")
			if err != nil {
				return nil, err
			}
			return call[json.RawMessage](cmd, http.MethodPost, "/analytics/properties", adminapi.Property{
				Project: number(cmd, "project"), Type: of, Group: int(number(cmd, "group-type-index")),
				Name: text(cmd, "name"), As: as,
			})
		})
	set.Flags().Int64("project", 0, "the project")
	set.Flags().String("type", "event", "whose property it is: event, person or group")
	set.Flags().Int64("group-type-index", 0, "the group type, with --type group")
	set.Flags().String("name", "", "the property's name")
	set.Flags().String("as", "", "String, Numeric, Boolean or DateTime")
	mustRequire(set, "project", "name", "as")
	return group("property", "Sets the types of properties", set)
}
