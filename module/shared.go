package module

import (
	"errors"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/sharedlog"
)

// shared holds what outlives a config: a reload takes its shares before the old config gives back its own, so nothing whose settings stay the same is
// closed in between.
var shared = caddy.NewUsagePool()

// pooled is an entry of shared: a value, and how to close it when the last config gives it back.
type pooled[T any] struct {
	value T
	close func() error // nil if there is nothing to close
}

// Destruct closes the value; the pool calls it once.
func (p *pooled[T]) Destruct() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// retain takes one more share of each value under keys, and returns a function that gives them back. ok is false if any of them is closed already.
func retain(keys []string) (release func(), ok bool) {
	taken := 0
	release = func() {
		for _, key := range slices.Backward(keys[:taken]) {
			if _, err := shared.Delete(key); err != nil {
				caddy.Log().Named("analytics").Error("closing what an old config used", zap.String("what", strings.Fields(key)[0]), zap.Error(err))
			}
		}
	}
	for _, key := range keys {
		if _, _, err := shared.LoadOrNew(key, func() (caddy.Destructor, error) { return nil, errClosed }); err != nil {
			release()
			return nil, false
		}
		taken++
	}
	return release, true
}

// joinLog makes everything that is opened from now on log to the logs of the newest config: it may be shared with later ones.
func (a *App) joinLog() error {
	log, err := keep(a, a.baseKeys().sharedlog, func() (*sharedlog.Log, func() error, error) { return new(sharedlog.Log), nil, nil })
	if err != nil {
		return err
	}
	logger, leave := log.Join(a.own)
	a.logger = logger
	a.leases = append(a.leases, func() error { leave(); return nil })
	return nil
}

var errClosed = errors.New("the config is being replaced; try again")

// lease returns the value under key, which open makes if there is none, and a function that gives the share back.
func lease[T any](key string, open func() (T, func() error, error)) (T, func() error, error) {
	found, _, err := shared.LoadOrNew(key, func() (caddy.Destructor, error) {
		value, closeValue, err := open()
		if err != nil {
			return nil, err
		}
		return &pooled[T]{value, closeValue}, nil
	})
	if err != nil {
		var none T
		return none, nil, err
	}
	p, _ := found.(*pooled[T])
	return p.value, func() error {
		_, err := shared.Delete(key)
		return err
	}, nil
}

// keep takes a share and records that Cleanup has to give it back.
func keep[T any](a *App, key string, open func() (T, func() error, error)) (T, error) {
	value, release, err := lease(key, open)
	if err == nil {
		a.leases, a.kept = append(a.leases, release), append(a.kept, key)
	}
	return value, err
}
