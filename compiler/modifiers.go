package compiler

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// modified returns the database as a query with modifiers sees it.
func modified(db *schema.Database, given query.Modifiers) *schema.Database {
	if given.Persons == nil && given.BounceSeconds == nil && given.Channels == nil {
		return db
	}
	out := *db
	out.Modifiers = schema.Modifiers{Channels: given.Channels}
	if given.Persons != nil {
		out.Modifiers.Persons = *given.Persons
	}
	if given.BounceSeconds != nil {
		out.Modifiers.BounceSeconds = *given.BounceSeconds
	}
	return &out
}
