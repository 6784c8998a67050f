package api

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// Person is a person in JSON.
type Person struct {
	ID           string          `json:"id"`
	UUID         string          `json:"uuid"`
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	DistinctIDs  []string        `json:"distinct_ids"`
	Properties   json.RawMessage `json:"properties"`
	CreatedAt    *time.Time      `json:"created_at"`
	IsIdentified bool            `json:"is_identified"`
}

// Complete fills in the fields of a stored person that follow from its id, its distinct ids and its properties. It puts the distinct ids that
// somebody chose first.
func (p *Person) Complete(c *Caller) {
	p.UUID, p.Type, p.DistinctIDs = p.ID, "person", chosenFirst(p.DistinctIDs)
	if p.CreatedAt != nil && p.CreatedAt.Unix() <= 0 {
		p.CreatedAt = nil
	}
	if p.Properties == nil {
		p.Properties = json.RawMessage("{}")
	}
	p.Name = p.name(c)
}

// chosenFirst puts distinct ids that somebody chose before those that a client generated, which are UUIDs.
func chosenFirst(ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, madeUp := range []bool{false, true} {
		for _, id := range ids {
			if _, err := uuid.Parse(id); (err == nil) == madeUp {
				out = append(out, id)
			}
		}
	}
	return out
}

// nameProperties are the properties that name a person, the best first. A project can replace them.
var nameProperties = []string{"email", "Email", "name", "Name", "username", "Username", "UserName"}

// name returns the display name of a person: from its properties, else a distinct id, else its id.
func (p *Person) name(c *Caller) string {
	var properties map[string]any
	_ = json.Unmarshal(p.Properties, &properties) // without names, an id is shown
	names := nameProperties
	if of := c.Snapshot.Schema(c.Project.ID); of != nil && len(of.DisplayNames) > 0 {
		names = of.DisplayNames
	}
	for _, name := range names {
		switch value := properties[name].(type) {
		case nil, map[string]any, []any:
		case string:
			if value != "" {
				return value
			}
		default:
			return string(jsontext.Append(nil, value))
		}
	}
	if len(p.DistinctIDs) > 0 {
		return p.DistinctIDs[0]
	}
	return p.ID
}
