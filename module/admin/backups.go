package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
)

// streamHandler returns a value to send as JSON, after lines that report progress.
type streamHandler func(s *Server, r *http.Request, report backups.Progress) (any, error)

// streamed returns a route whose answer consists of lines.
func streamed(pattern string, handle streamHandler) Route {
	return Route{Pattern: pattern, Streamed: true, methods: methods{http.MethodPost: func(s *Server, w http.ResponseWriter, r *http.Request) (any, error) {
		return nil, stream(w, func(report backups.Progress) (any, error) { return handle(s, r, report) })
	}}}
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

func (s *Server) createBackup(r *http.Request, report backups.Progress) (any, error) {
	order, err := readBody[adminapi.NewBackup](r)
	if err != nil {
		return nil, err
	}
	return s.Backups.Create(r.Context(), order, report)
}

func (s *Server) listBackups(r *http.Request, report backups.Progress) (any, error) {
	order, err := readBody[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return s.Backups.List(r.Context(), order.Folder, order.Verify, report)
}

func (s *Server) restoreBackup(r *http.Request, report backups.Progress) (any, error) {
	order, err := readBody[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return s.Backups.Restore(r.Context(), order, report)
}

func (s *Server) unpackBackup(r *http.Request, report backups.Progress) (any, error) {
	order, err := readBody[adminapi.OldBackups](r)
	if err != nil {
		return nil, err
	}
	return s.Backups.Unpack(r.Context(), order, report)
}
