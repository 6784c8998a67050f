package module

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

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

// engine is the embedded engine, with what its data folder records about it.
type engine struct {
	*embedded.Engine

	opened datafolder.Engine // when it started: the library's file may be replaced while it runs
}

// engines are the libraries of running engines, by data folder.
var engines sync.Map

// startEngine takes a share of the embedded engine, unless the config names a server.
func (a *App) startEngine(ctx context.Context, key string, folder *datafolder.Folder) (*engine, error) {
	if a.ClickHouse != "" {
		return nil, nil
	}
	return keep(a, key, func() (*engine, func() error, error) {
		path, library, err := embedded.FindLibrary(a.EngineLibrary)
		if err != nil {
			return nil, nil, err
		}
		if other, running := engines.Load(a.engineDir()); running && other != path {
			return nil, nil, fmt.Errorf("engine_library can't be changed by a reload: the running engine, from %s, is still using the data folder. Restart the server", other)
		}
		err = folder.CheckEngine(path, library, func() (string, error) {
			return embedded.LibraryVersion(ctx, embedded.Config{Library: path}, zap.NewNop())
		})
		if err != nil {
			return nil, nil, err
		}
		e, err := embedded.Start(ctx, embedded.Config{
			DataDir: a.engineDir(), Library: path, MaxQueries: embedded.DefaultMaxQueries() + spareQueries,
		}, a.logger.Named("engine"))
		if err != nil {
			return nil, nil, err
		}
		dir := a.engineDir()
		engines.Store(dir, path)
		closeEngine := func() error {
			defer engines.CompareAndDelete(dir, path)
			return e.Close()
		}
		return &engine{e, datafolder.Engine{Version: e.Version(), Size: library.Size(), Modified: library.ModTime().UTC()}}, closeEngine, nil
	})
}

// upgraded records that the whole data folder is open and in this version's format.
func (a *App) upgraded(folder *datafolder.Folder, engine *engine) error {
	if engine == nil {
		return folder.Upgraded(nil)
	}
	return folder.Upgraded(&engine.opened)
}
