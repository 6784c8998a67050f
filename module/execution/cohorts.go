package execution

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Cohorts makes sure that queries find the members of cohorts.
type Cohorts interface {
	// Used is called before a query reads the members of cohorts. It waits for those that were never computed and then returns the registry's new
	// snapshot; nil if it did not have to wait. An error that is the query author's fault is a *diag.Error.
	Used(ctx context.Context, project int64, cohorts []int64) (*registry.Snapshot, error)
}
