package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The results of runs of materialized versions that had a table, as metrics name them.
const (
	fromTable = "read"
	fellBack  = "failed"
)

// Stored is the table of a materialized version, as a run reads it.
type Stored struct {
	Plan  *materialize.Plan
	Table clickhouse.MaterializedTable
	AsOf  time.Time // when the fill began
	// Values are those of the variables, for which Plan.Serves holds.
	Values map[string]any
}

// Mark is the part of a cache key that changes when the rows do.
func (s *Stored) Mark() string { return s.Table.Name() }

// TableOf names the table of a fill of a version.
func TableOf(e *registry.Endpoint, v *registry.Version, fill int64) (clickhouse.MaterializedTable, error) {
	id, err := uuid.Parse(e.ID)
	if err != nil {
		return clickhouse.MaterializedTable{}, fmt.Errorf("the id of the endpoint %q: %w", e.Name, err)
	}
	return clickhouse.MaterializedTable{Project: e.Project, Endpoint: id, Version: v.Number, Fill: fill}, nil
}

// Subject is a version, or what may become one, that a table is planned for.
type Subject struct {
	Project  int64
	Endpoint string // its name
	Version  int
	Node     query.Node
	Buckets  map[string]string
}

// PlanTable plans the table of a version when it is the project's turn to compile. The error is a *materialize.Refusal if there can be
// none, or that of a limit or of a ClickHouse that can't be asked.
func (e *Executor) PlanTable(ctx context.Context, snap *registry.Snapshot, c *Compiles, of Subject, now time.Time) (*materialize.Plan, error) {
	db, err := e.Database(ctx, snap.Schema(of.Project))
	if err != nil {
		return nil, err
	}
	env := e.compilerEnv(snap, of.Project, db, now)
	env.PlainValues = true
	var plan *materialize.Plan
	err = c.do(ctx, func(expired func() error) error {
		env.Expired = expired
		plan, err = materialize.New(of.Node, env, materialize.Options{Endpoint: of.Endpoint, Version: of.Version, Buckets: of.Buckets})
		return err
	})
	return plan, err
}

// knownTable is a plan that was made, or why there is none, and what it follows from beside the version.
type knownTable struct {
	mark    string
	buckets map[string]string
	plan    *materialize.Plan
	refused error
}

// knownTables are the plans of versions by their ids. The zero value has none.
type knownTables struct {
	mu   sync.Mutex
	byID map[string]*knownTable
}

// maxKnownTables is how many plans are kept, of about 10 KB each.
const maxKnownTables = 2000

func (k *knownTables) get(id string) *knownTable {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

func (k *knownTables) put(id string, t *knownTable) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID == nil || len(k.byID) >= maxKnownTables {
		k.byID = make(map[string]*knownTable)
	}
	k.byID[id] = t
}

// KnownTable is PlanTable for a version that is there, whose plan is made once. Its Fill is not for use: times in it are those of another
// moment.
func (e *Executor) KnownTable(ctx context.Context, snap *registry.Snapshot, c *Compiles, id string, of Subject, now time.Time) (*materialize.Plan, error) {
	mark := e.Mark(snap, of.Project, of.Node)
	if known := e.Databases.tables.get(id); known != nil && known.mark == mark && maps.Equal(known.buckets, of.Buckets) {
		return known.plan, known.refused
	}
	plan, err := e.PlanTable(ctx, snap, c, of, now)
	if err == nil || errors.As(err, new(*materialize.Refusal)) {
		e.Databases.tables.put(id, &knownTable{mark, of.Buckets, plan, err})
	}
	return plan, err
}

// compileStored compiles what a run reads from a table.
func (x *Computation) compileStored(ctx context.Context, now time.Time) (*compiler.Compiled, error) {
	stored := x.query.Stored
	db, err := x.exec.Database(ctx, x.Snapshot.Schema(x.Project.ID))
	if err != nil {
		return nil, err
	}
	env := x.exec.compilerEnv(x.Snapshot, x.Project.ID, db, now)
	env.Mode, env.PlainValues = x.query.Rows, true
	var compiled *compiler.Compiled
	err = x.compiles.do(ctx, func(expired func() error) error {
		env.Expired = expired
		compiled, err = stored.Plan.Read(materialize.Run{Table: stored.Table.Name(), Filled: stored.AsOf, Values: stored.Values}, env)
		return err
	})
	if x.compiles.counted > 0 {
		x.counted.Store(true)
	}
	x.query.refused(x.exec.Metrics, err)
	return compiled, err
}

// byTable reports whether an error may be the fault of a table, so that the query itself is to be run.
func byTable(ctx context.Context, err error) bool {
	if ctx.Err() != nil || IsRefusal(err) || errors.Is(err, context.Canceled) || errors.Is(err, ErrSetQuery) {
		return false
	}
	known, ok := errors.AsType[*clickhouse.Error](err)
	return !ok || known.Kind != clickhouse.Unavailable && known.Kind != clickhouse.Busy
}

// passOver notes that a table was of no use to a run.
func (x *Computation) passOver(err error) {
	x.query.meter(x.exec.Metrics).table(fellBack)
	if x.exec.ReportTable != nil {
		x.exec.ReportTable(x.query, err)
	}
}
