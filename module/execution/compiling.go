package execution

import (
	"context"
	"errors"
	goruntime "runtime"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

const (
	// maxCompiling is the processor time that all compiles of one request may take together. It is a thousand times what a typical query takes. It is
	// not wall time, so a busy machine refuses nothing that an idle one accepts.
	maxCompiling = 100 * time.Millisecond
	// compilingPerQuery is the processor time of compiling that counts as one query on the key's rate. The first portion is free.
	compilingPerQuery = 25 * time.Millisecond
	// processorPatience is the longest that a compile or an assembly waits for its turn. A compile itself takes a tenth of a second at most.
	processorPatience = 30 * time.Second
	// maxWaiting is how many compiles, and how many assemblies, of one project may wait.
	maxWaiting = 256
)

// compilePlaces and assemblyPlaces are shared by the whole process, whatever its config, because they stand for processor cores. They are apart, because an
// assembly can take as long as many compiles. Half of the cores compile at most, and half of them assemble, so that there is something left for answers from
// the cache.
var (
	compilePlaces  = admission.New(processorLimits(max(1, goruntime.GOMAXPROCS(0)/2)))
	assemblyPlaces = admission.New(processorLimits(max(1, goruntime.GOMAXPROCS(0)/2)))
)

func processorLimits(places int) admission.Limits {
	return admission.Limits{Places: places, Project: places, Queue: maxWaiting}
}

// Compiles are the compiles of one request, which run one after the other.
type Compiles struct {
	project int64
	quotas  Quotas        // that their time counts on; empty for Uncounted
	used    time.Duration // processor time
	counted int           // queries spent for it

	expired func() error // of the current compile
}

// CompilesOf returns the compiles of a request. Compiling an endpoint does not count on the endpoint's rate: the key that publishes or runs it pays.
func (e *Executor) CompilesOf(c *Caller) *Compiles {
	return &Compiles{project: c.Project.ID, quotas: c.quotas(e.Limits)}
}

// Uncounted returns the compiles of work in a project that counts on no key's rate.
func Uncounted(project int64) *Compiles { return &Compiles{project: project} }

// do runs a compile in its turn and counts the time that it takes, even if it fails. The compile calls expired to learn whether it must stop. The
// error is that of the compile, the contract's 429, or that of ctx.
func (c *Compiles) do(ctx context.Context, compile func(expired func() error) error) error {
	c.quotas.prepare(ctx)
	if err := c.quotas.check(time.Now()); err != nil {
		return err
	}
	place, err := takeCompilePlace(ctx, c.project)
	if err != nil {
		return err
	}
	defer place.Leave()
	goruntime.LockOSThread() // processorTime is per thread
	defer goruntime.UnlockOSThread()
	began := processorTime()
	defer func() { c.count(processorTime()-began, time.Now()) }()
	c.expired = func() error {
		goruntime.Gosched() // lets answers from the cache run between two steps, rather than after a time slice
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.used+processorTime()-began > maxCompiling:
			return compiler.ErrTooSlow
		}
		return nil
	}
	return compile(c.hasExpired)
}

// compileWith compiles something with an env, in its turn: see [Compiles.do].
func compileWith[T any](ctx context.Context, c *Compiles, env compiler.Env, compile func(compiler.Env) (T, error)) (out T, err error) {
	err = c.do(ctx, func(expired func() error) (err error) {
		env.Expired = expired
		out, err = compile(env)
		return err
	})
	return out, err
}

// hasExpired asks the current compile: pieces are compiled in a turn of their own, but with the env of the query's compile.
func (c *Compiles) hasExpired() error { return c.expired() }

// count adds processor time and spends queries for it.
func (c *Compiles) count(took time.Duration, now time.Time) {
	c.used += took
	queries := int((c.used - 1) / compilingPerQuery) // one for each portion begun after the first
	if queries <= c.counted {
		return
	}
	defer c.quotas.lock()()
	for ; c.counted < queries; c.counted++ {
		for _, q := range c.quotas {
			q.take(now)
		}
	}
}

// takeCompilePlace waits for the project's turn to compile. The error is a 429 (contract api.md, section 7), or that of ctx.
func takeCompilePlace(ctx context.Context, project int64) (*admission.Place, error) {
	return takeProcessor(ctx, compilePlaces, project, "Too many queries are being prepared. Please try again later.")
}

// TakeAssemblyPlace waits for the project's turn to put a large answer together, from its rows or from its pieces. The error is that of a compile's.
func TakeAssemblyPlace(ctx context.Context, project int64) (*admission.Place, error) {
	return takeProcessor(ctx, assemblyPlaces, project, "Too many large responses are being prepared. Please try again later.")
}

func takeProcessor(ctx context.Context, of *admission.Scheduler, project int64, refusal string) (*admission.Place, error) {
	place, err := of.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited, Wait: processorPatience})
	if errors.Is(err, admission.ErrQueueFull) || errors.Is(err, admission.ErrTooLong) {
		return nil, &LimitError{Limit: LimitConcurrency, Detail: refusal, Wait: time.Second}
	}
	return place, err
}
