package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// The activities that a log records (contract: api.md, section 4.5).
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
	Name     string // name of what changed, at that time
	ShortID  string
	Changes  []FieldChange
	At       time.Time
	By       string // id of a key
}

// FieldChange is the change of one field.
type FieldChange struct {
	Type   string          `json:"type"`   // what the field belongs to, such as Insight
	Action string          `json:"action"` // created, changed or deleted
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// ActivityPage selects a part of a log.
type ActivityPage struct {
	Scope         string
	Item          string // empty for all
	Limit, Offset int
}

// activityLog is the name of the log of a scope.
func activityLog(scope string) string { return "activity/" + scope }

// viewLog is the name of the log of views: it has one entry for each insight and key, the last view.
const viewLog = "view"

// activityData is the data of an entry of an activity log.
type activityData struct {
	Activity string        `json:"activity"`
	Name     string        `json:"name"`
	ShortID  string        `json:"short_id"`
	Changes  []FieldChange `json:"changes"`
}

// Activities returns a part of a project's log, newest first, and how long the log is. It queries the store.
func (r *Registry) Activities(ctx context.Context, project int64, page ActivityPage) (activities []Activity, total int, err error) {
	if page.Limit == 0 {
		return nil, 0, nil
	}
	part := EntryPage{Limit: page.Limit, Offset: page.Offset}
	if page.Item != "" {
		part.Items = []string{page.Item}
	}
	entries, total, err := r.store.Entries(ctx, project, activityLog(page.Scope), part)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the activity log: %w", err)
	}
	for _, e := range entries {
		var data activityData
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return nil, 0, fmt.Errorf("reading the activity log: %w", err)
		}
		activities = append(activities, Activity{
			ID: e.ID, Project: project, Scope: page.Scope, Item: e.Item, Activity: data.Activity, Name: data.Name, ShortID: data.ShortID,
			Changes: data.Changes, At: e.At, By: e.By,
		})
	}
	return activities, total, nil
}

// View is the last time that an insight was viewed with a key.
type View struct {
	Insight int64
	Viewer  string // id of a key
	At      time.Time
}

// Views returns the views of a project's insights since a time, newest first, then by insight and viewer. It queries the store.
func (r *Registry) Views(ctx context.Context, project int64, since time.Time) ([]View, error) {
	return r.views(ctx, project, EntryPage{Since: since})
}

// ViewsBy returns a part of the views by one key, newest first. It queries the store.
func (r *Registry) ViewsBy(ctx context.Context, project int64, viewer string, limit, offset int) ([]View, error) {
	return r.views(ctx, project, EntryPage{By: viewer, Limit: limit, Offset: offset})
}

// ViewsOf returns the views of some insights of a project, newest first. It queries the store.
func (r *Registry) ViewsOf(ctx context.Context, project int64, insights []int64) ([]View, error) {
	if len(insights) == 0 {
		return nil, nil
	}
	items := make([]string, len(insights))
	for n, id := range insights {
		items[n] = digits(id)
	}
	return r.views(ctx, project, EntryPage{Items: items})
}

func (r *Registry) views(ctx context.Context, project int64, page EntryPage) ([]View, error) {
	entries, _, err := r.store.Entries(ctx, project, viewLog, page)
	if err != nil {
		return nil, fmt.Errorf("reading the views of insights: %w", err)
	}
	views := make([]View, len(entries))
	for n, e := range entries {
		id, err := strconv.ParseInt(e.Item, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the views of insights: %w", err)
		}
		views[n] = View{Insight: id, Viewer: e.By, At: e.At}
	}
	slices.SortFunc(views, func(a, b View) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Insight, b.Insight), cmp.Compare(a.Viewer, b.Viewer))
	})
	return views, nil
}

// view records that an insight was viewed with a key.
func (t *tx) view(i *Insight, viewer string, at time.Time) {
	item := digits(i.ID)
	t.write.Append = append(t.write.Append, Entry{Project: i.Project, Log: viewLog, ID: item + "/" + viewer, Item: item, By: viewer, At: at})
	t.bound(Bound{Project: i.Project, Log: viewLog, Entries: MaxViews})
}

// logInsight adds an entry about an insight. An insight without any name has no log (contract: api.md, section 4.5).
func (t *tx) logInsight(activity string, i *Insight, changes []FieldChange, by string, at time.Time) {
	if i.Title() == "" {
		return
	}
	for n := range changes {
		for _, value := range []*json.RawMessage{&changes[n].Before, &changes[n].After} {
			if size := len(*value); size > maxLoggedValue {
				*value = mustJSON(fmt.Sprintf("%d bytes, too many for the log", size))
			}
		}
	}
	t.write.Append = append(t.write.Append, Entry{
		Project: i.Project, Log: activityLog(ScopeInsight), ID: newID(), Item: digits(i.ID), By: by, At: at,
		Data: encode(activityData{activity, i.Title(), i.ShortID, changes}),
	})
	t.bound(Bound{Project: i.Project, Log: activityLog(ScopeInsight), Entries: MaxActivities, Bytes: MaxActivityBytes})
}

// bound limits a log that the write appends to.
func (t *tx) bound(b Bound) {
	if !slices.Contains(t.write.Bounds, b) {
		t.write.Bounds = append(t.write.Bounds, b)
	}
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

// changeOf describes the change of a field.
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

// names returns what a log records about dashboards.
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
		panic("BUG: a change that is not JSON: " + err.Error())
	}
	return raw
}
