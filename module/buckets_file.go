package module

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// saveBucketsTime is how long ClickHouse may take to report the versions of its tables when the process ends.
const saveBucketsTime = 5 * time.Second

// loadBuckets fills a new cache with the buckets of time that the previous process saved, if the config enables that. When the process ends, save
// saves them for the next one. A failure only costs time, and is logged.
func (a *App) loadBuckets(ctx context.Context, c *cache.Cache, shards *warehouse.Shards) (save func()) {
	file := execution.BucketsFile{Path: filepath.Join(a.DataDir, "buckets.zst"), Writer: a.writer()}
	if !a.Cache.SettledPastOnDisk {
		if err := file.Remove(); err != nil {
			a.logger.Warn("the file of buckets cannot be removed", zap.Error(err))
		}
		return func() {}
	}
	switch queries, err := file.Load(ctx, c, shards); {
	case err != nil:
		a.logger.Warn("the saved buckets cannot be read; they are computed when they are asked for", zap.String("file", file.Path), zap.Error(err))
	case queries > 0:
		a.logger.Info("reusing the saved buckets", zap.Int("queries", queries))
	}
	return func() {
		if !caddy.Exiting() { // another config continues, and may write
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), saveBucketsTime)
		defer cancel()
		if _, err := file.Save(ctx, c, shards); err != nil {
			a.logger.Warn("the buckets cannot be saved; they are computed when they are asked for", zap.String("file", file.Path), zap.Error(err))
		}
	}
}

// writer identifies this program and its engine.
func (a *App) writer() string {
	of := func(path string, err error) string {
		if err != nil {
			return ""
		}
		file, err := os.Stat(path)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%d %s", file.Size(), file.ModTime().UTC())
	}
	writer := of(os.Executable())
	if a.ClickHouse == "" {
		path, _, err := embedded.FindLibrary(a.EngineLibrary)
		writer += " " + of(path, err)
	}
	return writer
}
