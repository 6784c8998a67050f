package insights

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// currentVariables is the query of an insight with the insight variables that there are: those whose definition is gone are left out, and the
// others go by the number that they have now. PostHog does so with the node of saved SQL alone.
func currentVariables(c *api.Caller, raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"variables"`)) {
		return raw
	}
	var node, source map[string]json.RawMessage
	var stored map[string]map[string]json.RawMessage
	var kind string
	if json.Unmarshal(raw, &node) != nil || json.Unmarshal(node["kind"], &kind) != nil || kind != "DataVisualizationNode" ||
		json.Unmarshal(node["source"], &source) != nil || json.Unmarshal(source["variables"], &stored) != nil {
		return raw
	}
	current := make(map[string]map[string]json.RawMessage, len(stored))
	same := true
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		var code string
		if json.Unmarshal(stored[id]["code_name"], &code) != nil {
			same = false
			continue
		}
		def := c.Snapshot.VariableByCode(c.Project.ID, code)
		if def == nil {
			same = false
			continue
		}
		now := maps.Clone(stored[id])
		now["variableId"] = jsontext.Append(nil, def.ID)
		same = same && id == def.ID && bytes.Equal(now["variableId"], stored[id]["variableId"])
		current[def.ID] = now
	}
	if same {
		return raw
	}
	source["variables"] = jsontext.Append(nil, current)
	node["source"] = jsontext.Append(nil, source)
	return jsontext.Append(nil, node)
}
