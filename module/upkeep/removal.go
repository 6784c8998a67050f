package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// checkAfter is the time after which everything in progress for a project when it was deleted has certainly ended: nothing takes longer.
const checkAfter = 15 * time.Minute

// Removed is a deleted project, with what it contained.
type Removed struct {
	*registry.Removal
	Contents warehouse.Contents
}

// Delete deletes a project; name must be its name. When it returns without an error, the project's keys are invalid on this server, and on others
// within a second, and no query finds its rows. They leave the disk in the background. If ClickHouse is unavailable or does not let us delete, nothing
// changes. After any other error the project may be gone from the registry, and its rows are then removed in the background.
func (k *Keeper) Delete(ctx context.Context, project int64, name string) (Removed, error) {
	var out Removed
	snap := k.Registry.Snapshot()
	if snap.Project(project) == nil {
		return out, fmt.Errorf("project %d: %w", project, registry.ErrNotFound)
	}
	if err := k.Shards.Of(project).CanRemove(ctx); err != nil {
		return out, fmt.Errorf("project %d can't be deleted: %w", project, err)
	}
	var err error
	if out.Contents, err = k.Shards.Of(project).Contents(ctx, project); err != nil {
		return out, fmt.Errorf("counting what project %d has: %w", project, err)
	}
	if out.Removal, err = k.Registry.DeleteProject(ctx, project, name, time.Now()); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(k.open, maxWork) // nobody may be waiting any more
	defer cancel()
	defer k.bell.Ring()
	k.Forget(project)
	k.forgetEndpoints(project, snap, k.Registry.Snapshot())
	if err := k.remove(ctx, project); err != nil {
		return out, fmt.Errorf("project %d is deleted, and its rows will be removed in the background: %w", project, err)
	}
	out.Removal = k.Registry.Snapshot().Removal(project)
	return out, nil
}

// pending returns the deleted projects that have work left.
func pending(snap *registry.Snapshot, now time.Time) []*registry.Removal {
	var all []*registry.Removal
	for _, r := range snap.Removals() {
		if r.ErasedAt.IsZero() || !r.Checked && now.Sub(r.RequestedAt) > checkAfter {
			all = append(all, r)
		}
	}
	return all
}

// remove removes the rows of a project, and records that.
func (k *Keeper) remove(ctx context.Context, project int64) error {
	if err := k.EraseImports(ctx, project); err != nil {
		return err
	}
	if err := k.Shards.Of(project).RemoveProject(ctx, project); err != nil {
		return err
	}
	if err := k.Registry.ForgetProject(ctx, project); err != nil {
		return err
	}
	return k.Registry.NoteRemoval(ctx, project, func(r *registry.Removal) {
		if r.RemovedAt.IsZero() {
			r.RemovedAt = time.Now()
		}
	})
}

// complete does the work left for a deleted project, in an order in which each step can be repeated.
func (k *Keeper) complete(ctx context.Context, r *registry.Removal) error {
	late := time.Since(r.RequestedAt) > checkAfter
	if !r.ErasedAt.IsZero() {
		gone, err := k.Shards.Of(r.Project).Removed(ctx, r.Project)
		if err != nil {
			return err
		}
		if gone {
			return k.checked(ctx, r.Project)
		}
	}
	if err := k.EraseCaptured(ctx, r.Shard); err != nil {
		return err
	}
	if err := k.remove(ctx, r.Project); err != nil {
		return err
	}
	if err := k.Shards.Of(r.Project).EraseRemoved(ctx, r.Project); err != nil {
		return err
	}
	switch gone, err := k.Shards.Of(r.Project).Removed(ctx, r.Project); {
	case err != nil:
		return err
	case !gone:
		return errors.New("rows came in while those of a deleted project were removed")
	}
	if err := k.Registry.EraseRemoved(ctx); err != nil {
		return err
	}
	err := k.Registry.NoteRemoval(ctx, r.Project, func(r *registry.Removal) { r.ErasedAt, r.Checked = time.Now(), late })
	if err == nil {
		k.Logger.Info("nothing of a deleted project is left on the disk", zap.Int64("project", r.Project), zap.Duration("after", time.Since(r.RequestedAt)))
	}
	return err
}

// checked records that nothing came in for a deleted project after it was erased.
func (k *Keeper) checked(ctx context.Context, project int64) error {
	if err := k.Registry.ForgetProject(ctx, project); err != nil {
		return err
	}
	return k.Registry.NoteRemoval(ctx, project, func(r *registry.Removal) { r.Checked = true })
}
