package insights

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
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
