package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The outcomes of runs of materialized versions that had a table, as metrics name them.
const (
	fromTable = "read"
	fellBack  = "failed"
)

// Stored is the table of a materialized version, for a run that reads it.
type Stored struct {
	Plan  *materialize.Plan
	Table clickhouse.MaterializedTable
	AsOf  time.Time // when the fill began
	Until time.Time // when the table is too old to be read
	// Values are the values of the variables; Plan.Serves holds for them.
	Values map[string]any
}

// Mark is the part of a cache key that changes when the rows do.
func (s *Stored) Mark() string { return s.Table.Name() }

// TableOf returns the table for a fill of a version.
func TableOf(e *registry.Endpoint, v *registry.Version, fill int64) (clickhouse.MaterializedTable, error) {
	id, err := uuid.Parse(e.ID)
	if err != nil {
		return clickhouse.MaterializedTable{}, fmt.Errorf("the id of the endpoint %q: %w", e.Name, err)
	}
	return clickhouse.MaterializedTable{Project: e.Project, Endpoint: id, Version: v.Number, Fill: fill}, nil
}

// Subject is a version, or a possible one, that a table is planned for.
type Subject struct {
	Project  int64
	Endpoint string // its name
	Version  int
	Node     query.Node
	Buckets  map[string]string
	Optional []string // the breakdowns that a run may leave out
}

// PlanTable plans the table of a version in the project's turn to compile. The error is a *materialize.Refusal if it can't have one, or that of a
// limit or of a ClickHouse that can't be asked. The plan's mark also covers what the query's values follow from: actions, members of cohorts, test account
// filters and path cleaning rules.
func (c *Compiler) PlanTable(ctx context.Context, snap *registry.Snapshot, by *Compiles, of Subject, now time.Time) (*materialize.Plan, error) {
	db, err := c.Database(ctx, snap.Schema(of.Project))
	if err != nil {
		return nil, err
	}
	env := c.compilerEnv(snap, of.Project, db, now)
	env.PlainValues = true
	plan, err := compileWith(ctx, by, env, func(env compiler.Env) (*materialize.Plan, error) {
		return materialize.New(of.Node, env, materialize.Options{Endpoint: of.Endpoint, Version: of.Version, Buckets: of.Buckets, Optional: of.Optional})
	})
	if err != nil {
		return nil, err
	}
	plan.Mark = digest(plan.Mark, c.known.keptMark(snap.Schema(of.Project), snap.VariableDefaults(of.Project), of.Node))
	return plan, nil
}

// knownTable is a cached plan, or the reason why there is none, with its inputs besides the version.
type knownTable struct {
	mark     string
	buckets  map[string]string
	optional []string
	plan     *materialize.Plan
	refused  error
}

// fits reports whether a plan with this mark would be the same.
func (k *knownTable) fits(mark string, of Subject) bool {
	return k.mark == mark && maps.Equal(k.buckets, of.Buckets) && slices.Equal(k.optional, of.Optional)
}

// knownTables caches plans by the ids of their versions. The zero value is empty.
type knownTables struct {
	mu   sync.Mutex
	byID map[string]*knownTable
}

// maxKnownTables is how many plans are cached, at about 10 KB each.
const maxKnownTables = 2000

func (k *knownTables) get(id string) *knownTable {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

func (k *knownTables) put(id string, t *knownTable) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil {
		k.byID = make(map[string]*knownTable)
	}
	for other := range k.byID {
		if len(k.byID) < maxKnownTables {
			break
		}
		delete(k.byID, other) // the order of a map is random
	}
	k.byID[id] = t
}

// KnownTable is PlanTable for an existing version, whose plan is cached. Do not use the plan's Fill: its times are those of another moment.
func (c *Compiler) KnownTable(ctx context.Context, snap *registry.Snapshot, by *Compiles, id string, of Subject, now time.Time) (*materialize.Plan, error) {
	mark := c.Mark(snap, of.Project, of.Node)
	if known := c.known.tables.get(id); known != nil && known.fits(mark, of) {
		return known.plan, known.refused
	}
	plan, err := c.PlanTable(ctx, snap, by, of, now)
	if err == nil || errors.As(err, new(*materialize.Refusal)) {
		c.known.tables.put(id, &knownTable{mark, of.Buckets, of.Optional, plan, err})
	}
	return plan, err
}

// compileStored compiles the query that reads the table.
func (x *Computation) compileStored(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	stored := x.query.Stored
	db, err := x.exec.Database(ctx, x.Snapshot.Schema(x.Project.ID))
	if err != nil {
		return nil, err
	}
	env := x.exec.compilerEnv(x.Snapshot, x.Project.ID, db, now)
	env.Mode, env.PlainValues = x.query.Rows, true
	compiled, err := compileWith(ctx, x.compiles, env, func(env compiler.Env) (*compiler.Compiled, error) {
		return stored.Plan.Read(materialize.Run{Table: stored.Table.Name(), Filled: stored.AsOf, Values: stored.Values}, env)
	})
	if x.compiles.counted > 0 {
		x.counted.Store(true)
	}
	x.query.refused(x.exec.Metrics, err)
	return compiled, err
}

// byTable reports whether an error may be the table's fault, so that the query itself has to run.
func byTable(ctx context.Context, err error) bool {
	if ctx.Err() != nil || IsRefusal(err) || errors.Is(err, context.Canceled) || errors.Is(err, ErrSetQuery) {
		return false
	}
	known, ok := errors.AsType[*clickhouse.Error](err)
	return !ok || known.Kind != clickhouse.Unavailable && known.Kind != clickhouse.Busy
}

// reportTableFailure records that a run could not use its table.
func (x *Computation) reportTableFailure(err error) {
	x.query.meter(x.exec.Metrics).table(fellBack)
	if x.exec.Reports.Table != nil {
		x.exec.Reports.Table(x.query, err)
	}
}
