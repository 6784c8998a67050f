package references

import (
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// UsesOf returns the actions and cohorts that a query of a project depends on, including deleted ones. It leaves out those that never existed.
func (x *Index) UsesOf(snap *registry.Snapshot, project int64, query json.RawMessage) []changes.Use {
	var uses []changes.Use
	reached := x.OfQuery(snap, project, query)
	for _, id := range reached.Actions {
		if a := snap.AnyAction(project, id); a != nil {
			title := fmt.Sprint("Action ", id)
			if a.Name != nil {
				title = *a.Name
			}
			uses = append(uses, changes.Use{ID: id, Title: title, Deleted: a.Deleted, ChangedAt: a.ChangedAt})
		}
	}
	for _, id := range reached.Cohorts {
		if c := snap.AnyCohort(project, id); c != nil {
			uses = append(uses, changes.Use{Cohort: true, ID: id, Title: c.Title(), Deleted: c.Deleted, ChangedAt: c.ChangedAt})
		}
	}
	return uses
}
