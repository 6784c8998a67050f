package publish

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// fillVariables writes the definitions of the variables that a query uses into its JSON, and leaves out the others.
func (p *Publisher) fillVariables(q *query.HogQL, fields map[string]json.RawMessage) (query.Node, error) {
	used, err := compiler.Variables(q.Text())
	if err != nil {
		return nil, queryMistake(&execution.QueryError{Text: q.Text(), Err: err})
	}
	given := make(map[string]query.Variable, len(used))
	for _, id := range slices.Sorted(maps.Keys(q.Variables)) { // sorted: if two have the same code name, the same one counts each time
		v := q.Variables[id]
		if _, ok := slices.BinarySearch(used, v.CodeName); !ok {
			continue // left out, whatever its id
		}
		if _, err := uuid.Parse(id); err != nil {
			return nil, api.Invalid("query", "invalid_input", "Variable ID(s) not valid UUIDs: %s.", id)
		}
		if p.snap.VariableByID(p.project.ID, api.CanonicalID(v.VariableID)) == nil {
			return nil, api.Invalid("query", "invalid_input", "Variable ID(s) not found: %s.", v.VariableID)
		}
		given[v.CodeName] = v
	}
	var missing []string
	filled := *q
	filled.Variables = make(map[string]query.Variable, len(used))
	stored := make(map[string]map[string]any, len(used))
	for _, code := range used {
		def := p.snap.VariableByCode(p.project.ID, code)
		if def == nil {
			missing = append(missing, code)
			continue
		}
		v := given[code]
		v.VariableID, v.CodeName = def.ID, code
		if v.HasValue && !v.IsNull { // runs without the variable use this value as it is
			if v.Value, err = api.CheckVariable(def, api.OnlyItem(def, v.Value)); err != nil {
				return nil, api.Invalid("query", "invalid_input", "Variable %s: %s", code, err)
			}
		}
		filled.Variables[def.ID] = v
		stored[def.ID] = map[string]any{"variableId": def.ID, "code_name": code}
		if v.HasValue {
			stored[def.ID]["value"] = v.Value
		}
		if v.IsNull {
			stored[def.ID]["isNull"] = true
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, api.Invalid("query", "invalid_input", "Query references undefined variable(s): %s. "+
			"See insight_variables/, where variables are made.", strings.Join(missing, ", "))
	}
	switch {
	case len(stored) > 0:
		fields["variables"] = jsontext.Append(nil, stored)
	case string(fields["variables"]) != "null": // null stays, as every field of a query that its author left empty
		delete(fields, "variables")
	}
	return &filled, nil
}
