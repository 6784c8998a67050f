package module

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/routes"
	"github.com/caddy-analytics/caddy-analytics/module/api/status"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// requestMemory is shared by the whole process, whatever its config, like its memory.
var requestMemory = memory.NewPool(memory.Default)

// newTopics returns what the topics of the API work with.
func (rt *runtime) newTopics() *routes.Services {
	return &routes.Services{
		Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Tokens: rt.tokens, Logs: rt.logs, References: &rt.references, Memory: requestMemory,
		Logger: rt.logger, Deleter: rt.deleter, Change: rt.intake.Change, Calculate: rt.cohorts.Calculate,
		ForgetEndpoint: rt.forget, Fill: rt.tables.Wake,
		Imports: rt.imports.service, MaxImport: rt.imports.maxSize,
		Health:   func(ctx context.Context) status.Health { return rt.probe.health(ctx) },
		Captured: rt.captureOf, Embedded: rt.engine != nil,
		Origins: api.Origins{PublicURL: rt.publicURL, FromTrustedProxy: fromTrustedProxy, CutPrefix: cutPrefix},
	}
}

// captureOf returns the state of a project's event capture.
func (rt *runtime) captureOf(project int64) *status.Capture {
	c := rt.capturing
	if c == nil {
		return nil
	}
	counted, waiting, delivered := c.counters.Of(project), c.logs.Waiting(project), c.logs.StatusOf(project)
	out := &status.Capture{
		Accepted: counted.Events.Load(), Ignored: counted.Ignored.Load(), Dropped: counted.Dropped.Load(), Refused: map[string]int64{},
		Delivered: delivered.Delivered, SetAside: delivered.SetAside, Waiting: waiting.Events, Bytes: waiting.Bytes, Lag: delivered.Lag.Seconds(),
	}
	counted.Refused(func(reason string, requests int64) {
		if requests > 0 {
			out.Refused[reason] = requests
		}
	})
	return out
}
