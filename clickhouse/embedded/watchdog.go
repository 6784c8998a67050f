//go:build linux || darwin

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
)

// watchMisses is how many reads in a row have to fail before the engine is taken for hung.
const watchMisses = 3

// Stats is how the engine is.
type Stats struct {
	// Whether the child runs, and answered the last read of a table.
	Up bool
	// How often a child ended that should not have, so that another is started.
	Restarts uint64
	// The memory that the child takes, in bytes; 0 while there is none, or where the system does not say.
	Resident int64
}

// Stats gives how the engine is now.
func (e *Engine) Stats() Stats {
	pid := e.PID()
	s := Stats{Up: pid != 0 && e.reads.Load(), Restarts: e.restarts.Load()}
	if pid != 0 {
		s.Resident = resident(pid)
	}
	return s
}

// watch asks a child for one row of a table again and again, and ends it when it does not answer. It returns when the child has ended.
func (e *Engine) watch(ctx context.Context, c *child) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // an old connection would say less
	every := time.NewTicker(e.cfg.WatchInterval)
	defer every.Stop()
	misses, said := 0, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		answer, err := e.ask(ctx, client)
		if ctx.Err() != nil {
			return
		}
		e.reads.Store(err == nil && answer == "")
		if err != nil {
			misses++
			every.Reset(e.cfg.WatchInterval) // a tick may have come meanwhile
			e.log.Warn("the embedded engine does not answer a read of a table", zap.Int("times", misses), zap.Error(err))
			if misses == watchMisses {
				e.log.Error("the embedded engine hangs; killing it", zap.Int("pid", c.cmd.Process.Pid),
					zap.Duration("silent_for", time.Duration(misses)*e.cfg.WatchInterval))
				_ = c.stop(termTimeout) // its end is what counts, and supervise sees that
				return
			}
			continue
		}
		misses = 0
		if answer != said && answer != "" {
			e.log.Warn("the embedded engine cannot read a table", zap.String("error", answer))
		}
		said = answer
	}
}

// termTimeout is how long a child that hangs may take to end by itself.
const termTimeout = 2 * time.Second

// ask gives what the engine says beside the row: nothing, or an error of its own.
func (e *Engine) ask(ctx context.Context, client *http.Client) (answer string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.WatchInterval, fmt.Errorf("no answer within %s", e.cfg.WatchInterval))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.listener.Addr().String()+watchPath, nil)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(e.orders.User, e.orders.Password)
	resp, err := client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(string(text)))
	}
	return string(text), nil
}
