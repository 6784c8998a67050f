package insights

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// currentVariables returns the query of an insight with its variables updated: those without a definition are left out, and the others get their current
// ids. PostHog does so only for the node of saved SQL.
func currentVariables(c *api.Caller, raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"variables"`)) {
		return raw
	}
	var node, source map[string]json.RawMessage
	var stored map[string]map[string]json.RawMessage
	var kind string
	if json.Unmarshal(raw, &node) != nil || json.Unmarshal(node["kind"], &kind) != nil || kind != query.SQLWrapper ||
		json.Unmarshal(node["source"], &source) != nil || json.Unmarshal(source["variables"], &stored) != nil {
		return raw
	}
	current, same := withCurrentIDs(c, stored, false)
	if same {
		return raw
	}
	source["variables"] = jsontext.Append(nil, current)
	node["source"] = jsontext.Append(nil, source)
	return jsontext.Append(nil, node)
}

// currentOverrides returns the variables of a dashboard or a variables_override with their current ids. With all, it keeps those without a definition.
func currentOverrides(c *api.Caller, raw json.RawMessage, all bool) json.RawMessage {
	var stored map[string]map[string]json.RawMessage
	if isEmptyObject(raw) || json.Unmarshal(raw, &stored) != nil {
		return raw
	}
	current, same := withCurrentIDs(c, stored, all)
	if same {
		return raw
	}
	return jsontext.Append(nil, current)
}

// withCurrentIDs returns variables by their current ids, and reports whether all are as they were. Those without a definition are left out, unless all are wanted.
func withCurrentIDs(c *api.Caller, stored map[string]map[string]json.RawMessage, all bool) (current map[string]map[string]json.RawMessage, same bool) {
	current, same = make(map[string]map[string]json.RawMessage, len(stored)), true
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		var code string
		var def *registry.Variable
		if json.Unmarshal(stored[id]["code_name"], &code) == nil {
			def = c.Snapshot.VariableByCode(c.Project.ID, code)
		}
		if def == nil {
			if same = same && all; all {
				current[id] = stored[id]
			}
			continue
		}
		now := maps.Clone(stored[id])
		now["variableId"] = jsontext.Append(nil, def.ID)
		same = same && id == def.ID && bytes.Equal(now["variableId"], stored[id]["variableId"])
		current[def.ID] = now
	}
	return current, same
}
