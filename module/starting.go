package module

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// retryStart is how long to wait between attempts to start while the registry is unavailable.
const retryStart = time.Second

// errStarting is the error that requests get until the registry answers.
var errStarting = fmt.Errorf("the server has not started yet: %w", registry.ErrUnavailable)

// answering reports whether the config to be replaced answers requests. It stays if the new one can't start.
func answering() bool {
	app, err := activeApp()
	return err == nil && app.runtime.Load() != nil
}

// startLater starts in the background once the registry answers; endStart ends that. Until then requests are refused.
func (a *App) startLater(away error) {
	a.logger.Warn("the registry is unavailable; the server will start once it responds and refuses requests until then", zap.Error(away))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	a.stopStart = func() {
		stop()
		<-done
	}
	close(a.held)
	go func() {
		defer close(done)
		told := "" // the last logged failure that does not pass by itself
		for {
			if pause.For(ctx, retryStart) != nil {
				return
			}
			switch err := a.startAgain(ctx); {
			case err == nil:
				a.logger.Info("the registry answers; the server has started")
				return
			case ctx.Err() != nil || errors.Is(err, registry.ErrUnavailable):
			case err.Error() != told:
				told = err.Error()
				a.logger.Error("the server can't start; it tries again every second", zap.Error(err))
			}
		}
	}()
}

// startAgain starts, or gives back what it took.
func (a *App) startAgain(ctx context.Context) error {
	if _, err := registry.InspectStore(ctx, a.Registry, a.DataDir); err != nil { // takes nothing, and ends with ctx
		return err
	}
	if err := a.start(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, a.giveBack())
	}
	return nil
}

// endStart ends the start in the background, if there is one.
func (a *App) endStart() {
	if a.stopStart != nil {
		a.stopStart()
	}
}

// isHeld reports whether Start has returned but the app has not started.
func (a *App) isHeld() bool {
	select {
	case <-a.held:
		return a.runtime.Load() == nil
	default:
		return false
	}
}
