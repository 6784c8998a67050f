package events

import "github.com/caddy-analytics/caddy-analytics/compiler/insight"

// field is one member of an object: its name in the answer, and where its value comes from.
type field struct {
	name  string
	chain []string
	json  bool // the value is JSON as text
}

// objects are what can be selected as one value: a whole event, and the person of an event.
var objects = map[string][]field{
	"*": {
		{name: "uuid", chain: []string{"uuid"}},
		{name: "event", chain: []string{"event"}},
		{name: "properties", chain: []string{"properties"}, json: true},
		{name: "timestamp", chain: []string{"timestamp"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
		{name: "elements_chain", chain: []string{"elements_chain"}},
		{name: "created_at", chain: []string{"created_at"}},
	},
	"person": {
		{name: "uuid", chain: []string{"person_id"}},
		{name: "created_at", chain: []string{"person", "created_at"}},
		{name: "properties", chain: []string{"person", "properties"}, json: true},
		{name: "distinct_id", chain: []string{"distinct_id"}},
	},
}

// shapes makes what turns the tuples of a row into objects; nil when no column is one.
func shapes(columns []string) func(row []byte) ([]byte, error) {
	wanted := map[int]insight.Object{}
	for i, column := range columns {
		fields, ok := objects[column]
		if !ok {
			continue
		}
		members := make([]insight.Member, len(fields))
		for k, f := range fields {
			members[k] = insight.Member{Name: f.name, JSON: f.json}
		}
		wanted[i] = insight.ObjectOf(members)
	}
	return insight.Objects(len(columns), wanted)
}
