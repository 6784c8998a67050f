package module

import (
	"context"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/module/datafolder"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openFolder takes a share of the data folder, before anything in it is opened.
func (a *App) openFolder(ctx context.Context, key string) (*datafolder.Folder, error) {
	return keep(a, key, func() (*datafolder.Folder, func() error, error) {
		reg, err := registry.InspectStore(ctx, a.Registry, a.DataDir)
		if err != nil {
			return nil, nil, err
		}
		f, err := datafolder.Open(a.DataDir, buildinfo.Read().Version, reg, a.logger.Named("data"))
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	})
}

// engineDir returns the data folder of the embedded engine.
func (a *App) engineDir() string { return filepath.Join(a.DataDir, "engine") }

// startEngine takes a share of the embedded engine, unless the config names a server.
func (a *App) startEngine(ctx context.Context, key string, folder *datafolder.Folder) (*embedded.Engine, error) {
	if a.ClickHouse != "" {
		return nil, nil
	}
	return keep(a, key, func() (*embedded.Engine, func() error, error) {
		logger := a.logger.Named("engine")
		path, library, err := embedded.FindLibrary(a.EngineLibrary)
		if err != nil {
			return nil, nil, err
		}
		err = folder.CheckEngine(path, library, func() (string, error) {
			return embedded.LibraryVersion(ctx, embedded.Config{Library: a.EngineLibrary}, zap.NewNop())
		})
		if err != nil {
			return nil, nil, err
		}
		e, err := embedded.Start(ctx, embedded.Config{
			DataDir: a.engineDir(), Library: a.EngineLibrary, MaxQueries: embedded.DefaultMaxQueries() + spareQueries,
		}, logger)
		if err != nil {
			return nil, nil, err
		}
		return e, e.Close, nil
	})
}

// upgraded records that the whole data folder is open and in this version's format.
func (a *App) upgraded(folder *datafolder.Folder, engine *embedded.Engine) error {
	if engine == nil {
		return folder.Upgraded(nil)
	}
	_, library, err := embedded.FindLibrary(a.EngineLibrary)
	if err != nil {
		return err
	}
	return folder.Upgraded(&datafolder.Engine{Version: engine.Version(), Size: library.Size(), Modified: library.ModTime().UTC()})
}
