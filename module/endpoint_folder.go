package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// EndpointFolder is a folder of endpoint files. They are read with the config, and when the config is loaded, the endpoints that they name are
// changed to match. A mistake in a file refuses the config and changes nothing.
type EndpointFolder struct {
	// The folder. Its files end in .yaml or .yml; subfolders are skipped.
	Folder string `json:"folder"`
	// The id of the project that the endpoints belong to.
	Project int64 `json:"project"`
	// Whether endpoints of the project that no file names are deleted. Default: they stay.
	Prune bool `json:"prune,omitempty"`
	// A digest of the files. Caddy ignores a reload of an unchanged config; where the Caddyfile adapter can read the folder, it puts the digest here,
	// so that changed files change the config. Nothing else uses it. Default: none.
	Digest string `json:"digest,omitempty"`

	files []*endpointfile.File
}

// EndpointsDigest returns a digest of the endpoint files in a folder; empty if they can't be read.
func EndpointsDigest(dir string) string {
	sources, err := endpointfile.ReadDir(dir)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(jsontext.Append(nil, sources))
	return hex.EncodeToString(sum[:16])
}

// provisionFolders fills in the placeholders in the names of the folders.
func (a *App) provisionFolders(repl *caddy.Replacer) error {
	for i := range a.Endpoints {
		f := &a.Endpoints[i]
		filled, err := repl.ReplaceOrErr(f.Folder, true, true)
		if err != nil {
			return fmt.Errorf("endpoints: %w", err)
		}
		if filled == "" {
			return errors.New("endpoints needs a folder")
		}
		if f.Folder, err = filepath.Abs(filled); err != nil {
			return fmt.Errorf("endpoints: %w", err)
		}
	}
	return nil
}

// validateFolders reads the files that Start applies.
func (a *App) validateFolders() error {
	var wrong []error
	seen := make(map[int64]bool)
	for i := range a.Endpoints {
		f := &a.Endpoints[i]
		if f.Project < 1 {
			wrong = append(wrong, fmt.Errorf("endpoints %s needs a project, such as project 1", f.Folder))
		}
		if seen[f.Project] {
			wrong = append(wrong, fmt.Errorf("endpoints: project %d has two folders; put its files into one", f.Project))
		}
		seen[f.Project] = true
		sources, err := endpointfile.ReadDir(f.Folder)
		if err == nil {
			f.files, err = endpointfile.ParseAll(sources)
		}
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// retryFolders is how long to wait before trying again to apply files.
const retryFolders = 5 * time.Second

// applyFolders applies the endpoint files of the config. It plans all of them before it applies any, so that a mistake changes nothing. For folders whose
// project does not exist yet, and while ClickHouse is unavailable, background tasks try again until they succeed; Stop ends them.
func (a *App) applyFolders(ctx context.Context, rt *runtime) error {
	now := time.Now()
	var plans []*files.Plan
	var waiting []*EndpointFolder
	for i := range a.Endpoints {
		f := &a.Endpoints[i]
		switch plan, err := f.planAtStart(ctx, rt, now); {
		case err == nil:
			plans = append(plans, plan)
		case isWaiting(err):
			a.logger.Warn("the endpoint files can't be applied yet; trying again", zap.String("folder", f.Folder), zap.Error(err))
			waiting = append(waiting, f)
		default:
			return fmt.Errorf("applying the endpoint files of %s: %w", f.Folder, err)
		}
	}
	for _, plan := range plans {
		if err := rt.applyPlan(ctx, plan, now); err != nil {
			return fmt.Errorf("applying the endpoint files of project %d: %w", plan.Project, err)
		}
	}
	a.applyLater(ctx, rt, waiting)
	return nil
}

// applyLater applies the files of folders in the background, each as soon as possible: a project that is never created holds up no other.
func (a *App) applyLater(ctx context.Context, rt *runtime, waiting []*EndpointFolder) {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	a.stopFolders = func() {
		stop()
		tasks.Wait()
	}
	for _, f := range waiting {
		tasks.Go(func() { f.applyLater(background, rt, a.logger) })
	}
}

// startWait is how long the start of the server waits for ClickHouse if endpoint files are to be applied.
const startWait = time.Second

// planAtStart plans unless ClickHouse does not answer: the start does not wait for that.
func (f *EndpointFolder) planAtStart(ctx context.Context, rt *runtime, now time.Time) (*files.Plan, error) {
	looking, cancel := context.WithTimeoutCause(ctx, startWait, warehouse.ErrStillLooking)
	defer cancel()
	if _, err := rt.Shards.Of(f.Project).Layout(looking); err != nil {
		return nil, err
	}
	return rt.topics.Files().Plan(ctx, f.Project, f.files, f.Prune, now)
}

// endFolders ends the background tasks.
func (a *App) endFolders() {
	if a.stopFolders != nil {
		a.stopFolders()
	}
}

// isWaiting reports whether an error passes by itself or by the operator's next step, rather than being a mistake in the files.
func isWaiting(err error) bool {
	return files.IsPassing(err) || errors.Is(err, registry.ErrNotFound)
}

// applyLater applies the files as soon as possible, unless ctx ends first. The config is already loaded, so a mistake is only logged.
func (f *EndpointFolder) applyLater(ctx context.Context, rt *runtime, logger *zap.Logger) {
	ticker := time.NewTicker(retryFolders)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := f.apply(ctx, rt); {
		case err == nil:
			logger.Info("the endpoint files are applied", zap.String("folder", f.Folder))
			return
		case ctx.Err() == nil && !isWaiting(err):
			logger.Error("the endpoint files can't be applied", zap.String("folder", f.Folder), zap.Error(err))
			return
		}
	}
}

func (f *EndpointFolder) apply(ctx context.Context, rt *runtime) error {
	now := time.Now()
	plan, err := rt.topics.Files().Plan(ctx, f.Project, f.files, f.Prune, now)
	if err != nil {
		return err
	}
	return rt.applyPlan(ctx, plan, now)
}

func (rt *runtime) applyPlan(ctx context.Context, plan *files.Plan, now time.Time) error {
	if err := rt.topics.Files().Apply(ctx, plan, now); err != nil {
		return err
	}
	for _, e := range plan.Endpoints {
		if e.Action != adminapi.Keep {
			rt.logger.Info("an endpoint was updated from its file", zap.Int64("project", plan.Project), zap.String("endpoint", e.Name),
				zap.String("action", string(e.Action)), zap.Strings("fields", e.Fields))
		}
	}
	return nil
}
