package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// The activities that a log tells of (contract: api.md, section 4.5).
const (
	ActivityCreated  = "created"
	ActivityUpdated  = "updated"
	ActivityDeleted  = "deleted"
	ActivityRestored = "restored"
)

// ScopeInsight is what an Activity of an insight is about.
const ScopeInsight = "Insight"

// Activity is one entry of a project's log: who did what, and when.
type Activity struct {
	ID       string // UUID; later ones are greater
	Project  int64
	Scope    string // ScopeInsight
	Item     string // number of what changed
	Activity string // created, updated, deleted or restored
	Name     string // of what changed, then
	ShortID  string
	Changes  []FieldChange
	At       time.Time
	By       string // id of a key
}

// FieldChange is what became of one field.
type FieldChange struct {
	Type   string          `json:"type"`   // what the field belongs to, such as Insight
	Action string          `json:"action"` // created, changed or deleted
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// ActivityPage says which part of a log is wanted.
type ActivityPage struct {
	Scope         string
	Item          string // empty for all
	Limit, Offset int
}

// Activities returns a part of a project's log, newest first, and how long the log is. It asks the store.
func (r *Registry) Activities(ctx context.Context, project int64, page ActivityPage) (entries []Activity, total int, err error) {
	entries, total, err = r.store.Activities(ctx, project, page)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the activity log: %w", err)
	}
	return entries, total, nil
}

// View is the last time that an insight was looked at with a key.
type View struct {
	Insight int64
	Viewer  string // id of a key
	At      time.Time
}

// Views returns the views of a project's insights since a time, newest first. It asks the store.
func (r *Registry) Views(ctx context.Context, project int64, since time.Time) ([]View, error) {
	views, err := r.store.Views(ctx, project, since)
	if err != nil {
		return nil, fmt.Errorf("reading the views of insights: %w", err)
	}
	return views, nil
}

// logInsight adds an entry about an insight. One without any name has no log (contract: api.md, section 4.5).
func logInsight(ctx context.Context, tx Tx, activity string, i *Insight, changes []FieldChange, by string, at time.Time) error {
	if i.Title() == "" {
		return nil
	}
	return tx.InsertActivity(ctx, Activity{
		ID: newID(), Project: i.Project, Scope: ScopeInsight, Item: strconv.FormatInt(i.ID, 10), Activity: activity,
		Name: i.Title(), ShortID: i.ShortID, Changes: changes, At: at, By: by,
	})
}

// insightActivity names what an update did.
func insightActivity(before, after *Insight) string {
	switch {
	case after.Deleted && !before.Deleted:
		return ActivityDeleted
	case before.Deleted && !after.Deleted:
		return ActivityRestored
	}
	return ActivityUpdated
}

// insightChanges lists the fields that an update changed.
func insightChanges(before, after *Insight) []FieldChange {
	var changes []FieldChange
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"name", before.Name, after.Name},
		{"derived_name", before.DerivedName, after.DerivedName},
		{"description", before.Description, after.Description},
		{"query", before.Query, after.Query},
		{"filters", before.Filters, after.Filters},
		{"order", before.Order, after.Order},
		{"deleted", before.Deleted, after.Deleted},
		{"favorited", before.Favorited, after.Favorited},
		{"saved", before.Saved, after.Saved},
		{"tags", before.Tags, after.Tags},
	} {
		if !reflect.DeepEqual(f.before, f.after) {
			changes = append(changes, changeOf(ScopeInsight, f.name, f.before, f.after))
		}
	}
	return changes
}

// changeOf tells what became of a field.
func changeOf(typ, field string, before, after any) FieldChange {
	c := FieldChange{Type: typ, Action: "changed", Field: field, Before: mustJSON(before), After: mustJSON(after)}
	switch {
	case string(c.Before) == "null":
		c.Action = "created"
	case string(c.After) == "null":
		c.Action = "deleted"
	}
	return c
}

// names are what a log tells of dashboards.
func names(dashboards []Dashboard) any {
	type named struct {
		ID   int64   `json:"id"`
		Name *string `json:"name"`
	}
	all := make([]named, len(dashboards))
	for i, d := range dashboards {
		all[i] = named{d.ID, d.Name}
	}
	return all
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a change that is no JSON: " + err.Error())
	}
	return raw
}
