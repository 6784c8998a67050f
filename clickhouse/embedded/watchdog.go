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

// watchMisses is the number of consecutive failed reads after which the engine counts as hung.
const watchMisses = 3

// Stats is the state of the engine.
type Stats struct {
	// Whether the child runs and answered the last read of a table.
	Up bool
	// The number of unplanned restarts.
	Restarts uint64
	// The resident memory of the child in bytes; 0 if there is no child or the memory is unknown.
	Resident int64
}

// Stats returns the current state of the engine.
func (e *Engine) Stats() Stats {
	pid := e.PID()
	s := Stats{Up: pid != 0 && e.reads.Load(), Restarts: e.restarts.Load()}
	if pid != 0 {
		s.Resident = resident(pid)
	}
	return s
}

// watch repeatedly reads one row of a table from a child, and kills the child if it does not answer. It returns when the child has
// ended.
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
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a new connection tests more
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
			every.Reset(e.cfg.WatchInterval) // a tick may have been missed
			e.log.Warn("the embedded engine did not answer a read of a table", zap.Int("times", misses), zap.Error(err))
			if misses == watchMisses {
				e.log.Error("the embedded engine hangs; killing it", zap.Int("pid", c.cmd.Process.Pid),
					zap.Duration("silent_for", time.Duration(misses)*e.cfg.WatchInterval))
				_ = c.stop(hungTimeout) // supervise notices its end
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

// hungTimeout is how long a hung child may take to exit.
const hungTimeout = 2 * time.Second

// ask reads the row. The answer is empty, or an error of the engine.
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
