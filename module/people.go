package module

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/ingest"
)

// changePerson changes the properties of a person and learns their types. It drops cached answers that this may have changed.
func (rt *runtime) changePerson(ctx context.Context, project int64, change ingest.Change) error {
	report, err := rt.Shards.Of(project).Change(ctx, rt.Places, rt.ingestOptions(rt.registry.Snapshot(), project), change)
	if learnErr := rt.learn(ctx, project, &report); err == nil {
		err = learnErr
	}
	rt.Cache.Outdate(project)
	return err
}
