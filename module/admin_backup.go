package module

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
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

// streamHandler returns a value to send as JSON, after lines that report progress.
type streamHandler func(ctx context.Context, rt *runtime, r *http.Request, report backups.Progress) (any, error)

// streamed returns a route whose answer consists of adminapi.BackupLine lines. Its work stops when the client disconnects.
func streamed(pattern string, handle streamHandler) caddy.AdminRoute {
	methods := map[string]adminHandler{http.MethodPost: func(rt *runtime, w http.ResponseWriter, r *http.Request) (any, error) {
		release, ok := rt.Retain()
		if !ok {
			return nil, errClosed
		}
		defer release()
		return nil, stream(w, func(report backups.Progress) (any, error) { return handle(r.Context(), rt, r, report) })
	}}
	return caddy.AdminRoute{Pattern: pattern, Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return serveStream(methods, w, r)
	})}
}

// serveStream is serveAdmin for a handler that has already sent its answer.
func serveStream(methods map[string]adminHandler, w http.ResponseWriter, r *http.Request) error {
	rt, handle, err := findAdmin(methods, r)
	if err != nil {
		return err
	}
	if _, err := handle(rt, w, r); err != nil {
		return adminError(err)
	}
	return nil
}

// lineEvery is the shortest time between two progress lines.
const lineEvery = 200 * time.Millisecond

// stream sends the progress of do, and then its result. An error before the first line is returned, so that it gets a status of its own.
func stream(w http.ResponseWriter, do func(backups.Progress) (any, error)) error {
	s := &lines{w: w}
	result, err := do(s.report)
	s.mu.Lock()
	defer s.mu.Unlock()
	last := adminapi.BackupLine{}
	switch {
	case err != nil && !s.begun:
		return err
	case err != nil:
		caddy.Log().Named("analytics").Warn("an operator's command failed", zap.String("reason", err.Error()))
		last.Error = err.Error()
	default:
		if last.Result, err = json.Marshal(result); err != nil {
			return fmt.Errorf("encoding the answer: %w", err)
		}
	}
	s.send(last)
	return nil
}

// lines sends lines of JSON.
type lines struct {
	w     http.ResponseWriter
	mu    sync.Mutex
	begun bool
	doing string
	last  time.Time
}

func (l *lines) report(doing string, done, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if doing == l.doing && time.Since(l.last) < lineEvery {
		return
	}
	l.doing, l.last = doing, time.Now()
	l.send(adminapi.BackupLine{Doing: doing, Done: done, Total: total})
}

func (l *lines) send(line adminapi.BackupLine) {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	_ = json.NewEncoder(l.w).Encode(line) // when nobody reads, the context ends
	_ = http.NewResponseController(l.w).Flush()
}

func adminCreateBackup(ctx context.Context, rt *runtime, r *http.Request, report backups.Progress) (any, error) {
	order, err := readAdmin[adminapi.NewBackup](r)
	if err != nil {
		return nil, err
	}
	return rt.backups.Create(ctx, order, report)
}

func adminListBackups(ctx context.Context, rt *runtime, r *http.Request, report backups.Progress) (any, error) {
	order, err := readAdmin[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return rt.backups.List(ctx, order.Folder, order.Verify, report)
}

func adminRestoreBackup(ctx context.Context, rt *runtime, r *http.Request, report backups.Progress) (any, error) {
	order, err := readAdmin[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return rt.backups.Restore(ctx, order, report)
}

func adminUnpackBackup(ctx context.Context, rt *runtime, r *http.Request, report backups.Progress) (any, error) {
	order, err := readAdmin[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return rt.backups.Unpack(ctx, order, report)
}
