package module

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openBackups takes a share of Backups.
func (a *App) openBackups(rt *runtime, k *keys) (*backups.Backups, error) {
	gate, err := keep(a, k.gate, func() (*backups.Gate, func() error, error) { return new(backups.Gate), nil, nil })
	if err != nil {
		return nil, err
	}
	b, err := keep(a, k.backups, func() (*backups.Backups, func() error, error) {
		logger := a.logger.Named("backup")
		config := backups.Config{
			Registry: rt.registry, Shards: rt.Shards, Journal: rt.capturing.logs.Of("").Journal, DataDir: a.DataDir, Program: buildinfo.Read().Version,
			Logger: logger, Gate: gate, Restored: afterRestore(rt.registry, rt.Cache.Purge, rt.Log.Restored),
		}
		if rt.engine != nil {
			config.EngineDir = a.engineDir()
		}
		return backups.New(config), nil, nil
	})
	if err != nil {
		return nil, err
	}
	if broken := rt.restoring(b); broken != nil {
		a.logger.Warn(broken.Error())
	}
	return b, nil
}

// afterRestore returns a function that updates what is kept in memory: it calls each for every project.
func afterRestore(reg *registry.Registry, each ...func(project int64)) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := reg.AddCaptureTokens(ctx, time.Now()); err != nil { // the backup may be older than tokens
			return err
		}
		for _, p := range reg.Snapshot().Projects() {
			for _, do := range each {
				do(p.ID)
			}
		}
		return nil
	}
}

// restoring returns what to report about an interrupted restore; nil if there is none.
func (rt *runtime) restoring(b *backups.Backups) error {
	r, err := backups.BrokenOff(b.DataDir)
	switch {
	case err != nil:
		return err
	case r != nil:
		return r
	}
	return nil
}

// restored returns an error while a backup is being restored and after an interrupted restore: events that waited in it may not be in the log yet.
func restored(dataDir string) error {
	r, err := backups.BrokenOff(dataDir)
	if err == nil && r != nil {
		err = errors.New("erasing waits for the end of the restore of a backup")
	}
	return err
}
